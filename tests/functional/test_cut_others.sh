#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cut_others.sh - a connection that is closed while the peer's process is stopped is cut off,
# and with it what lies in the provider's socket: messages of other connections that count as sent.
# Both ends of those fail at once, in words, also at the process that goes on later.
# seconds: 10
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/faults.sh
. "$here/faults.sh"

# Short enough messages are copied by the provider, and are done at once; more than these would
# need another grant.
MESSAGES=15
# Far below NCCL_MESH_DEAD_PEER_TIMEOUT, after which another check finds a lost message.
AT_ONCE=4000
FAULTS_ENV+=("NCCL_MESH_DEAD_PEER_TIMEOUT=8")

sequence() { seq "$1" "$MESSAGES"; }

faults_init
mesh_up triangle
play b victim <<-END
	init 0
	$(meet listen 64M)
	await $FAULTS/handle.second
	accept 1 0
	buffer 1 1M
	reg 1 1 1
	post 0 0 0 64M
	$(for i in $(sequence 1); do echo "post $i 1 ${i}K 64"; done)
	touch $FAULTS/ready
	stop
	! within $(ms $AT_ONCE) test $MESSAGES
	within $(ms $AT_ONCE) dereg 1
	within $(ms $AT_ONCE) close 1
	within $(ms $AT_ONCE) dereg 0
	within $(ms $AT_ONCE) close 0
	finalize 0
END
play a survivor <<-END
	init 0
	$(meet connect 64M)
	touch $FAULTS/handle.second
	connect 1 $FAULTS/handle
	buffer 1 1M
	reg 1 1 1
	await $FAULTS/stopped
	post 0 0 0 64M
	pending 0 500
	$(for i in $(sequence 1); do echo "post $i 1 ${i}K 64"; echo "test $i"; done)
	post 16 1 64K 512K
	within $(ms 12000) dereg 0
	! within $(ms $AT_ONCE) test 16
	touch $FAULTS/cut
	within $(ms $AT_ONCE) close 0
	within $(ms $AT_ONCE) dereg 1
	within $(ms $AT_ONCE) close 1
	await $FAULTS/done
	finalize 0
END
arrives ready
stands victim
touch "$FAULTS/stopped"
arrives cut
signal victim CONT
ended victim
touch "$FAULTS/done"
ended survivor
said survivor WARN "cut the connections with node b \(10\.77\.1\.2\) on ab \(10\.77\.1\.1\)"
said victim WARN "node a \(10\.77\.1\.1\) cut its connections with this process on ba"
said victim WARN "had not answered for 8 s: was it stopped"
