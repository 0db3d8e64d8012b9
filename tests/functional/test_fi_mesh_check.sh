#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_fi_mesh_check.sh - breaks what `fi_mesh check` checks, one thing at a time, and expects the
# message; fixes it with the printed command, and expects no message.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

OUT=$(mktemp -d)
NCCL=$OUT/libnccl.so.2
# The words of env(1) that every run gets, and those of one test.
PLUGIN=("NCCL_NET_PLUGIN=$MESH_BUILD/libnccl-net-mesh.so")
EXTRA=()
# More options of fi_mesh check.
ARGS=()
SAID=

# --- what the tests are made of --------------------------------------------------------------

# check NODE IDS: runs the checks; SAID is what is not well, STATUS the exit status.
check() {
	SAID=$(on "$1" env "${PLUGIN[@]}" "${EXTRA[@]}" \
		"$MESH_BUILD/fi_mesh" check --quiet --nccl "$NCCL" --only "$2" "${ARGS[@]}" \
		2>"$OUT/stderr")
	STATUS=$?
	[[ ! -s $OUT/stderr ]] || fail "on stderr: $(cat "$OUT/stderr")"
}

# says NODE ID VERDICT WORDS: the check has to say these words (a regular expression).
says() {
	local want=1

	check "$1" "$2"
	[[ $3 != unknown ]] || want=0
	grep -qE "^$3 +$2 +.*($4)" <<<"$SAID" || fail "$2 does not say '$3 ... $4', but: $SAID"
	((STATUS == want)) || fail "$2 ends with status $STATUS, not $want"
	note "$(grep -m1 -E "^$3 +$2 .*($4)" <<<"$SAID")"
}

# silent NODE ID...: nothing is said.
silent() {
	local node=$1 ids=${*:2}

	check "$node" "${ids// /,}"
	[[ -z $SAID && $STATUS == 0 ]] || fail "$ids on $node: status $STATUS: $SAID"
}

# fixes NODE: runs the commands that were printed.
fixes() {
	local fix

	while read -r fix; do
		note "  do: $fix"
		on "$1" bash -c "$fix" >/dev/null || fail "the command does not work: $fix"
	done < <(sed -nE '/source route/d; /^ *do: /s/.*(do: *|by hand: )//p' <<<"$SAID")
}

# --- one NIC ---------------------------------------------------------------------------------

test_all_well() {
	# The machine that runs this test may have another choice.
	on a sh -c 'echo reno >/proc/sys/net/ipv4/tcp_congestion_control'
	silent a libfabric carrier speed mtu congestion pcie subnets shared-subnet modules \
		ports gids device-files memlock firewall environment plugin
	on a env "${PLUGIN[@]}" "$MESH_BUILD/fi_mesh" check \
		--nccl "$NCCL" >"$OUT/all" || fail "fi_mesh check: $(cat "$OUT/all")"
	# Nothing runs at the other ends yet.
	grep -q "^17 checks; findings: $(grep -c ^pass "$OUT/all") pass, 2 unknown, 0 warn, 0 " \
		"$OUT/all" || fail "$(cat "$OUT/all")"
}

# What the other ends answer: all is well, another MTU, a cable in the wrong port.
test_neighbours() {
	says a neighbours unknown 'no node answers on ab'
	serve b c
	wait_for "silent_now a neighbours" 30 || fail "$(cat "$OUT/now")"
	ip -n "$(mesh_ns b)" link set ba mtu 1400
	wait_for "says_now a neighbours 'the MTU of ab is 1500'" 30 || fail "$(cat "$OUT/now")"
	says a neighbours warn 'the MTU of ab is 1500, that of ba on node b 1400'
	ip -n "$(mesh_ns b)" link set ba mtu 1500
	ip -n "$(mesh_ns b)" address del 10.77.1.2/24 dev ba
	mesh_addresses b ba 10.77.9.2/24
	wait_for "says_now a neighbours 'have no subnet in common'" 30 || fail "$(cat "$OUT/now")"
	says a neighbours fail 'are on one link, but 10.77.1.1/24 and .* have no subnet in common'
	ip -n "$(mesh_ns b)" address del 10.77.9.2/24 dev ba
	mesh_addresses b ba 10.77.1.2/24
	end_serving
}

# silent_now NODE CHECK: true if it has nothing to say at present.
silent_now() {
	on "$1" "$MESH_BUILD/fi_mesh" check --quiet --only "$2" >"$OUT/now" &&
		[[ ! -s $OUT/now ]]
}

# says_now NODE CHECK WORDS: true if it says that at present.
says_now() {
	silent_now "$1" "$2"
	grep -qF -- "$3" "$OUT/now"
}

test_carrier() {
	mesh_carrier a ab down
	says a carrier fail 'ab has the address 10.77.1.1/24 but no carrier'
	mesh_carrier a ab up
	ip -n "$MESH_PREFIX"a link set ab down
	says a carrier fail 'ab has the address 10.77.1.1/24 but is down'
	fixes a
	silent a carrier
	ip -n "$MESH_PREFIX"a address flush dev ab
	says a carrier warn 'ab has a carrier but no address'
	mesh_addresses a ab 10.77.1.1/24,fd77:1::1/64
	silent a carrier
}

test_no_nic() {
	mesh_node z
	ip -n "$MESH_PREFIX"z link set mgmt0 down
	ip -n "$MESH_PREFIX"z link set lo down
	says z libfabric fail 'no NIC of this node can carry the mesh'
}

# The check reports that the 17th NIC is not used. test_no_nic has made node z.
test_many_nics() {
	local i

	for ((i = 10; i < 27; i++)); do
		ip -n "$MESH_PREFIX"z link add "n$i" type veth peer name "f$i" &&
			ip -n "$MESH_PREFIX"z link set "f$i" up &&
			ip -n "$MESH_PREFIX"z link set "n$i" up || fail "cannot make n$i"
		mesh_addresses z "n$i" "10.77.$i.1/24"
	done
	on z env NCCL_MESH_NICS=n "$MESH_BUILD/fi_mesh" nics >"$OUT/nics" || fail "fi_mesh nics"
	grep -q '^15 .*10.77.25.1/24' "$OUT/nics" || fail "$(cat "$OUT/nics")"
	grep -q '^  n26 *the plugin uses 16 NICs at most; NCCL_MESH_NICS chooses' "$OUT/nics" ||
		fail "$(cat "$OUT/nics")"
	note "$(grep '^  n26' "$OUT/nics")"
}

test_provider() {
	EXTRA=(FI_PROVIDER=udp)
	says a libfabric fail 'libfabric has no provider for ab: .*FI_PROVIDER=udp is set'
	EXTRA=()
	silent a libfabric
}

test_mtu() {
	ip -n "$MESH_PREFIX"a link set ab mtu 9000
	says a mtu warn 'different MTUs: ac has 1500, ab has 9000'
	fixes a
	silent a mtu
	ip -n "$MESH_PREFIX"a link set ab mtu 1500
	ip -n "$MESH_PREFIX"a link set ac mtu 1500
}

# --- subnets ---------------------------------------------------------------------------------

test_subnets() {
	mesh_addresses a ac 10.77.1.77/16
	says a subnets warn 'subnets of ab \(10.77.1.1/24\) and ac \(10.77.1.77/16\) overlap'
	ip -n "$MESH_PREFIX"a address del 10.77.1.77/16 dev ac
	mesh_addresses a ac 10.77.1.1/24
	says a subnets fail 'ab and ac both have the address 10.77.1.1/24'
	ip -n "$MESH_PREFIX"a address del 10.77.1.1/24 dev ac
	silent a subnets
}

# Two cables in one subnet: as they come, with ARP kept apart, and with source routes.
test_shared_subnet() {
	mesh_node x y
	mesh_link x x0 10.77.50.1/24 y y0 10.77.50.2/24
	mesh_link x x1 10.77.50.3/24 y y1 10.77.50.4/24
	on x sysctl -qw net.ipv4.conf.x1.rp_filter=1
	says x shared-subnet fail 'x1 sends from its address 10.77.50.3 leaves through x0'
	says x shared-subnet warn 'x0 shares a subnet with another NIC, and its arp_ignore is 0'
	says x shared-subnet warn 'x1 shares .* arp_announce is 0'
	says x shared-subnet fail 'x1 drops packets that arrive there'
	fixes x
	silent x shared-subnet
	check y shared-subnet
	fixes y
	on x ping -c 1 -W 20 -I 10.77.50.3 10.77.50.4 >/dev/null || fail "fixed, but no answer"
	mesh_addresses x x0 fd77:50::1/64
	mesh_addresses x x1 fd77:50::3/64
	says x shared-subnet fail 'fd77:50::[13] leaves through'
	ip -n "$MESH_PREFIX"x -6 address flush dev x1 scope global
	silent x shared-subnet
}

test_link_local() {
	mesh_node l m
	mesh_link l lm - m ml -
	ip -n "$MESH_PREFIX"l link set mgmt0 down
	wait_for "ip -n ${MESH_PREFIX}l -6 address show dev lm scope link | grep -v tentative |
		grep -q fe80" 60 || fail "no link-local address"
	silent l subnets
	EXTRA=(NCCL_MESH_NEIGHBOURS=off)
	says l subnets warn 'lm has a link-local address only'
	silent l neighbours
	EXTRA=()
}

# --- firewall --------------------------------------------------------------------------------

nft_a() { on a nft "$@" || fail "nft $*"; }

test_firewall_nft() {
	local rule

	command -v nft >/dev/null || { note "nft is not installed: not tried"; return; }
	nft_a -f - <<-'END'
		table inet guard {
			chain input {
				type filter hook input priority 0; policy drop;
				iifname "lo" accept
				ct state established,related accept
				ct state invalid drop
				iifname "mgmt*" accept
				tcp dport { 22, 80 } accept
				udp dport 4791 accept
				ip saddr 10.99.0.0/16 accept
				jump others
			}
			chain others {
				meta l4proto icmp accept
				tcp dport 1-1023 reject
			}
		}
	END
	says a firewall fail 'drops TCP connections in on ab'
	grep -q 'nft: the policy of chain input, table inet guard' <<<"$SAID" || fail "$SAID"
	fixes a
	silent a firewall
	nft_a add chain inet guard output '{ type filter hook output priority 0; policy accept; }'
	nft_a add rule inet guard output oifname ac tcp dport 40000-65535 drop
	says a firewall fail 'drops TCP connections out by ac'
	fixes a
	silent a firewall
	nft_a add rule inet guard output oifname ab limit rate 1/second drop
	says a firewall unknown 'may drop TCP connections out by ab'
	nft_a flush ruleset
	silent a firewall
	for rule in 'tcp dport >= 1024' 'tcp flags syn' 'tcp flags & (fin|syn|rst|ack) == syn'; do
		nft_a -f - <<<"table inet guard {
			chain input {
				type filter hook input priority 0; policy accept;
				$rule drop
			}
		}"
		says a firewall fail 'drops TCP connections in on ab'
		nft_a flush ruleset
	done
	silent a firewall
}

# Questions of neighbours, and answers to ours, which come from their port, pass no rule for TCP.
test_firewall_neighbours() {
	command -v nft >/dev/null || { note "nft is not installed: not tried"; return; }
	nft_a -f - <<-END
		table inet guard {
			chain input {
				type filter hook input priority 0; policy drop;
				iifname "lo" accept
				ct state established,related accept
				icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
				tcp dport 1024-65535 accept
			}
		}
	END
	says a firewall warn 'drops the questions of neighbours in on ab \(UDP port 18621\)'
	nft_a add rule inet guard input udp dport 18621 accept
	says a firewall warn 'drops the answers of neighbours in on ab \(UDP source port 18621\)'
	nft_a add rule inet guard input udp sport 18621 accept
	silent a firewall
	nft_a flush ruleset
}

test_firewall_iptables() {
	command -v iptables >/dev/null || { note "iptables is not installed: not tried"; return; }
	on a iptables -A INPUT -i lo -j ACCEPT
	on a iptables -A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT
	on a iptables -N services
	on a iptables -A INPUT -m comment --comment 'a "quoted" word' -j services
	on a iptables -A services ! -i 'a+' -j ACCEPT
	on a iptables -A services -p tcp --dport 22 -j ACCEPT
	on a iptables -A INPUT -s 10.77.1.0/24 -j REJECT
	says a firewall fail 'drops TCP connections in on ab'
	grep -q 'iptables-save: rule 4 of chain INPUT, table filter' <<<"$SAID" || fail "$SAID"
	! grep -q ' ac ' <<<"$SAID" || fail "ac is not in that subnet: $SAID"
	fixes a
	silent a firewall
	on a iptables -P OUTPUT DROP
	says a firewall fail 'drops TCP connections out by ab'
	on a iptables -P OUTPUT ACCEPT
	on a iptables -F
	silent a firewall
}

test_firewall_legacy() {
	if ! command -v iptables-legacy >/dev/null ||
		! on a iptables-legacy -A INPUT -i ab -j DROP 2>/dev/null; then
		note "there is no iptables-legacy here: not tried"
		return
	fi
	says a firewall fail 'drops TCP connections in on ab'
	grep -q 'seen: iptables-legacy-save: rule 1 of chain INPUT' <<<"$SAID" || fail "$SAID"
	fixes a
	silent a firewall
	on a iptables-legacy -F
}

# Over IPv6 only what ip6tables and nft say of IPv6 counts.
test_firewall_ipv6() {
	command -v ip6tables >/dev/null || { note "ip6tables is not installed: not tried"; return; }
	EXTRA=(NCCL_MESH_ADDRESSES=fd77::/16)
	on a iptables -A INPUT -i ab -p tcp -j DROP
	silent a firewall
	on a ip6tables -A INPUT -i ab -p tcp -m tcp --dport 1024:65535 -j REJECT
	says a firewall fail 'drops TCP connections in on ab'
	grep -q 'seen: ip6tables-save: rule 1 of chain INPUT' <<<"$SAID" || fail "$SAID"
	fixes a
	silent a firewall
	on a ip6tables -F
	on a iptables -F
	EXTRA=()
}

# Without root the rules are unreadable, and the check reports that; nothing else needs root.
test_not_root() {
	local user=(setpriv --reuid 65534 --regid 65534 --clear-groups)

	command -v nft >/dev/null || command -v iptables >/dev/null || return 0
	chmod 755 "$OUT"
	if ! "${user[@]}" test -x "$MESH_BUILD/fi_mesh"; then
		note "the user nobody may not run $MESH_BUILD/fi_mesh: not tried"
		return
	fi
	SAID=$(on a env "${PLUGIN[@]}" "${user[@]}" \
		"$MESH_BUILD/fi_mesh" check --quiet --nccl "$NCCL")
	STATUS=$?
	grep -q "^unknown  firewall .*cannot be read.*must be root" <<<"$SAID" || fail "$SAID"
	grep -q ' pass, 3 unknown, 0 warn, 0 fail' <<<"$SAID" || fail "$SAID"
	((STATUS == 0)) || fail "what cannot be seen is no problem, but the status is $STATUS"
}

# --- NCCL ------------------------------------------------------------------------------------

test_environment() {
	local value

	EXTRA=(NCCL_NET=IB)
	says a environment fail 'NCCL_NET=IB makes NCCL use that network'
	grep -q 'do:   unset NCCL_NET$' <<<"$SAID" || fail "$SAID"
	EXTRA=(NCCL_NET=mesh)
	silent a environment
	for value in none NONE ''; do
		EXTRA=("NCCL_NET_PLUGIN=$value")
		says a environment fail 'makes NCCL load no plugin at all'
	done
	EXTRA=(NCCL_NET_PLUGIN=static)
	says a environment fail 'short form of STATIC_PLUGIN'
	printf '# site\nNCCL_DEBUG=INFO\nNCCL_NET=Socket\n' >"$OUT/nccl.conf"
	EXTRA=(NCCL_CONF_FILE="$OUT/nccl.conf")
	says a environment fail 'NCCL_NET=Socket makes NCCL'
	grep -q "seen: $OUT/nccl.conf: NCCL_NET=Socket" <<<"$SAID" || fail "$SAID"
	EXTRA=()
	silent a environment
}

test_plugin() {
	local shadow=$OUT/shadow plain=$OUT/plain

	mkdir -p "$shadow" "$plain"
	cp "$MESH_BUILD/unit/fake_plugin.so" "$shadow/libnccl-net.so"
	cp "$MESH_BUILD/libnccl-net-mesh.so" "$plain/libnccl-net.so"
	cp "$MESH_BUILD/libnccl-net-mesh.so" "$plain/libnccl-net-mesh.so"
	PLUGIN=(-u NCCL_NET_PLUGIN)
	EXTRA=("LD_LIBRARY_PATH=$plain")
	silent a plugin
	EXTRA=("LD_LIBRARY_PATH=$shadow:$plain")
	says a plugin fail "another plugin before this one: $shadow/libnccl-net.so, which is called"
	EXTRA=("NCCL_NET_PLUGIN=mesh" "LD_LIBRARY_PATH=$shadow:$plain")
	silent a plugin
	EXTRA=()
	says a plugin fail 'NCCL finds no plugin and silently'
	grep -q 'do:   fi_mesh enable$' <<<"$SAID" || fail "$SAID"
	EXTRA=("NCCL_NET_PLUGIN=nothing,mesh" "LD_LIBRARY_PATH=$plain")
	silent a plugin
	echo 'no library' >"$plain/libnccl-net-bad.so"
	EXTRA=("NCCL_NET_PLUGIN=bad" "LD_LIBRARY_PATH=$plain")
	says a plugin fail 'NCCL finds no plugin'
	grep -q 'seen: it looks for bad: ' <<<"$SAID" || fail "$SAID"
	EXTRA=()
	PLUGIN=("NCCL_NET_PLUGIN=$MESH_BUILD/libnccl-net-mesh.so")
	silent a plugin
}

test_plugin_versions() {
	printf 'NCCL version 9.1.0+cuda99\0ncclNetPlugin_v31\0ncclNetPlugin_v30\0' >"$NCCL"
	says a plugin fail 'NCCL 9.1.0\+cuda99 does not support the plugin .*asks for v30 v31'
	printf 'NCCL version 2.28.9+cuda13.0\0ncclNetPlugin_v11\0ncclNetPlugin_v10\0' >"$NCCL"
	says a plugin warn "NCCL 2.28.9\+cuda13.0 forgets the plugin's name"
	EXTRA=(NCCL_NET_PLUGIN_REF_COUNT=1)
	mkdir -p "$OUT/machine/proc/sys/kernel" "$OUT/machine/sys"
	ARGS=(--root "$OUT/machine")
	echo x86_64 >"$OUT/machine/proc/sys/kernel/arch"
	silent a plugin
	echo aarch64 >"$OUT/machine/proc/sys/kernel/arch"
	says a plugin warn 'NCCL 2.28.9\+cuda13.0 may hang silently on arm64'
	EXTRA=()
	printf 'NCCL version 2.30.7+cuda13.0\0ncclNetPlugin_v11\0ncclNetPlugin_v10\0' >"$NCCL"
	silent a plugin
	ARGS=()
	printf 'nothing\0' >"$NCCL"
	says a plugin unknown 'does not say which plugin versions it supports'
	nccl_make
	silent a plugin
}

# Before 2.21 NCCL_NET_PLUGIN is a part of a name, not a path; the command is one that works.
test_plugin_old_nccl() {
	printf 'NCCL version 2.18.6+cuda12.0\0ncclNetPlugin_v6\0' >"$NCCL"
	says a plugin fail 'NCCL finds no plugin'
	grep -q 'seen: NCCL 2.18.6+cuda12.0 takes NCCL_NET_PLUGIN for a part of' <<<"$SAID" ||
		fail "$SAID"
	grep -q "do:   export NCCL_NET_PLUGIN=mesh LD_LIBRARY_PATH=$MESH_BUILD:" <<<"$SAID" ||
		fail "$SAID"
	PLUGIN=(NCCL_NET_PLUGIN=mesh) EXTRA=("LD_LIBRARY_PATH=$MESH_BUILD")
	silent a plugin
	PLUGIN=("NCCL_NET_PLUGIN=$MESH_BUILD/libnccl-net-mesh.so") EXTRA=()
	nccl_make
	silent a plugin
}

nccl_make() {
	printf 'NCCL version 2.30.7+cuda13.0\0ncclNetPlugin_v11\0ncclNetPlugin_v10\0' >"$NCCL"
}

# --- waiting ---------------------------------------------------------------------------------

# An nft that never answers: on a terminal one sees what is waited for, and Ctrl-C ends all of it.
test_waiting() {
	local slow=$OUT/slow pid

	command -v script >/dev/null || { note "'script' is missing: not tried"; return; }
	mkdir -p "$slow"
	printf '#!/bin/sh\necho $$ >%s/nft.pid\nexec tail -f /dev/null\n' "$OUT" >"$slow/nft"
	chmod +x "$slow/nft"
	mesh_spawn a "$OUT/pty" script -qefc "echo \$\$ >$OUT/tool.pid
		PATH=$slow:\$PATH exec env --default-signal=INT \
			$MESH_BUILD/fi_mesh check --only firewall" /dev/null
	wait_for "grep -q 'checking: no firewall rule drops the ports ... 2 s' $OUT/pty" 60 ||
		fail "no progress: $(cat "$OUT/pty")"
	pid=$(cat "$OUT/nft.pid")
	kill -INT "$(cat "$OUT/tool.pid")"
	wait_for "! kill -0 $pid 2>/dev/null" 60 || fail "nft runs on"
	wait "$MESH_SPAWNED"
	[[ $? == 130 ]] || fail "Ctrl-C did not end it"
	# The message that asks to wait is printed on a terminal only.
	mesh_spawn a "$OUT/pty" env PATH="$slow:$PATH" "$MESH_BUILD/fi_mesh" check --only firewall
	wait "$MESH_SPAWNED"
	! grep -q checking "$OUT/pty" || fail "progress in a file: $(cat "$OUT/pty")"
	grep -q 'nft does not show its rules: Connection timed out\|cannot be read' "$OUT/pty" ||
		fail "$(cat "$OUT/pty")"
}

# --- options ---------------------------------------------------------------------------------

test_options() {
	local tool=$MESH_BUILD/fi_mesh words

	"$tool" check --help >/dev/null || fail "--help"
	"$tool" check --peer x --help >/dev/null || fail "--peer x --help, which --help names"
	for words in "--only nothing" "--only" "--nccl /nonexistent" "--yaml" "junk" \
		"--root /nonexistent" "--peer x/y" "--peer -q x/y" "--peer"; do
		# shellcheck disable=SC2086 # several words
		"$tool" check $words >/dev/null 2>&1
		[[ $? == 2 ]] || fail "'$words' is no wrong use"
	done
	"$tool" --version |
		grep -qE '^fi_mesh .*, protocol version [0-9]+, libfabric [12]\.[0-9]+$' ||
		fail "--version: $("$tool" --version)"
	"$tool" plan triangle a b 2>&1 | grep -q '^fi_mesh plan: a triangle has 3 nodes' ||
		fail "no message that a triangle has 3 nodes"
	"$tool" serve --listen 203.0.113.1 2>&1 | grep -q 'no interface of this node has it' ||
		fail "an address without an owner"
	"$tool" check --yaml 2>&1 | head -1 | grep -q "^fi_mesh check: .*'--yaml'" ||
		fail "no message that --yaml is unknown"
	on a "$tool" check --json --only subnets,mtu | python3 -c '
import json, sys
found = json.load(sys.stdin)
assert [c["id"] for c in found["checks"]] == ["mtu", "subnets"], found
assert found["pass"] == 2 and found["fail"] == 0
assert all(f["text"] for c in found["checks"] for f in c["findings"])' || fail "JSON"
}

end() {
	local status=$?

	rm -rf "$OUT"
	(exit $status)
	mesh_cleanup
}

mesh_init
trap end EXIT
nccl_make
mesh_up triangle
for t in all_well neighbours carrier no_nic many_nics provider mtu subnets \
	shared_subnet link_local firewall_nft firewall_neighbours firewall_iptables \
	firewall_legacy firewall_ipv6 not_root environment plugin plugin_versions plugin_old_nccl \
	waiting options; do
	"test_$t"
	note "ok $t"
done
