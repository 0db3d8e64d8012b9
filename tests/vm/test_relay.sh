#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay.sh - a relay r between the nodes a and b: first with RDMA on the cable to a only, then
# on both. Every byte is checked, and what the relay gets and sends is counted on the wire: for each
# segment one write and one message in, and the same out, or a write with immediate alone.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

OUT=$MESH_RESULTS
SIZE=$((1 << 20))
SEGMENTS=2 # of each message: an eighth of the circuit's 4 MiB each
MESSAGES=8
SMALL=64 # bytes of a message that needs no grant

# Node b has no RDMA at first; the relay's NIC towards it has.
RDMA_NICS="ar ra rb"

# per_segment ROOM WRITES SENDS IMMEDIATES: what each segment of a message into a receive of ROOM
# bytes costs: one write and one message in, and so many out.
per_segment() {
	local num=$((MESSAGES * SEGMENTS))

	rm -f "$TRANSFER_GATE"
	transfer_start $SIZE $MESSAGES "$1"
	arrives connected accepted
	rdma_quiet ra rb
	rdma_count r ra
	rdma_count r rb
	touch "$TRANSFER_GATE"
	ended sender
	ended receiver
	rdma_count_end ra rb
	counts ra received writes $num
	counts ra received immediates 0
	counts ra received sends $num 2
	counts rb sent writes $((num * $2))
	counts rb sent sends $((num * $3)) 2
	counts rb sent immediates $((num * $4))
	note "$num segments: in $num writes and as many sends; out $((num * $2)) writes" \
		"($((num * $4)) with immediate) and $((num * $3)) sends; back" \
		"$(rdma_counted rb received sends) sends in, $(rdma_counted ra sent sends) out"
}

# counts NIC sent|received KIND NUMBER [MORE]: so many, or up to MORE more: libfabric's credits are
# a message for every 64 that came.
counts() {
	local seen

	seen=$(rdma_counted "$1" "$2" "$3")
	((seen >= $4 && seen <= $4 + ${5:-0})) || fail "$1 $2 $seen $3, not $4"
}

# circuits KEY: the sum of this counter over the relay's circuits.
circuits() {
	on r "$MESH_BUILD/fi_mesh" watch --count 1 --json --pid "${FAULTS_PID[relay]}" \
		>"$FAULTS/watch" || fail "watch: $?"
	python3 -c 'import json, sys
print(sum(c[sys.argv[2]] for c in json.load(open(sys.argv[1]))["circuits"]))' \
		"$FAULTS/watch" "$1"
}

# led PROVIDER: both ends' paths lead through the relay, by RDMA to it, and by PROVIDER from there.
led() {
	said sender INFO "path: from=a to=b nic=ar .*via=r provider=verbs;ofi_rxm"
	said receiver INFO "path: from=a to=b nic=br .*via=r provider=$1"
}

FAULTS_ENV+=("${TRANSFER_PATIENT[@]}" MASTER_ADDR=127.0.0.1 MASTER_PORT=29500)
faults_init
TRANSFER_GATE=$FAULTS/counting
mesh_node a r b
mesh_link a ar 10.77.1.1/24 r ra 10.77.1.2/24
mesh_link r rb 10.77.2.1/24 b br 10.77.2.2/24
rdma_up
relays r relay

# The cable to b carries no RDMA.
per_segment $SIZE 0 0 0
led tcp
note "RDMA in, tcp out: every byte is right"

RDMA_NICS+=" br"
rdma_device_renew b br
per_segment $SIZE 1 0 1
led "verbs;ofi_rxm"
per_segment $((SIZE + 1024)) 1 1 0
[[ $(circuits copied) == 0 ]] || fail "the relay has copied $(circuits copied) bytes"
(($(circuits bytes) >= 3 * MESSAGES * SIZE)) || fail "relayed: $(cat "$FAULTS/watch")"
note "RDMA on both cables: every byte is right, and the relay has copied none"
TRANSFER_GATE=""
transfer $SMALL 8
(($(circuits copied) >= 8 * SMALL)) ||
	fail "of $((8 * SMALL)) bytes in small messages $(circuits copied) are counted as copied"
note "small messages pass through the relay's buffers"
touch "$FAULTS/over"
ended relay
