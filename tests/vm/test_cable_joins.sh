#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cable_joins.sh - one of two RDMA cables has no carrier while a comm is made: the comm goes
# over the other one, and gets a path over this one when it is back. Every byte is checked.
. "$(dirname "${BASH_SOURCE[0]}")/transfer.sh"

transfer_two_cables
cable() { ip -n "${MESH_PREFIX}b" link set bx "$1"; }
transfer_while_away "cable down" "nic=ab .*provider=verbs" "cable up" "nic=ax .*provider=verbs" 1M
note "a cable with RDMA that was away joins the comm"
