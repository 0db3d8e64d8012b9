#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_sizes.sh - every message arrives whole: 0 bytes to 1 GiB, in all of NCCL's manners.
# seconds: 60
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# sizes_pass RUN ARGUMENT...: between a and b, over their one cable.
sizes_pass() {
	local run=$1

	shift
	ranks_pass "$run" a b -- --timeout 100 --repeat 1 "$@"
	expect_paths "$run" 0 1 "ab:10.77.1.1>10.77.1.2"
	case " $* " in
	*" --pairs 0-1 "*) ;;
	*) expect_paths "$run" 1 0 "ba:10.77.1.2>10.77.1.1" ;;
	esac
}

# fabric_pingpong's matrix: odd addresses and lengths, receives larger than the message and exact,
# before and after the send, 8 and 32 outstanding, sizes around every power of two.
test_matrix() {
	local share=(--check-max $((1048576 + 1)))

	# The two pairs share the sizes; each sends them both ways.
	! slow || share=(--check-max 64K --check-every 2)
	sizes_pass matrix --check "${share[@]}"
	note "0 B to 1 MiB + 1: aligned or not, early and late, 8 and 32 outstanding"
}

test_window() {
	local inflight

	for inflight in 1 8 32; do
		sizes_pass "inflight$inflight" --no-check \
			--sizes 0,1,8,127,8K,8193,16K,16385,100001,1M \
			--iters "$(slow && echo 20 || echo 100)" --inflight $inflight
	done
	note "1, 8 and 32 messages outstanding in a stream"
}

test_huge() {
	local sizes=16777217,1G

	! slow || sizes=16777217
	sizes_pass huge --no-check --sizes "$sizes" --iters 1 --inflight 1 --channels 1 --pairs 0-1
	note "one message of up to 1 GiB ($sizes)"
}

# One thread of each rank drives 64 comms in each direction.
test_comms() {
	sizes_pass comms --comms 64 --check-max 512 --sizes 8,64K --iters 8 --pairs 0-1
	note "64 comms on one thread"
}

mesh_init
mesh_node a b
mesh_link a ab 10.77.1.1/24 b ba 10.77.1.2/24
for t in matrix window huge comms; do "test_$t"; done
expect_check
