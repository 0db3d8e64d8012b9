#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_plan_netplan.sh - netplan's own parser takes what `fi_mesh plan` writes, and means the same.
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# generate ROOT: what netplan makes of ROOT/etc/netplan goes to ROOT/run.
generate() { netplan generate --root-dir "$1"; }

# expect_network ROOT PORT LINE...: the file for systemd-networkd has these lines.
expect_network() {
	local file=$1/run/systemd/network/10-netplan-$2.network line

	shift 2
	for line in "$@"; do
		grep -qx "$line" "$file" || { cat "$file"; fail "$file has no line $line"; }
	done
}

plan() { "$MESH_BUILD/fi_mesh" plan "$@" --config netplan --write "$OUT/plan" >/dev/null; }

command -v netplan >/dev/null || skip "netplan is missing (Debian, Ubuntu: netplan.io)"
netplan generate --help 2>&1 | grep -q root-dir || skip "this netplan has no --root-dir"

plan triangle a b c || fail "fi_mesh plan"
generate "$OUT/plan/a/netplan" || fail "netplan refuses IPv4"
expect_network "$OUT/plan/a/netplan" mesh0 Address=192.168.100.1/24 MTUBytes=9000 \
	RequiredForOnline=no
expect_network "$OUT/plan/a/netplan" mesh1 Address=192.168.101.1/24
rm -rf "$OUT/plan"

plan ring "n[1-200]" --ports n1=123,on --ipv6 --range fd77::/48 --mtu 4200 || fail "fi_mesh plan"
generate "$OUT/plan/n1/netplan" || fail "netplan refuses IPv6, or names that look like numbers"
expect_network "$OUT/plan/n1/netplan" on Address=fd77:0:0:1::1/64 MTUBytes=4200
rm -rf "$OUT/plan"

plan line a b --infiniband || fail "fi_mesh plan"
generate "$OUT/plan/b/netplan" || fail "netplan refuses IPoIB"
expect_network "$OUT/plan/b/netplan" mesh0 Address=192.168.100.2/24 MTUBytes=2044

# It is able to refuse.
sed -i 's/addresses: .*/addresses: ["192.168.100.400\/24"]/' "$OUT/plan/b/netplan/etc/netplan/"*
generate "$OUT/plan/b/netplan" 2>/dev/null && fail "netplan takes anything"
note "netplan takes IPv4, IPv6 and IPoIB plans with their addresses and MTU"
