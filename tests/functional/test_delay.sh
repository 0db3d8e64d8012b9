#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_delay.sh - messages of 4 MiB and registrations of 4 GiB on one comm do not delay another
# comm's round trips of 8 bytes by more than 1 ms (medians of the longest of five runs). Each of the
# two processes has one thread for both comms, as NCCL's proxy has.
# alone: it takes the CPUs
# seconds: 25
# long: it measures; test_other_comms
. "$(dirname "${BASH_SOURCE[0]}")/bounds.sh"

BOUNDS_OF=(measured)
bounds_hold "--quick --only delay" 5 1 "comm sends" 1 "comm registers"
