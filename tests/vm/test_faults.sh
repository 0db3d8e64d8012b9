#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_faults.sh - over verbs: a peer dies in mid-transfer, a link goes down, a device disappears,
# memory cannot be registered. Each is an error in words and in bounded time, and leaves no RDMA
# object.
. "$(dirname "${BASH_SOURCE[0]}")/../functional/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/rdma.sh"

# Until a peer that ended silently counts as lost, and a close has waited for as long again:
# three times this is more than twice FAULTS_ENV's 8 s and a probe.
LOST=9000

begin() {
	CASE=$1
	STARTED=$SECONDS
	OBJECTS=$(rdma_objects)
	LEAST_OBJECTS=$(rdma_objects "${PLUGIN_OBJECTS[@]}")
	rm -f "$FAULTS"/{handle,go,broken,closed,checked}
}

# The processes have ended, and all that they made is freed.
finish() {
	wait_for "[[ \$(rdma_objects) == '$OBJECTS' ]]" 60 ||
		fail "$CASE: RDMA objects are left: $(rdma_objects), before: $OBJECTS"
	note "$CASE ($((SECONDS - STARTED)) s): $(grep -hE '^WARN ' "$FAULTS/$1.log" | head -1)"
}

# A process that stays when it has closed everything: the plugin itself must leave nothing. The
# device's context (ctx) is libfabric's, from the first fi_getinfo to the process's end.
PLUGIN_OBJECTS=(pd cq qp cm_id mr srq)
left_nothing() {
	arrives closed
	libc_unchanged survivor
	wait_for "[[ \$(rdma_objects ${PLUGIN_OBJECTS[*]}) == '$LEAST_OBJECTS' ]]" 60 ||
		faults_show "$CASE: the living process keeps RDMA objects: $(rdma_objects)"
	touch "$FAULTS/checked"
}

# libc_unchanged NAME: in the living process libc's code is one mapping, as the loader made it. A
# page that was written to, such as by a hook at the start of munmap(), is a mapping of its own.
libc_unchanged() {
	local mappings

	mappings=$(grep -c ' r-xp .*/libc\.so' "/proc/${FAULTS_PID[$1]}/maps")
	((mappings == 1)) || faults_show "$CASE: libc's code was changed: $mappings mappings of it"
}

# receiver NAME, sender NAME: 64 MiB under way; the script's end is the caller's.
receiver() {
	play a "$1" <<-END
		limit $(ms $LOST)
		accepts 0 $FAULTS/handle 64M
		post 0 0 0 64M
		thread 1 ${2:-!} test 0
		written 0 1M
		touch $FAULTS/go
		$(cat)
	END
}

sender() {
	play b "$1" <<-END
		limit $(ms $LOST)
		connects 0 $FAULTS/handle 64M
		post 0 0 0 64M
		thread 1 ${2:-!} test 0
		await $FAULTS/go
		$(cat)
	END
}

# What a survivor does from "broken" on: an error in time, then all is closed, and it lives on.
survive() {
	cat <<-END
		await $FAULTS/broken
		join 1 $(ms $LOST)
		within $(ms $LOST) dereg 0
		within $(ms $LOST) close 0
		${1:-}
		within $(ms 3000) finalize 0
		touch $FAULTS/closed
		await $FAULTS/checked
	END
}

receiver_killed() {
	begin "receiver killed, writes in flight"
	receiver victim '?' <<<"join 1"
	sender survivor < <(survive)
	arrives go
	signal victim KILL
	touch "$FAULTS/broken"
	ended victim 137
	left_nothing
	ended survivor
	said survivor WARN 'lost node a .*10\.77\.1\.1'
	finish survivor
}

sender_killed() {
	begin "sender killed, the receive half written"
	receiver survivor < <(survive "close-listen 0")
	sender victim '?' <<<"join 1"
	arrives go
	signal victim KILL
	touch "$FAULTS/broken"
	ended victim 137
	left_nothing
	ended survivor
	said survivor WARN 'lost node b \(10\.77\.1\.2\)'
	finish survivor
}

# both_survive CASE ONE OTHER COMMAND...: the command breaks the link between two processes that
# live on, of which the receiver says ONE and the sender OTHER.
both_survive() {
	begin "$1"
	receiver one < <(survive "close-listen 0")
	sender other < <(survive)
	arrives go
	"${@:4}"
	touch "$FAULTS/broken"
	ended_after_check one
	ended_after_check other
	said one WARN "$2"
	said other WARN "$3"
}

ended_after_check() {
	arrives closed
	touch "$FAULTS/checked"
	ended "$1"
}

# Soft-RoCE's queue pair for the connection manager does not outlive what it sends while the link is
# down ("type GSI state ERR" in `rdma resource show qp`): no further connection is made.
link_down() {
	both_survive "link down on the receiver's side" 'lost node b \(10\.77\.1\.2\)' \
		'lost node a .*10\.77\.1\.1' \
		ip -n "${MESH_PREFIX}a" link set ab down
	finish one
	ip -n "${MESH_PREFIX}a" link set ab up
	rdma_device_renew a ab
}

# The kernel removes the device when the last process that uses it has closed it.
device_delete() { rdma link delete rxe_ab & }

# The device no longer answers, but the control connection lives, and soft-RoCE repeats for ever.
device_deleted() {
	both_survive "RDMA device removed on the receiver's side" \
		'lost node b|node b .* cut its connections .* nothing had moved there for 8 s' \
		'no RDMA write has been answered' device_delete
	note "$CASE: $(grep -hE '^WARN ' "$FAULTS/other.log" | head -1)"
}

# Locked memory is limited for a user without CAP_IPC_LOCK, root or not: a container is like that.
registration_fails() {
	local env=("${FAULTS_ENV[@]}")

	begin "a registration fails"
	FAULTS_ENV+=(prlimit --memlock=$((220 << 20)) setpriv --bounding-set -ipc_lock)
	play a limited <<-END
		accepts 0 $FAULTS/handle
		buffer 0 256M
		! within $(ms 2000) reg 0 0 0
		buffer 1 1M
		reg 1 0 1
		transfer 1 1M 3 1
		dereg 1
		close 0
		close-listen 0
	END
	FAULTS_ENV=("${env[@]}")
	play b other <<-END
		connects 0 $FAULTS/handle 1M
		transfer 0 1M 3 1
		drop 0
	END
	ended limited
	ended other
	said limited WARN 'cannot register 268435456 bytes .*(memlock|ulimit -l)'
	finish limited
}

faults_init
pair_up
receiver_killed
sender_killed
link_down
registration_fails
device_deleted
