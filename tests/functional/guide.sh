# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# guide.sh - the commands of a guide, for the test that types it. To be sourced.

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# guide_blocks GUIDE FOLDER: writes each code block of docs/guides/GUIDE that follows a line
# <!-- tried: REMARK --> into FOLDER/block00, block01 ..., and prints its REMARK.
guide_blocks() {
	awk -v out="$2" '
		/^<!-- tried: .* -->$/ {remark = $0; gsub(/^<!-- tried: | -->$/, "", remark); next}
		/^```/ && inside {close(file); inside = 0; print remark; remark = ""; next}
		/^```/ && remark {inside = 1; file = sprintf("%s/block%02d", out, n++); next}
		inside {print >file}
	' "$MESH_TOP/docs/guides/$1"
}

# --- typing them -----------------------------------------------------------------------------

# A block that follows a line <!-- tried: NODE... [, stays|repeats] [; needs WORD] --> is typed on
# these nodes, in the guide's order. It "stays" in the background, or it "repeats" until what stays
# on the other node is ready. It is left where neither a program nor a subcommand of fi_mesh is
# called WORD.
GUIDE_TYPED=0 GUIDE_LEFT=0

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
		((++GUIDE_LEFT))
		return
	fi
	((++GUIDE_TYPED))
	type_block "$remark" "$how" "$2"
}

# guide_works GUIDE LEAST PAIR...: every block that is tried works, of which there are at least so
# many, and fabric_pingpong's table in what stays has each PAIR (a regular expression). The pairs
# share the sizes that are checked, and each measurement is short.
guide_works() {
	local pair

	pingpong_short "$OUT/bin" --check-every 6 --seconds 0.02 --repeat 1
	export PATH=$OUT/bin:$MESH_BUILD:$PATH
	cd "$OUT" || exit 1
	guide_type "$1" "$OUT"
	((GUIDE_TYPED >= $2)) || fail "only $GUIDE_TYPED blocks were found in $1"
	for pair in "${@:3}"; do
		wait_for "cat '$OUT'/*.stays | grep -qE '$pair'" 60 ||
			{ cat "$OUT"/*.stays; fail "no pair '$pair' in fabric_pingpong's table"; }
	done
	note "$GUIDE_TYPED blocks worked, $GUIDE_LEFT were left"
}

# guide_type GUIDE FOLDER: types all of its blocks; FOLDER gets them, with their logs.
guide_type() {
	local number=0 remark

	while read -r -u 3 remark; do
		try_block "$remark" "$2/$(printf 'block%02d' $number)"
		((++number))
	done 3< <(guide_blocks "$1" "$2")
}
