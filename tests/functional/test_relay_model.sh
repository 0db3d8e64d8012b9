#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_relay_model.sh - relays cannot wait for each other if each circuit has memory of its own.
command -v python3 >/dev/null || { echo "SKIP: python3 is missing"; exit 77; }
python3 "$(dirname "${BASH_SOURCE[0]}")/relay_model.py"
