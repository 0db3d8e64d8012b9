#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_end_reset.sh - a process behind a relay ends while a frame waits for it, so that its
# kernel resets the relay's control connection with it. The other end of the connection learns that
# the process has ended, before NCCL_MESH_RECOVERY_TIMEOUT.
# seconds: 40
# long: it fails, as is known (tests/expected_failures)
RECOVERY=30
. "$(dirname "${BASH_SOURCE[0]}")/relay_end.sh"

relay_end_init
begins "post 0 0 0 8M
stop"
stands end
data_reset
# What the relay says of the write that fails.
wait_for unread 60 >/dev/null || faults_show "nothing waits for the process"
signal end KILL
ended end 137
reported "a write fails, then the control connection is reset"
