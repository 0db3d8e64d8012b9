#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_pingpong_detects.sh - fabric_pingpong passes a good plugin and sees each fault of a bad one.
#
# Ranks run on 127.0.0.1 with fake_plugin.so, which breaks NCCL's contract on demand
# (FAKE_PLUGIN_FAULT). A fault must end all ranks with a status that is not 0, and with words.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh" # for wait_for and skip; no namespaces are needed
PINGPONG=${FABRIC_PINGPONG:-$MESH_BUILD/fabric_pingpong}
PLUGIN=${FAKE_PLUGIN:-$MESH_BUILD/unit/fake_plugin.so}
# No run may take longer than this, whatever happens in it; sanitizers are slow.
LIMIT=180
QUICK=(--check --check-max 4K --sizes 8 --timeout 20)

[[ -x $PINGPONG && -r $PLUGIN ]] || skip "$PINGPONG or $PLUGIN is not built"
command -v python3 >/dev/null || skip "python3 is missing"

DIR=$(mktemp -d) || exit 1
PIDS=()
failures=0
port=$((20000 + $$ % 200 * 50)) # a range of its own for each test that runs now

cleanup() {
	local pid

	for pid in "${PIDS[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$DIR"
}
trap cleanup EXIT

complain() {
	echo "FAIL: $*"
	((failures++))
	tail -n 15 "$DIR"/out.* "$DIR"/err.* 2>/dev/null
}

# start_rank RANK WORLD ARG...: one rank in the background; VARIABLES come from the caller.
start_rank() {
	local rank=$1 world=$2
	shift 2

	RANK=$rank WORLD_SIZE=$world MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
		"$PINGPONG" --plugin "$PLUGIN" "$@" >"$DIR/out.$rank" 2>"$DIR/err.$rank" &
	PIDS[rank]=$!
}

# start_local WORLD ARG...: all ranks, the last one first.
start_local() {
	local world=$1 rank
	shift

	rm -f "$DIR"/out.* "$DIR"/err.*
	PIDS=()
	((port++))
	for ((rank = world - 1; rank >= 0; rank--)); do
		start_rank "$rank" "$world" "$@"
	done
}

# end_local: waits for all; STATUS[rank] is each one's, "late" if it did not end in time.
end_local() {
	local rank deadline=$((SECONDS + LIMIT))

	STATUS=()
	for rank in "${!PIDS[@]}"; do
		if wait_for "! kill -0 ${PIDS[rank]} 2>/dev/null" $((deadline - SECONDS)); then
			wait "${PIDS[rank]}"
			STATUS[rank]=$?
		else
			STATUS[rank]=late
			kill -KILL "${PIDS[rank]}"
		fi
	done
	PIDS=()
}

run_local() { start_local "$@"; end_local; }

# expect_fail NAME WORDS: every rank ended, none with 0, and some output has the words.
expect_fail() {
	local name=$1 words=$2 status

	for status in "${STATUS[@]}"; do
		if [[ $status == 0 || $status == late ]]; then
			complain "$name: exit statuses ${STATUS[*]}, expected others"
			return
		fi
	done
	if ! cat "$DIR"/out.* "$DIR"/err.* | grep -qE "$words"; then
		complain "$name: nothing says '$words'"
		return
	fi
	echo "  $name: seen"
}

expect_pass() {
	local name=$1

	if [[ ${STATUS[*]} != *[!0\ ]* ]]; then
		echo "  $name: passed"
	else
		complain "$name: exit statuses ${STATUS[*]}, expected 0"
	fi
}

# json NAME EXPRESSION: rank 0's output is one document for which the expression holds; it is d
# there, and its pairs are p.
json() {
	python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(not eval("(" + sys.argv[2] + ")", {"d": d, "p": d["pairs"]}))' "$DIR/out.0" "$2" ||
		complain "$1: the JSON document is not so: $2"
}

# fault NAME WORDS [ARG...]: two ranks with a plugin that has this fault.
fault() {
	local name=$1 words=$2
	shift 2

	FAKE_PLUGIN_FAULT=$name run_local 2 "${QUICK[@]}" "$@"
	expect_fail "$name" "$words"
}

test_good_plugin() {
	local abi

	for abi in 11 12; do # test_abi has all of them
		run_local 2 "${QUICK[@]}" --abi $abi --json
		expect_pass "good plugin, ABI v$abi"
		json "ABI v$abi" 'd["ok"] and len(p) == 2'
	done
	run_local 3 --check-max 128K --sizes 8,4K,256K --seconds 0.02 --json
	expect_pass "three ranks, checked and measured"
	json "three ranks" 'd["ok"] is True and len(p) == 6'
	json "sizes" 'all([s["bytes"] for s in x["sizes"]] == [8, 4096, 262144] for x in p)'
	json "latencies" 'all(s["half_rtt_us"] > 0 for x in p for s in x["sizes"])'
	json "bandwidths" 'all(s["gbit_s"] > 0 for x in p for s in x["sizes"])'
	json "paths" 'p[0]["paths"][0] == dict(nic="fake0", local="127.0.0.1",
		remote="127.0.0.1", via="direct")'
	run_local 3 "${QUICK[@]}" --all-at-once
	expect_pass "all pairs at once"
	run_local 3 "${QUICK[@]}" --check-every 4
	expect_pass "each pair with a part of the matrix"
	run_local 2 --comms 64 --sizes 8 --check-max 256 --iters 20 --pairs 1-0 --json
	expect_pass "64 comms on one thread"
	json "64 comms" '[(x["from"], x["to"]) for x in p] == [(1, 0)]'
	# The reader looks at memory that is being written, as NCCL's GPU does: a race by intent.
	if ! grep -q __tsan_init "$PINGPONG"; then
		FAKE_PLUGIN_FAULT=early run_local 2 --check-max 2K --sizes 8,64K --iters 20
		expect_pass "optional completions before the bytes"
	fi
	FAKE_PLUGIN_QUIET=1 run_local 2 --no-check --sizes 1M --iters 20 --json
	expect_pass "a plugin that logs no paths"
	json "NIC by its counters" 'p[0]["paths"] == [dict(nic="lo", local=None, remote=None,
		via=None)]'
	json "a pair is ok" 'all(x["ok"] for x in p)'
	run_local 2 --no-check --sizes 8 --iters 20
	expect_pass "no correctness matrix"
	grep -q ' samples$' "$DIR/out.0" || complain "--no-check: the column check is not so"
	! grep -q '[0-9)]  ok$' "$DIR/out.0" || complain "--no-check: the column check says ok"
}

test_wrong_data() {
	fault flip 'message [0-9]+ of .*only the byte at offset [0-9]+ is wrong'
	fault lost-bytes 'nothing was written there'
	fault scribble 'after the end of the message was overwritten'
	fault wrong-size 'reported a size of [0-9]+ bytes instead of'
	fault change-sent 'changed the send buffer'
	# Until the measured streams, 653 messages were sent or received, some checked in full. Half
	# of a message is a word that is looked at even when samples are taken.
	FAKE_PLUGIN_AFTER=700 FAKE_PLUGIN_FAULT=flip run_local 2 --no-check --sizes 64K \
		--iters 300 --pairs 0-1
	expect_fail "flip in the measured part" 'only the byte at offset 32768 is wrong'
}

test_broken_contract() {
	fault stale-request 'isend\(\) left \*request as it was'
	fault unset-done 'test\(\) did not write done'
	fault unset-property 'these fields were not written: maxRecvs'
	fault no-device 'devices\(\): ncclSuccess, 0 devices'
	fault init-error 'init\(\) of plugin fake returned ncclSystemError'
	fault connect-error 'pair 0 -> 1: .*connect\(\) of .* returned ncclRemoteError.*: refused'
	[[ $(head -1 "$DIR/out.0"; tail -1 "$DIR/err.1") == "pair 0 "*"is exiting: rank "* ]] ||
		complain "the table comes before the errors, or rank 1 gives no reason"
	fault accept-error 'accept\(\) of receive comm .* returned ncclRemoteError'
	fault register-error 'regMr\(\) of .* returned ncclSystemError'
	fault test-error 'pair 0 -> 1: .*test\(\) returned ncclRemoteError. .*fake: lost descriptor'
	fault close-error 'closeSend\(\) of .* returned ncclSystemError'
	fault finalize-error 'finalize\(\) returned ncclInternalError'
}

test_hangs() {
	fault never-complete 'no progress for .*pair 0 .* -> 1 .*check of .*messages done' \
		--timeout 5
	fault never-connect 'pair 0 .*: 2 connections to rank 1 and 2 from it are not made' \
		--timeout 5
	! grep -qE ' ok$|asked [0-9]+ times|: connecting' "$DIR/out.0" "$DIR"/err.* ||
		complain "never-connect: a pair is ok, or the words are internals"
	fault never-connect 'no progress' --timeout 5 --json
	json "no pair is ok" 'len(p) == 2 and not any(x["ok"] or x["paths"] for x in p)'
	json "each pair says why" '"not finished" in p[0]["errors"][0] and
		p[1]["errors"] == ["not run"]'
	fault hang "The plugin's isend\(\) has not returned" --timeout 5
	fault hang "The plugin's isend\(\) has not returned" --timeout 5 --json
	json "a document in spite of the hang" 'd["ok"] is False and len(p) == 2 and d["errors"]'
	start_local 0
	FAKE_PLUGIN_FAULT=crash start_rank 1 2 "${QUICK[@]}"
	start_rank 0 2 "${QUICK[@]}"
	end_local
	expect_fail crash 'rank 1 .* is gone: its process ended'
}

# A fault between two ranks is that pair's; the others are measured all the same.
test_other_pairs_go_on() {
	start_local 0
	FAKE_PLUGIN_FAULT=connect-error start_rank 2 3 "${QUICK[@]}" --json
	start_rank 1 3 "${QUICK[@]}" --json
	start_rank 0 3 "${QUICK[@]}" --json
	end_local
	expect_fail "one bad rank of three" 'connect\(\) of'
	json "its pairs only" 'all(bool(x["errors"]) == (2 in (x["from"], x["to"])) for x in p)'
}

test_lost_ranks() {
	local victim

	for victim in 0 1 2; do
		start_local 3 --no-check --seconds 100 --sizes 64K --timeout 20 -v
		wait_for "grep -qs 'path: from' $DIR/err.0" 60 || complain "no rank 0 to kill"
		kill -KILL "${PIDS[victim]}"
		end_local
		expect_fail "rank $victim killed" 'is gone: its process ended|rank 0 is gone'
	done
	start_local 3 --no-check --seconds 100 --sizes 64K --timeout 6 -v
	wait_for "grep -qs 'path: from' $DIR/err.0" 60 || complain "no rank 0 to go on"
	victim=${PIDS[2]}
	kill -STOP "$victim"
	unset 'PIDS[2]'
	end_local
	kill -KILL "$victim"
	expect_fail "rank 2 stopped" 'no longer answers|no progress'
}

test_rendezvous() {
	start_local 0
	start_rank 0 2 --rendezvous-timeout 1 --json
	end_local
	expect_fail "a rank does not come" 'these ranks did not connect within 1 s: 1'
	json "a document without a second rank" 'd["ok"] is False'
	start_local 0
	start_rank 1 2 --rendezvous-timeout 1
	end_local
	expect_fail "rank 0 does not come" 'rank 1 cannot reach rank 0 at 127.0.0.1'
	start_local 0
	start_rank 0 2 --rendezvous-timeout 20
	start_rank 1 3 --rendezvous-timeout 20
	end_local
	expect_fail "ranks of two different runs" 'another WORLD_SIZE'
}

# ends_at_once NAME WORDS VARIABLE=VALUE... -- ARG...: one rank, which has a minute to wait for the
# other one and must not.
ends_at_once() {
	local name=$1 words=$2 rank status
	local -a environment=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=$((++port))")

	shift 2
	while [[ $1 != -- ]]; do
		environment+=("$1")
		shift
	done
	shift
	for rank in 0 1; do
		env "${environment[@]}" RANK=$rank WORLD_SIZE=2 timeout 20 "$PINGPONG" "$@" \
			--rendezvous-timeout 60 >"$DIR/out.0" 2>"$DIR/err.0"
		status=$?
		if [[ $status != 1 ]] || ! grep -qE "rank $rank .*$words" "$DIR/err.0"; then
			complain "$name: rank $rank: status $status"
		fi
	done
	echo "  $name: at once"
}

test_ends_at_once() {
	ends_at_once "no such plugin" 'the plugin cannot be loaded: /nonexist.so' -- \
		--plugin /nonexist.so
	ends_at_once "no such table" 'exports no ncclNetPlugin' -- --plugin libm.so.6
	# Longer than a label of a name may be, so that no server is asked for it.
	ends_at_once "no such host" "cannot resolve MASTER_ADDR='no-host" \
		MASTER_ADDR="no-host$(printf '%070d' 0)" -- --plugin "$PLUGIN"
}

# wrong_use WORDS ENVIRONMENT... -- ARG...
wrong_use() {
	local words=$1 output status
	local -a environment=()
	shift

	while [[ $1 != -- ]]; do
		environment+=("$1")
		shift
	done
	shift
	output=$(env -u RANK -u WORLD_SIZE "${environment[@]}" "$PINGPONG" "$@" 2>&1)
	status=$?
	if [[ $status != 2 || $output != *$words* ]]; then
		complain "wrong use $*: status $status, '$output'"
	fi
}

test_wrong_use() {
	local -a good=(RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 "MASTER_PORT=$port")

	wrong_use 'RANK is not set' -- --json
	wrong_use 'MASTER_ADDR is not set' RANK=0 WORLD_SIZE=2 -- --json
	wrong_use 'MASTER_PORT is not set' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 --
	wrong_use "MASTER_PORT='99999' is not a TCP port from 1 to 65535" "${good[@]}" \
		MASTER_PORT=99999 --
	wrong_use "MASTER_PORT='65535' is not a TCP port from 1 to 65534" "${good[@]}" \
		MASTER_PORT=65535 TORCHELASTIC_USE_AGENT_STORE=True --
	wrong_use "unknown option '--jsn'" "${good[@]}" -- --jsn
	wrong_use 'number from 6 to 12' "${good[@]}" -- --abi 5
	wrong_use 'number from 1 to 64' "${good[@]}" -- --check-every 0
	wrong_use 'expected FROM-TO' "${good[@]}" -- --pairs 0-1x
	wrong_use 'there is no pair 0-2' "${good[@]}" -- --pairs 0-2
	wrong_use 'expected up to' "${good[@]}" -- --sizes 8,,9
	wrong_use 'is not a number' "${good[@]}" RANK=1x --
	wrong_use 'RANK=2 with WORLD_SIZE=2: ranks are numbered from 0 to 1' "${good[@]}" RANK=2 --
	wrong_use 'WORLD_SIZE=1: at least two ranks' "${good[@]}" WORLD_SIZE=1 --
	"$PINGPONG" --help | grep -q 'manual page' || complain "--help prints no options"
	echo "  wrong use: status 2"
}

test_wrong_use
test_good_plugin
test_wrong_data
test_broken_contract
test_hangs
test_other_pairs_go_on
test_rendezvous
test_ends_at_once
test_lost_ranks
((failures == 0)) || { echo "$failures checks failed"; exit 1; }
echo "all faults were seen"
