#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_credits.sh - a process closes its NIC while libfabric's own messages wait there unread, and
# does not crash: at its end, where it closes the endpoint of a lost link, and where its peer ends.
. "$(dirname "${BASH_SOURCE[0]}")/nodes.sh"

mesh_init
pair_up
for what in domain endpoint peer; do
	pair verbs_credit $what
	note "$what: closed with credits unread"
done
