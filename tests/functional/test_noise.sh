#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_noise.sh - unknown clients at the control port and the provider's port: whatever they send or
# leave out, connects and transfers go on, and nothing of them stays behind.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Unknown clients of each kind.
EACH=40
FAULTS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=30 NCCL_MESH_ACCEPT_TIMEOUT=30)
# Descriptors that may stay behind.
LEAK=0

# noise PORT COUNT KIND...: one process of unknown clients on a, the friend's node. On request, they
# wait until the plugin has disconnected COUNT of them, and end.
noise() {
	local port=$1 count=$2 kind

	shift 2
	play_bare a "strangers-$port" <<-END
		await $FAULTS/handle.first
		$(for kind in "$@"; do echo "noise $FAULTS/handle.first $port $kind $EACH"; done)
		touch $FAULTS/noise-$port
		await $FAULTS/hush
		limit 15000
		disconnected $count
		hush
		touch $FAULTS/hushed-$port
	END
}

# host PORT: the host under test, b, with its friend a: a connection from before the noise, which is
# used while it lasts, and one that is made in it.
host() {
	play b host <<-END
		buffer 0 2M
		accepts 0 $FAULTS/handle
		reg 0 0 0
		transfer 0 64K 50 1
		transfer 0 500 50 2
		fds before
		listen 9 $FAULTS/handle.first
		touch $FAULTS/noise-begin
		await $FAULTS/noise-$1
		within $(ms 20000) transfer 0 64K 300 3
		within $(ms 20000) transfer 0 500 300 4
		listen 1 $FAULTS/handle.1
		within $(ms 20000) accept 1 1
		reg 1 1 0
		within $(ms 20000) transfer 1 64K 50 5
		dereg 1
		within $(ms 10000) close 1
		close-listen 1
		idle 2000 $(ms 400)
		touch $FAULTS/hush
		await $FAULTS/hushed-$1
		limit 15000
		fds-back before $LEAK
		idle 1000 $(ms 200)
		transfer 0 64K 50 6
		drop 0
		close-listen 0
		close-listen 9
	END
	play a friend <<-END
		connects 0 $FAULTS/handle 2M
		transfer 0 64K 50 1
		transfer 0 500 50 2
		transfer 0 64K 300 3
		transfer 0 500 300 4
		await $FAULTS/handle.1
		within $(ms 20000) connect 1 $FAULTS/handle.1
		reg 1 1 0
		transfer 1 64K 50 5
		drop 1
		transfer 0 64K 50 6
		drop 0
	END
}

# try PORT COUNT KIND...
try() {
	rm -f "$FAULTS"/{handle,noise,hush}*
	host "$1"
	arrives noise-begin
	noise "$@"
	ended host
	ended friend
	ended "strangers-$1"
	unsaid host WARN "node a"
	note "$1 port, $EACH each of: ${*:3}"
	note "  $(grep -h '^note.*\(CPU\|descriptors\)' "$FAULTS/host.log" | sed 's/^note //' |
		paste -sd ';')"
}

faults_init
mesh_up triangle
# The plugin disconnects the silent ones after 10 s (SILENCE_MS in peer.c).
try control $((6 * EACH)) random half oversize version nothing header
try endpoint 0 random half
# libfabric 1.17 keeps the socket of a client that connects to its port and disconnects without
# sending: it reads errno where recv() returned 0 (xnet_cm.c), which is EAGAIN from another socket
# by then.
LEAK=$EACH
try endpoint 0 nothing
# Each of these may hold up the provider for 250 ms (HANDSHAKE_LIMIT_US in provider_sockets.c).
EACH=4
LEAK=$EACH
try endpoint 0 handshake
