#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_performance.sh - streams and ping-pong of the plugin, beside raw libfabric: bandwidth of
# large messages at least 0.9 of it, half a round trip of 8 bytes at most 1.5; 1.2 is usual. What is
# to be reached on a machine without other work is for tests/bench to measure.
# alone: it measures
# seconds: 60
# long: it measures; the step cost counts instructions
. "$(dirname "${BASH_SOURCE[0]}")/bounds.sh"

bounds_hold "--quick --only stream --only pingpong" 5 0.9 "1 MiB stream" \
	0.9 "4 MiB stream" 1.5 "half round trip"
