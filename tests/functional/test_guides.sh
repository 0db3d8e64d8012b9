#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_guides.sh - the commands of docs/guides/hardware.md work, on the triangle it describes.
#
# A block of the guide that follows a line <!-- tried: NODE... [, stays|repeats] [; needs WORD] -->
# is typed on these nodes, in the guide's order. It "stays" in the background, or it "repeats"
# until what stays on the other node is ready. It is left where neither a program nor a subcommand
# of fi_mesh is called WORD.
# seconds: 60
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/lib.sh
. "$here/lib.sh"
# shellcheck source=tests/functional/guide.sh
. "$here/guide.sh"

GUIDE=hardware.md
OUT=$MESH_BUILD/functional/test_guides
export PATH=$MESH_BUILD:$PATH
blocks=0 left=0

# A triangle as the guide has it, before the cables have addresses.
make_nodes() {
	local node

	mesh_node a b c
	mesh_link a enp1s0f0np0 - b enp1s0f0np0 -
	mesh_link a enp1s0f1np1 - c enp1s0f0np0 -
	mesh_link b enp1s0f1np1 - c enp1s0f1np1 -
	for node in a b c; do
		mesh_addresses "$node" mgmt0 "192.168.1.$((9 + MESH_NODE_NUMBER[$node]))/24"
	done
}

available() {
	command -v "$1" >/dev/null || fi_mesh --help | grep -qE "^  $1 "
}

# type_block NODES HOW FILE: like a user who stops at the first command that fails.
type_block() {
	local node log=$3.log

	for node in $1; do
		case $2 in
		stays) mesh_spawn "$node" "$3.stays" bash -e "$3" ;;
		repeats)
			wait_for "on $node bash -e '$3' >'$log' 2>&1" 60 ||
				{ cat "$3" "$log" "$OUT"/*.stays; fail "on $node"; }
			;;
		*)
			on "$node" bash -e "$3" >"$log" 2>&1 </dev/null ||
				{ cat "$3" "$log"; fail "on $node"; }
			;;
		esac
	done
}

# try_block REMARK FILE
try_block() {
	local remark=$1 needs="" how=""

	[[ $remark != *"; needs "* ]] || { needs=${remark#*; needs }; remark=${remark%; needs*}; }
	[[ $remark != *", "* ]] || { how=${remark#*, }; remark=${remark%, *}; }
	if [[ $needs ]] && ! available "$needs"; then
		note "left, as there is no $needs: $(head -1 "$2")"
		((++left))
		return
	fi
	((++blocks))
	type_block "$remark" "$how" "$2"
}

for tool in ping ethtool fi_info; do
	command -v $tool >/dev/null || skip "'$tool' is missing (scripts/install-deps.sh)"
done
mesh_init
rm -rf "$OUT"
mkdir -p "$OUT"
make_nodes
cd "$OUT" || exit 1
n=0
while read -r -u 3 remark; do
	try_block "$remark" "$OUT/$(printf 'block%02d' $n)"
	((++n))
done 3< <(guide_blocks "$GUIDE" "$OUT")
((blocks >= 10)) || fail "only $blocks blocks were found in $GUIDE"
for pair in "0 .a. +1 .b. +enp1s0f0np0 192.168.101.1 -> 192.168.101.2" \
	"0 .a. +2 .c. +enp1s0f1np1 192.168.100.1 -> 192.168.100.2" \
	"1 .b. +2 .c. +enp1s0f1np1 192.168.102.1 -> 192.168.102.2"; do
	wait_for "cat '$OUT'/*.stays | grep -qE '$pair'" 60 ||
		{ cat "$OUT"/*.stays; fail "no pair '$pair' in fabric_pingpong's table"; }
done
note "$blocks blocks of the guide worked, $left were left; each pair used its own cable"
