#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_drain_new.sh - what begins while a NIC is drained takes another one: a connection with one
# path, the first hop of a route through a relay, whether its near or its far NIC is drained, and
# the relay's own hop to the listener. With every cable drained all of it works as before.
# seconds: 20
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

faults_init
STATS=$FAULTS/stats
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500" "NCCL_MESH_DEBUG_MAX_PATHS=1"
	"NCCL_MESH_STATS_DIR=$STATS" "NCCL_MESH_CONNECT_TIMEOUT=60" "NCCL_MESH_ACCEPT_TIMEOUT=60")
# One folder for all nodes, whose NICs have other names.
mesh_node a r b
for i in 1 2; do
	mesh_link a ar$i 10.77.$i.1/24 r ra$i 10.77.$i.2/24
	mesh_link r rb$i 10.77.1$i.1/24 b br$i 10.77.1$i.2/24
done

# drain NIC..., undrain NIC...: a NIC's name begins with its node's.
drain() {
	local nic

	for nic; do
		on "${nic::1}" "$MESH_BUILD/fi_mesh" drain --stats-dir "$STATS" --timeout 0 "$nic" \
			>"$FAULTS/marks" 2>&1
		[[ -e $STATS/drain-$nic ]] || fail "drain $nic: $(cat "$FAULTS/marks")"
	done
}

undrain() {
	local nic

	for nic; do
		on "${nic::1}" "$MESH_BUILD/fi_mesh" undrain --stats-dir "$STATS" "$nic" \
			>"$FAULTS/marks" 2>&1 || fail "undrain $nic: $(cat "$FAULTS/marks")"
	done
}

# carry NAME FROM TO: one message, on a new connection of new processes.
carry() {
	rm -f "$FAULTS/handle" "$FAULTS/handle.met"
	play "$3" "$1-to" <<-END
		limit 120000
		$(meet listen 64K)
		transfer 0 60000 8 3
		close 0
	END
	play "$2" "$1-from" <<-END
		limit 120000
		$(meet connect 64K)
		transfer 0 60000 8 3
		close 0
	END
	ended "$1-from"
	ended "$1-to"
}

# relayed NAME NIC NIC NIC: the path from a to b leaves on the first one, and the relay uses the
# others.
relayed() {
	carry "$1" a b
	said "$1-from" INFO "path: from=a to=b nic=$2 .*via=r"
	grep -q "^INFO .*relay: a circuit from node a to node b, $3 to $4," "$FAULTS/relay.log" ||
		faults_show "no circuit from $3 to $4"
	note "$1: $2, $3, $4"
}

# Where it speaks for the node, the marks that ranks know of are reported all the same.
serve r b
relays r relay
for i in 1 2; do
	other=$((3 - i))
	# The near NICs.
	drain ar$i rb$i
	carry direct$i a r
	said direct$i-from INFO "path: from=a to=r nic=ar$other "
	relayed near$i ar$other ra$other rb$other
	undrain ar$i rb$i
	# The far NIC of the first hop, of which the neighbour's answer tells.
	drain ra$i
	carry far$i a b
	said far$i-from INFO "path: from=a to=b nic=ar$other .*via=r"
	undrain ra$i
done
drain ar1 ar2 rb1 rb2
carry all a r
carry relayed a b
said relayed-from INFO "path: from=a to=b nic=ar. .*via=r"
note "with every cable drained there is no other way"
touch "$FAULTS/over"
ended relay
