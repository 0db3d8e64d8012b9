#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_plan_nm.sh - NetworkManager's library takes the keyfiles that `fi_mesh plan` writes.
#
# The test uses the library only: the daemon would take over the machine's network.
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

CHECK=$MESH_TOP/tests/functional/check_keyfiles.py
FOLDER=nm/etc/NetworkManager/system-connections

# expect_keyfiles NODE LINE...: libnm reads the node's keyfiles as these.
expect_keyfiles() {
	local node=$1 status found

	shift
	found=$("$CHECK" "$OUT/plan/$node/$FOLDER"/*)
	status=$?
	((status != 77)) || skip "${found#SKIP: }"
	((status == 0)) || { echo "$found"; fail "libnm refuses the keyfiles of $node"; }
	diff <(printf '%s\n' "$@") - <<<"$found" || fail "libnm reads something else"
}

plan() { "$MESH_BUILD/fi_mesh" plan "$@" --config nm --write "$OUT/plan" >/dev/null; }

[[ -x /usr/bin/python3 ]] || skip "/usr/bin/python3 is missing"
plan triangle a b c || fail "fi_mesh plan"
expect_keyfiles b "802-3-ethernet mesh0 192.168.101.2/24 9000" \
	"802-3-ethernet mesh1 192.168.102.1/24 9000"
# NetworkManager ignores keyfiles that others can read.
[[ $(stat -c %a "$OUT/plan/b/$FOLDER/mesh-mesh0.nmconnection") == 600 ]] || fail "mode"
rm -rf "$OUT/plan"

plan line a b --infiniband --ports a=ib0 --ports b=ibp1s0 || fail "fi_mesh plan"
expect_keyfiles a "infiniband ib0 192.168.100.1/24 2044"
rm -rf "$OUT/plan"

plan line a b --ipv6 --range fd77::/48 || fail "fi_mesh plan"
expect_keyfiles b "802-3-ethernet mesh0 fd77::2/64 9000"

# It is able to refuse.
sed -i 's/^address1=.*/address1=192.168.100.400\/24/' "$OUT/plan/b/$FOLDER"/*
"$CHECK" "$OUT/plan/b/$FOLDER"/* >/dev/null 2>&1 && fail "libnm takes anything"
note "NetworkManager's library takes Ethernet, IPoIB and IPv6 plans"
