#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_ports.sh - with NCCL_MESH_PORTS a firewall that opens this range alone lets every pair of a
# triangle pass, with two ranks on one node; without the setting it does not. A range that is used
# up is named. `fi_mesh check` follows the rules for the range.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"

# New TCP connections on the cables pass to the ports 21000 to 21009 only.
wall() {
	on "$1" nft -f - <<-END || skip "the kernel has no nftables"
		table inet wall {
			chain input {
				type filter hook input priority 0; policy accept;
				iifname { lo, mgmt0 } accept
				ct state established,related accept
				tcp dport 21000-21009 accept
				meta l4proto tcp drop
			}
		}
	END
}

command -v nft >/dev/null || skip "nft is missing (Debian, Ubuntu: nftables)"
mesh_init
mesh_up triangle
for node in a b c; do wall "$node"; done
on a "$MESH_BUILD/fi_mesh" check --only firewall >"$OUT/check.any" &&
	{ cat "$OUT/check.any"; fail "fi_mesh check passes a firewall that drops other ports"; }
on a env NCCL_MESH_PORTS=21000-21009 "$MESH_BUILD/fi_mesh" check --only firewall \
	>"$OUT/check.range" || { cat "$OUT/check.range"; fail "fi_mesh check refuses the range"; }
PASS=(--check --check-max 64K --check-every 6 --timeout 60)
run=0
for provider in tcp "tcp;ofi_rxm"; do
	RANKS_ENV=(NCCL_MESH_PORTS=21000-21009 "NCCL_MESH_PROVIDER=$provider")
	ranks_pass "range-${provider%;*}$((++run))" a b c a -- "${PASS[@]}"
done
note "every pair passes a firewall that opens the range alone"

RANKS_ENV=(NCCL_MESH_CONNECT_TIMEOUT=4)
ranks_refuse any 60 "did not|no answer|firewall|connect" a b -- --check --timeout 20
note "without the setting the same firewall stops them"

# Two ports for two ranks of one node: the control listener of the second one gets none.
RANKS_ENV=(NCCL_MESH_PORTS=21000-21000)
ranks_refuse used_up 60 "NCCL_MESH_PORTS(=21000-21000)? needs two ports" a b a b -- --check \
	--timeout 20
note "a range that is used up is named"
