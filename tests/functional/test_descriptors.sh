#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_descriptors.sh - no file descriptors left: an error in words, and the plugin works once there
# are some again. Many connections one after the other leak neither descriptors nor memory.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Connections in a row. What each may keep: libfabric's address tables grow a little.
ROUNDS=100
KEPT_BYTES=$((16 << 20))

# one_nic NAME: what opens a domain gives descriptors back later, so none may be opening when they
# are exhausted: waits until that of the only NIC is open. The process awaits the file "opened".
one_nic() {
	wait_for "grep -q ' NIC 0: .* uses tcp' $FAULTS/$1.log" $((60 * FAULTS_SLOW)) ||
		faults_show "$1 does not open its domain"
	touch "$FAULTS/opened"
}

receive_once() {
	cat <<-END
		accept $1 $1
		reg $1 $1 0
		transfer $1 64K 4 $1
		dereg $1
		within $(ms 5000) close $1
		close-listen $1
	END
}

send_once() {
	cat <<-END
		connects $1 $FAULTS/$1
		reg $1 $1 0
		transfer $1 64K 4 $1
		dereg $1
		within $(ms 5000) close $1
	END
}

no_leak() {
	local i

	play a receiver <<-END
		buffer 0 1M
		$(for ((i = 1; i <= ROUNDS + 10; i++)); do
			((i != 11)) || echo "fds before"
			((i != 11)) || echo "memory before"
			echo "listen $i $FAULTS/$i"
			receive_once $i
		done)
		limit 10000
		fds-back before 0
		memory-back before $((KEPT_BYTES * FAULTS_SLOW))
	END
	play b sender <<-END
		buffer 0 1M
		$(for ((i = 1; i <= ROUNDS + 10; i++)); do
			((i != 11)) || echo "fds before"
			((i != 11)) || echo "memory before"
			send_once $i
		done)
		limit 10000
		fds-back before 0
		memory-back before $((KEPT_BYTES * FAULTS_SLOW))
	END
	ended receiver
	ended sender
	note "$ROUNDS connections: $(grep -h 'note.*before$' "$FAULTS"/{receiver,sender}.log |
		sed 's/^note //' | paste -sd ';')"
}

# Also the process's whole use of the plugin, again and again. A thread opens each domain: what the
# C library keeps in an arena of a thread that has ended, up to 17 MB on libfabric 2.1, is no leak,
# nor a hole of that size between what other threads hold.
no_leak_of_init() {
	local i rounds=30

	MALLOC_ARENA_MAX=1 play a again <<-END
		$(for ((i = 0; i < rounds + 2; i++)); do
			((i != 2)) || echo "fds before"
			((i != 2)) || echo "memory before"
			echo "init 0"
			echo "listen 1 $FAULTS/again"
			echo "connect 1 $FAULTS/again"
			echo "close 1"
			echo "finalize 0"
		done)
		fds-back before 0
		memory-back before $((2 * KEPT_BYTES * FAULTS_SLOW))
	END
	ended again
	note "$rounds times init to finalize: $(grep -h 'note.*before$' "$FAULTS/again.log" |
		sed 's/^note //' | paste -sd ';')"
}

# exhausted_at_listen FREE: with so many descriptors left.
exhausted_at_listen() {
	rm -f "$FAULTS/1"
	play a receiver <<-END
		exhaust $1
		! within $(ms 10000) listen 0 $FAULTS/none
		release
		listen 1 $FAULTS/1
		buffer 0 1M
		$(receive_once 1)
	END
	play b sender <<-END
		buffer 0 1M
		$(send_once 1)
	END
	ended receiver
	ended sender
	said receiver WARN "open files|ulimit"
	note "listen with $1 descriptors left: $(grep -Em1 '^WARN' "$FAULTS/receiver.log")"
}

# exhausted_at_connect FREE
exhausted_at_connect() {
	rm -f "$FAULTS"/{1,2,opened}
	play a receiver <<-END
		listen 1 $FAULTS/1
		listen 2 $FAULTS/2
		buffer 0 1M
		await $FAULTS/2
		$(receive_once 1)
	END
	NCCL_MESH_NICS=ba play b sender <<-END
		listen 3 $FAULTS/3
		buffer 0 1M
		await $FAULTS/2
		await $FAULTS/opened
		exhaust $1
		! within $(ms 12000) connect 2 $FAULTS/2
		close 2
		release
		$(send_once 1)
		close-listen 3
	END
	one_nic sender
	ended sender
	ended receiver
	said sender WARN "open files|ulimit"
	note "connect with $1 descriptors left: $(grep -Em1 '^WARN.*(ulimit|open files)' \
		"$FAULTS/sender.log")"
}

# exhausted_at_accept FREE: the acceptor has none; it reports that, and works once it has.
exhausted_at_accept() {
	rm -f "$FAULTS"/{1,2,opened,go,failed,released}
	NCCL_MESH_NICS=ab play a receiver <<-END
		listen 1 $FAULTS/1
		listen 2 $FAULTS/2
		buffer 0 1M
		await $FAULTS/opened
		exhaust $1
		touch $FAULTS/go
		idle 1000 $(ms 300)
		! within $(ms 12000) accept 2 2
		close 2
		await $FAULTS/failed
		release
		touch $FAULTS/released
		$(receive_once 1)
	END
	play b sender <<-END
		buffer 0 1M
		await $FAULTS/go
		! within $(ms 12000) connect 2 $FAULTS/2
		touch $FAULTS/failed
		close 2
		await $FAULTS/released
		$(send_once 1)
	END
	one_nic receiver
	ended receiver
	ended sender
	said receiver WARN "open files|ulimit"
	said sender WARN "10\.77\.1\.1"
	note "accept with $1 descriptors left: $(grep -Em1 '^WARN.*(ulimit|open files)' \
		"$FAULTS/receiver.log")"
}

# NCCL_MESH_ACCEPT_TIMEOUT must outlast the other side's timeout and its second attempt.
FAULTS_ENV[1]=NCCL_MESH_ACCEPT_TIMEOUT=60
faults_init
mesh_up triangle
no_leak
no_leak_of_init
exhausted_at_listen 0
exhausted_at_listen 2
# The sockets of a question are closed after a second, and would become free meanwhile.
FAULTS_ENV+=(NCCL_MESH_NEIGHBOURS=off)
exhausted_at_connect 0
exhausted_at_connect 1
FAULTS_ENV[1]=NCCL_MESH_ACCEPT_TIMEOUT=6
exhausted_at_accept 0
exhausted_at_accept 1
