# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# expect.sh - runs ranks and checks which paths they took. To be sourced.

# shellcheck source=tests/functional/lib.sh
declare -F mesh_init >/dev/null || . "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Sanitizers make everything 5 to 20 times slower: tests then do less of the same.
MESH_SLOW=${MESH_SLOW:-}
[[ $MESH_BUILD != *sanitize* ]] || MESH_SLOW=1
# The ranks' output is kept here, to examine a failure.
OUT=$MESH_RESULTS/$(basename "$0" .sh)
EXPECTED=$OUT/expected

command -v python3 >/dev/null || skip "python3 is missing"
rm -rf "$OUT"
mkdir -p "$OUT"
: >"$EXPECTED"

slow() { [[ $MESH_SLOW ]]; }

# ranks_pass RUN NODE... -- ARGUMENT...: a run that has to pass; RUN names its folder in $OUT.
ranks_pass() {
	local run=$1

	shift
	run_ranks "$OUT/$run" "$@" --json ||
		{ ranks_show "$OUT/$run"; fail "run $run: ranks ended with ${RANKS_STATUS[*]}"; }
}

# ranks_refuse RUN SECONDS WORDS NODE... -- ARGUMENT...: a run in which every rank has to end with
# status 1 within this time, and some rank's output has to have the words (a regular expression).
ranks_refuse() {
	local run=$1 limit=$2 words=$3 status started=$SECONDS

	shift 3
	run_ranks "$OUT/$run" "$@"
	((SECONDS - started <= limit)) || fail "run $run took $((SECONDS - started)) s, not $limit"
	for status in "${RANKS_STATUS[@]}"; do
		((status == 1)) || { ranks_show "$OUT/$run"; fail "run $run: ${RANKS_STATUS[*]}"; }
	done
	said "$run" "$words"
}

# said RUN WORDS: some rank's output matches the regular expression.
said() {
	cat "$OUT/$1"/rank*.out | grep -qE -e "$2" ||
		{ ranks_show "$OUT/$1"; fail "run $1: no rank says '$2'"; }
}

# expect_paths RUN FROM TO PATH...: the pair has to take exactly these paths, each written as
# NIC:LOCAL>REMOTE, for a routed path with @routed behind it; a part may be "*". expect_check looks
# at all that were noted.
expect_paths() { echo "$OUT/$1/rank0.out ${*:2}" >>"$EXPECTED"; }

# expect_cable RUN X Y NIC:ADDRESS NIC:ADDRESS [@routed]: the pairs of ranks X and Y have to take
# this one path, either way.
expect_cable() {
	expect_paths "$1" "$2" "$3" "$4>${5#*:}${6:-}"
	expect_paths "$1" "$3" "$2" "$5>${4#*:}${6:-}"
}

# expect_triangle RUN: each pair of a `mesh_up triangle` its own cable.
expect_triangle() {
	expect_cable "$1" 0 1 ab:10.77.1.1 ba:10.77.1.2
	expect_cable "$1" 1 2 bc:10.77.2.1 cb:10.77.2.2
	expect_cable "$1" 2 0 ca:10.77.3.1 ac:10.77.3.2
}

expect_check() {
	python3 "$MESH_TOP/tests/functional/check_paths.py" <"$EXPECTED" ||
		fail "a pair was wrong or left its path"
	: >"$EXPECTED"
}

# bytes_sent NODE NIC...: what the NICs have sent so far, in one line.
bytes_sent() {
	local node=$1

	shift
	# shellcheck disable=SC2046 # one word per NIC
	ip netns exec "$MESH_PREFIX$node" \
		cat $(printf '/sys/class/net/%s/statistics/tx_bytes ' "$@") | tr '\n' ' '
}

# even WHAT BEFORE AFTER: prints how many bytes each NIC has sent between two lines of bytes_sent;
# status 0 if that is the same, to 10 %.
even() {
	awk -v what="$1" -v before="$2" -v after="$3" 'BEGIN {
		num = split(before, b, " "); split(after, a, " ")
		for (k = 1; k <= num; k++) {
			d = a[k] - b[k]
			if (k == 1 || d < least) least = d
			if (k == 1 || d > most) most = d
		}
		printf "  %s: %d to %d bytes a NIC (%.1f %%)\n", what, least, most,
			least ? 100 * (most - least) / least : 0
		exit !(least > 1000000 && most <= 1.1 * least)
	}'
}
