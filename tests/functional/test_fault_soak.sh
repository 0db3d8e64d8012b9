#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_fault_soak.sh - some faults of tests/functional/soak: no error, no wrong byte.
# seconds: 95
SOAK_LONGEST_MS=2000
. "$(dirname "${BASH_SOURCE[0]}")/fault_soak.sh"

SOAK_FIRST=(descriptors stopped ended)
soak 16 "${SOAK_SEED:-20}"
soak 10 "${SOAK_SEED:-21}" "tcp;ofi_rxm"
