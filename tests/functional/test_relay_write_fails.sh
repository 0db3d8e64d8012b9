#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_write_fails.sh - what a relay notices first of the end of a process behind it is a
# write that fails. The other end of the connection learns that the process has ended, and does not
# look for another route until NCCL_MESH_RECOVERY_TIMEOUT.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/relay_end.sh"

relay_end_init
begins ""
# The relay finds both at once, and looks at what its provider says first.
signal relay STOP
# Else they do not end in order.
wait_for "! unread" 60 >/dev/null || faults_show "c does not read its control connections"
data_reset
signal end KILL
ended end 137
signal relay CONT
reported "a write fails, then the control connection ends"
