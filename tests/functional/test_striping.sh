#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_striping.sh - one connection over several shaped links: their rates add up. The bounds are
# 0.88 of those of tests/bench/report.py: a link that is left idle, or a split that ignores the
# rates, is far below. With four messages in flight, the fewest that NCCL has.
# alone: measures
# seconds: 32
. "$(dirname "${BASH_SOURCE[0]}")/bounds.sh"

bounds_hold "--only stripe --stripe-inflight 4" 3 1.71 "two equal" 2.55 "three equal" \
	0.83 "links of 1:2" 0.83 "links of 1:4"
