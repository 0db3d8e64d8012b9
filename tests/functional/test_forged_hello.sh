#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_forged_hello.sh - a local user learns the ids of two processes, which anybody can ask for,
# and claims to be one of them that connects to the other one anew: that is refused, and the link
# between the two is not lost.
# seconds: 15
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

command -v python3 >/dev/null || skip "python3 is missing"
CLAIMS=20

# process_heard NODE: the id of the rank at the other end of its cable.
process_heard() {
	on "$1" "$MESH_BUILD/fi_mesh" neighbours --json | python3 -c '
import json, sys
heard = json.load(sys.stdin)["nics"][0]["neighbours"][0]
print(next(p["process_id"] for p in heard["processes"] if p["role"] == "rank"))'
}

cables_init 1 200mbit
stream forged 0
carries x1 20000
own=$(process_heard b) other=$(process_heard a)
[[ $own == 0x* && $other == 0x* ]] || fail "the ids are not known: $own, $other"
{
	for ((n = 0; n < CLAIMS; n++)); do
		echo "claim $STREAM_FOLDER/handle-0-of-1 $own $other"
	done
	echo "disconnected $CLAIMS"
	echo hush
} >"$FAULTS/forger.script"
on a "$MESH_BUILD/functional/fault_driver" "$MESH_BUILD/libnccl-net-mesh.so" \
	"$FAULTS/forger.script" >"$FAULTS/forger.log" ||
	stream_fail "the forger: $(tail -5 "$FAULTS/forger.log")"
moves 10000
stream_stop
stream_ends
for rank in 0 1; do
	! grep 'WARN .*lost' "$STREAM_FOLDER/rank$rank.out" || stream_fail "rank $rank lost a link"
done
