#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_nic_joins.sh - an RDMA NIC whose link comes up while the process runs carries the next comm:
# with RDMA where libfabric can list its devices anew (2.2 and later), else with tcp, in words.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

# comm ROLE NAME: a comm by the handle NAME that carries 3 messages of 1 MiB, and is closed.
comm() {
	meet "$1" 1M | sed "s|$FAULTS/handle|$FAULTS/$2|"
	printf '%s\n' "transfer 0 1M 3 5" "dereg 0" "close 0"
	[[ $1 != listen ]] || echo "close-listen 0"
}

# scene ROLE: one comm before the new NIC has joined, and one after.
scene() {
	printf '%s\n' "limit $TRANSFER_MS" "init 0"
	comm "$1" first
	printf '%s\n' "touch $FAULTS/ready.$1" "await $FAULTS/joined"
	comm "$1" again
	echo "finalize 0"
}

# The version of the libfabric that the plugin has, as "2.6".
version() { sed -n 's/^INFO .*protocol.* libfabric \([0-9]*\.[0-9]*\).*/\1/p' "$FAULTS/a.log"; }

# lists_anew: since 2.2.
lists_anew() { awk -v v="$1" 'BEGIN {split(v, p, "."); exit !(p[1] * 100 + p[2] >= 202)}'; }

transfer_two_cables
for nic in "a ax" "b bx"; do
	# shellcheck disable=SC2086 # two words
	set -- $nic
	ip -n "$MESH_PREFIX$1" link set "$2" down || fail "cannot set $2 down"
done
play a a < <(scene connect)
play b b < <(scene listen)
arrives ready.connect ready.listen
for nic in "a ax" "b bx"; do
	# shellcheck disable=SC2086 # two words
	set -- $nic
	unsaid "$1" INFO "NIC [0-9]+: $2 uses"
	ip -n "$MESH_PREFIX$1" link set "$2" up || fail "cannot set $2 up"
done
for nic in "a ax" "b bx"; do
	# shellcheck disable=SC2086 # two words
	set -- $nic
	wait_for "grep -Eq '^INFO .*NIC [1-9]: $2 uses' $FAULTS/$1.log" 120 ||
		faults_show "$2 does not join"
done
# Only the new cable is left.
ip -n "${MESH_PREFIX}a" link set ab down
ip -n "${MESH_PREFIX}b" link set ba down
touch "$FAULTS/joined"
ended a
ended b
libfabric=$(version)
[[ $libfabric ]] || fail "libfabric's version is not known"
for name in "a ax" "b bx"; do
	# shellcheck disable=SC2086 # two words
	set -- $name
	if lists_anew "$libfabric"; then
		said "$1" INFO "path: from=a to=b nic=$2 .*provider=verbs"
		unsaid "$1" WARN "came up late"
	else
		said "$1" INFO "path: from=a to=b nic=$2 .*provider=tcp"
		said "$1" WARN "$2 came up late and joins with tcp .*rxe_$2"
	fi
done
note "libfabric $libfabric: $(grep -Eo 'path: from=a to=b nic=ax .*' "$FAULTS/a.log" | head -1)"
