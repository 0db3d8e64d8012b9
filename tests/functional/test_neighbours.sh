#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_neighbours.sh - `fi_mesh neighbours` and what answers it: a mesh that is well, and what
# people get wrong, each with the sentence that says so. An idle process sends nothing.
# seconds: 45
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

MESH=$MESH_BUILD/fi_mesh
# How long the ranks are idle: IDLE_SECONDS=60 tests/functional/run test_neighbours
IDLE_SECONDS=${IDLE_SECONDS:-10}

# ask NODE [ARGUMENT...]: its output is in $FAULTS/out, its status in $STATUS.
ask() {
	local node=$1

	shift
	on "$node" timeout 60 "$MESH" neighbours "$@" >"$FAULTS/out" 2>"$FAULTS/err"
	STATUS=$?
}

# expect STATUS TEXT...: each stands in the output; blanks count as one.
expect() {
	local text

	((STATUS == $1)) || fail "status $STATUS, not $1: $(cat "$FAULTS/out" "$FAULTS/err")"
	shift
	for text in "$@"; do
		tr -s ' ' <"$FAULTS/out" | grep -qF -- "$text" ||
			fail "no \"$text\" in: $(cat "$FAULTS/out" "$FAULTS/err")"
	done
}

# settled NODE PATTERN: asks until the output has it; a node learns of a change a moment later.
settled() {
	wait_for "ask $1; grep -qE '$2' $FAULTS/out" 30 ||
		fail "no '$2' in: $(cat "$FAULTS/out" "$FAULTS/err")"
}

# well NODE TEXT...: asks until all is well, and each stands in the output; on a busy machine an
# answer may come late.
well() {
	local node=$1

	shift
	for _ in {1..5}; do
		ask "$node"
		((STATUS)) || break
	done
	expect 0 "$@"
}

all_is_well() {
	well a "ab b ba 10.77.1.2/24 10 Gb/s 1500 fi_mesh serve" \
		"ac c ca 10.77.3.1/24 10 Gb/s 1500 fi_mesh serve"
	! grep -qE '^(pass|warn|fail|unknown)' "$FAULTS/out" || fail "$(cat "$FAULTS/out")"
	ask a --json
	expect 0
	python3 - "$FAULTS/out" <<-'PY' || fail "not as documented: $(cat "$FAULTS/out")"
		import json, sys
		root = json.load(open(sys.argv[1]))
		assert root["node"] == "a" and root["pass"] == 2
		assert root["fail"] == root["warn"] == 0
		ab, ac = root["nics"]
		assert ab["netdev"] == "ab" and ab["verdict"] == "pass" and ab["mtu"] == 1500
		(b,) = ab["neighbours"]
		assert b["node"] == "b" and b["netdev"] == "ba" and b["readable"]
		assert b["addresses"][0] == "10.77.1.2/24" and b["providers"] == ["tcp"]
		assert b["mtu"] == 1500 and b["speed_mbps"] == 10000 and b["total_processes"] == 1
		assert b["processes"][0]["role"] == "service" and b["from"].startswith("fe80:")
		assert b["protocol"] == b["processes"][0]["protocol"] > 0
		assert b["node_id"] != root["node_id"] == root["node_id"].lower()
		assert ac["neighbours"][0]["node"] == "c"
	PY
}

differences() {
	ip -n "$(mesh_ns b)" link set ba mtu 1400
	settled a 'ba.* 1400 '
	expect 1 "the MTU of ab is 1500, that of ba on node b 1400" \
		"by hand on node b: ip link set ba mtu 1500"
	ip -n "$(mesh_ns b)" link set ba mtu 1500
	mesh_carrier a ab down
	settled a '^ab +no carrier'
	expect 1 "ac c ca" "ab: no carrier (cable or peer down)" "reseat the cable at both ends"
	mesh_carrier a ab up
	settled a 'ba.* 1500 '
	ip -n "$(mesh_ns b)" address flush dev ba scope global
	mesh_addresses b ba 10.99.1.2/24
	settled a '10\.99\.1\.2.*fi_mesh serve'
	expect 1 "ab and ba of node b are on one link, but 10.77.1.1/24 and 10.99.1.2/24 have no" \
		"the cable is in the wrong port"
	ip -n "$(mesh_ns b)" address flush dev ba scope global
	mesh_addresses b ba 10.77.1.2/24,fd77:1::2/64
	settled a '10\.77\.1\.2.*fi_mesh serve'
	expect 0
}

no_answers() {
	end_serving
	serve c
	ask a
	expect 1 "ab no answer" "no node answers on ab" "do: run \`fi_mesh serve\` (or a job) on" \
		"let its firewall pass UDP port 18621"
	# The site is in the answer, as far as there is room for it.
	serve b -- NCCL_MESH_SITE=frankfurt-am-main-2
	well a "ab b (frankfurt-am-ma) ba"
	end_serving b
	serve b
	if on b nft "add table inet block; add chain inet block input { type filter hook input \
		priority 0 ; } ; add rule inet block input udp dport 18621 drop" 2>/dev/null; then
		ask a
		expect 1 "no node answers on ab"
		on b nft flush ruleset
	else
		note "nft does not work here: a firewall is not tested"
	fi
	well a "ab b ba"
	# The setting turns it off.
	end_serving
	serve b -- NCCL_MESH_NEIGHBOURS=off
	! grep -q 'answering neighbours' "$FAULTS/serve-b" || fail "it answers though it is off"
	ask a
	expect 1 "no node answers on ab"
	end_serving
}

# The plugin's own error names the same: node z listens, and no cable leads there.
plugin_names() {
	mesh_node z
	mesh_link z zv 10.77.24.1/24 y yz -
	play z far <<-END
		listen 0 $FAULTS/far
		await $FAULTS/far-done
		close-listen 0
	END
	play x near <<-END
		await $FAULTS/far
		limit 60000
		! connect 0 $FAULTS/far
	END
	ended near
	touch "$FAULTS/far-done"
	ended far
	said near WARN "at both ends .* Neighbours: both ends of one cable .*: loop0 and loop1"
	said near WARN "xy0 is cabled to node y \\(br0\\), and so is xy1: two cables to one NIC"
	said near WARN "xm is cabled to node y \\(ym\\), whose MTU is 1400, that of xm is 1500"
	said near WARN "xs has no answer"
}

# A cable whose both ends are on node x; two cables in one bridge of node y; one wire.
strange_cables() {
	mesh_node x y
	mesh_link x loop0 10.77.21.1/24 x loop1 10.77.21.2/24
	mesh_link x xy0 10.77.22.1/24 y yx0 -
	mesh_link x xy1 10.77.23.1/24 y yx1 -
	mesh_link x xm 10.77.25.1/24 y ym 10.77.25.2/24
	ip -n "$(mesh_ns y)" link set ym mtu 1400
	mesh_link x xs 10.77.26.1/24 y ys -
	mesh_bridge "$(mesh_ns y)" br0
	ip -n "$(mesh_ns y)" link set yx0 master br0
	ip -n "$(mesh_ns y)" link set yx1 master br0
	mesh_addresses y br0 10.77.22.2/24
	serve y -- NCCL_MESH_NICS==br0,ym
	serve x
	plugin_names
	ask x
	expect 1 "both ends of this cable are on this node: loop0 and loop1" \
		"both ends of this cable are on this node: loop1 and loop0"
	settled x 'are both cabled to'
	expect 1 "br0 of node y: two cables in one bridge, or both NICs on one switch"
	end_serving
}

# One address at both ends.
same_address() {
	mesh_node g h
	mesh_link g gh 10.77.51.1/24 h hg 10.77.51.1/24
	serve h
	settled g 'gh .*10\.77\.51\.1/24'
	expect 1 "gh and hg of node h have the same address, 10.77.51.1/24"
	end_serving
}

# A service that starts while its only address is tentative answers once it is valid.
tentative() {
	local option

	mesh_node m n
	mesh_link m mn - n nm -
	for option in "" --relay; do
		ip -n "$(mesh_ns n)" link set nm down
		on n sysctl -qw net.ipv6.conf.nm.accept_dad=2 net.ipv6.conf.nm.dad_transmits=2
		ip -n "$(mesh_ns n)" link set nm up
		serve n -- $option
		settled m "^mn +n +nm .*fi_mesh serve"
		wait_for "on m $MESH check -q --ms 50 --peer n >$FAULTS/out; ((\$? < 2)) &&
			! grep '^fail' $FAULTS/out" 30 || fail "$(cat "$FAULTS/out")"
		end_serving n
	done
}

# Two ranks without IPv6: their bytes, both ways.
transfer_ipv4() {
	play q ipv4-q <<-END
		accepts 0 $FAULTS/ipv4 1M
		transfer 0 64K 20 1
		drop 0
		close-listen 0
	END
	play p ipv4-p <<-END
		connects 0 $FAULTS/ipv4 1M
		transfer 0 64K 20 1
		drop 0
	END
	ended ipv4-q
	ended ipv4-p
	unsaid ipv4-p WARN "."
}

# Without IPv6 the questions go by IPv4, also where the subnets differ.
ipv4_only() {
	local node

	mesh_node p q
	for node in p q; do
		on "$node" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 \
			net.ipv6.conf.default.disable_ipv6=1
	done
	mesh_link p pq 10.77.31.1/24 q qp 10.77.31.2/24
	serve q
	well p "pq q qp 10.77.31.2/24"
	transfer_ipv4
	ip -n "$(mesh_ns q)" address flush dev qp
	mesh_addresses q qp 10.77.32.2/24
	settled p '10\.77\.32\.2'
	expect 1 "10.77.31.1/24 and 10.77.32.2/24 have no subnet in common"
	end_serving
}

# sent NODE: UDP datagrams that the node has sent, and answers to those that no socket waits for.
# The kernel's own neighbour discovery is not counted: it solicits routers for minutes.
# shellcheck disable=SC2016 # expanded by awk
sent() {
	on "$1" awk '$1 == "Udp6OutDatagrams" || $1 == "Icmp6OutDestUnreachs" { n += $2 }
		/^Udp:/ && $2 != "InDatagrams" { n += $5 } END { print n + 0 }' \
		/proc/net/snmp6 /proc/net/snmp
}

# switches PID: how often the plugin's own thread has gone to sleep.
switches() {
	awk 'FNR == 1 { own = $2 == "nccl-net-mesh" } own && /^voluntary/ { n += $2; seen++ }
		END { print seen == 1 ? n : "no such thread" }' "/proc/$1"/task/*/status
}

# rank_pid NODE: of its only rank.
rank_pid() { mesh_namespace_pids "$(mesh_ns "$1")" | head -1; }

# idle_pair A B NAME: a comm between the ranks NAME-A and NAME-B, with nothing to do until "go".
idle_pair() {
	play "$1" "$3-$1" <<-END
		accepts 0 $FAULTS/$3
		touch $FAULTS/$3-idle
		await $FAULTS/go
		close 0
		close-listen 0
	END
	play "$2" "$3-$2" <<-END
		connects 0 $FAULTS/$3
		await $FAULTS/go
		close 0
	END
	arrives "$3-idle"
}

# As those of ranks(), but without questions and answers.
silent_pair() {
	mesh_node v w
	mesh_link v vw 10.77.41.1/24 w wv 10.77.41.2/24
	FAULTS_ENV+=(NCCL_MESH_NEIGHBOURS=off)
	idle_pair v w silent
	unset "FAULTS_ENV[-1]"
}

# idle_once: status 0 if the rank on b sends nothing, and wakes no more often than one without
# neighbours.
idle_once() {
	local before silent_before before_sent sent wakes silent_wakes

	before=$(switches "$(rank_pid b)") silent_before=$(switches "$(rank_pid w)")
	before_sent=$(sent b)
	pause "$IDLE_SECONDS"
	sent=$(($(sent b) - before_sent))
	wakes=$(($(switches "$(rank_pid b)") - before))
	silent_wakes=$(($(switches "$(rank_pid w)") - silent_before))
	note "idle for $IDLE_SECONDS s: $sent datagrams, $wakes wakes; without neighbours" \
		"$silent_wakes wakes"
	# Both look at their links now and then, not at the same time; one more look each second
	# would add 10.
	((sent == 0 && wakes <= silent_wakes + IDLE_SECONDS / 2))
}

# On a busy machine either may wake more often for a while, and the last question comes late.
idle() {
	silent_pair
	# The engine goes to sleep a second after its last work.
	pause $((3 * FAULTS_SLOW))
	for _ in {1..4}; do
		! idle_once || return 0
	done
	fail "an idle rank sends, or wakes more often than one without neighbours, each time"
}

# A rank asks again when a NIC has its carrier again.
carrier_returns() {
	local before

	play c alone <<-END
		listen 0 $FAULTS/alone
		await $FAULTS/go
		close-listen 0
	END
	arrives alone
	wait_for "grep -q 'Neighbours: ' $FAULTS/alone.log" $((60 * FAULTS_SLOW)) ||
		faults_show "c does not end its first round"
	mesh_carrier c ca down
	before=$(sent c)
	mesh_carrier c ca up
	wait_for "((\$(sent c) > $before))" 60 || fail "c does not ask when its carrier is back"
}

# A job answers as serve does, and once it is idle, it sends and does nothing.
ranks() {
	local before_sent name

	idle_pair a b job
	serve b
	settled a '1 process and fi_mesh serve'
	ask a --json
	python3 - "$FAULTS/out" <<-'PY' || fail "$(cat "$FAULTS/out")"
		import json, sys
		(b,) = json.load(open(sys.argv[1]))["nics"][0]["neighbours"]
		(rank,) = [p for p in b["processes"] if p["role"] == "rank"]
		assert rank["control_port"] > 0 and b["total_processes"] == 2
	PY
	# serve ends: the rank answers alone.
	end_serving
	settled a 'ba.* 1 process$'
	idle
	carrier_returns
	# Whatever changes on a NIC, the rank asks again, and its answers have it.
	before_sent=$(sent b)
	mesh_addresses b ba 10.98.1.2/24
	wait_for "((\$(sent b) > $before_sent))" 30 || fail "b does not ask on a new address"
	wait_for "ask a --json; grep -qF 10.98.1.2/24 $FAULTS/out" 30 || fail "$(cat "$FAULTS/out")"
	ip -n "$(mesh_ns b)" link set ba mtu 1400
	settled a 'ba.* 1400 '
	# The rank is the first one here, so it answers for both, unless it is stopped.
	serve b
	settled a '1 process and fi_mesh serve'
	signal job-b STOP
	ask a
	expect 1 "no node answers on ab"
	signal job-b CONT
	settled a '1 process and fi_mesh serve'
	end_serving b
	settled a 'ba.* 1 process$'
	note "a speaker that is stopped"
	touch "$FAULTS/go"
	for name in job-a job-b alone silent-v silent-w; do ended $name; done
}

faults_init
mesh_up triangle
serve b c
all_is_well
note "all is well"
differences
no_answers
note "differences and silence"
strange_cables
same_address
tentative
ipv4_only
note "strange cables, one address, IPv4"
ranks
