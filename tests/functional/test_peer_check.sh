#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_peer_check.sh - `fi_mesh check --peer` and `fi_mesh serve`: a mesh without faults, and then
# the usual mistakes one by one, each with the message that names it.
# seconds: 120
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"
mesh_init

MESH=$MESH_BUILD/fi_mesh
WORK=$(mktemp -d) || exit 1
OUT=$WORK
# What is said is the same however long it measures, but for figures: only where these are looked
# at it measures as long as a user's does.
MEASURE=(--ms 100)

# check NODE ARGUMENT...: its output is in $WORK/out, its status in $STATUS.
check() {
	local node=$1

	shift
	on "$node" timeout 180 "$MESH" check "${MEASURE[@]}" --peer "$@" >"$WORK/out" 2>"$WORK/err"
	STATUS=$?
	((STATUS != 124)) || fail "check --peer $* does not end"
}

# only_figures FILE: what was found there is about bandwidth or latency, and a busy machine's.
only_figures() { ! grep -E '^(warn|fail)' "$1" | grep -qvE '(bandwidth|latency) [0-9]'; }

# well ARGUMENT...: as check, where all is well; once more where only figures speak against it.
well() {
	local try

	for try in {1..5}; do
		check "$@"
		((STATUS == 0)) && return
		only_figures "$WORK/out" || break
	done
	fail "status $STATUS in try $try: $(cat "$WORK/out" "$WORK/err")"
}

# expect TEXT...: each stands in the output.
expect() {
	local text

	for text in "$@"; do
		grep -qF -- "$text" "$WORK/out" ||
			fail "no \"$text\" in: $(cat "$WORK/out" "$WORK/err")"
	done
}

expect_status() { ((STATUS == $1)) || fail "status $STATUS, not $1: $(cat "$WORK/out")"; }

all_is_well() {
	local MEASURE=()

	well a 10.77.1.2 10.77.3.1
	expect "first choice: ab 10.77.1.1 -> ba 10.77.1.2, tcp (no RDMA at either end)" \
		"; both addresses are on one subnet" "not ac: it is cabled to node c (ca)" \
		"cable ab - ba: ab is cabled to node b" \
		"cable ac - ca: ac is cabled to node c" \
		"frames of full size (1500 bytes) pass in both directions" \
		"of the link's 10 Gbit/s (tcp)" "2 nodes; findings:" "0 warn, 0 fail"
	MEASURE=(--ms 100)
	well a --quiet 10.77.1.2,fd77:1::2
	# On a busy machine the bandwidth cannot be judged ("unknown"), which is no finding.
	! grep -qE '^(pass|warn|fail)' "$WORK/out" ||
		fail "something is said where all is well: $(cat "$WORK/out")"
	well a 10.77.1.2 --json
	python3 - "$WORK/out" <<-'PY' || fail "the JSON is not as documented"
		import json, sys
		root = json.load(open(sys.argv[1]))
		paths, link = root["peers"][0]["sections"][:2]
		path = paths["paths"][0]
		assert path["nic"] == "ab" and path["reason"] == "subnet", paths
		assert path["provider_reason"] == "no-rdma" and not path["routed"], paths
		assert root["fail"] == root["warn"] == 0 and link["id"] == "link", root
		assert link["nic"] == "ab" and link["peer_nic"] == "ba"
		assert link["provider"] == "tcp"
		assert link["to_mtu"] == link["from_mtu"] == 1500
		assert link["half_rtt_us"] > 0 and link["to_gbps"] > 0 and link["from_gbps"] > 0
	PY
}

# Any address is accepted, also one that looks the same on every cable: c's second one leads there.
link_local_address() {
	local addr

	addr=$(mesh_link_local b bc)
	well c "$addr"
	expect "paths to node b (asked at $addr)" \
		"first choice: cb 10.77.2.2 -> bc 10.77.2.1, tcp" \
		"not ca: its subnet, 10.77.3.0/24, is not a subnet of node b" "1 node; findings:"
}

# A name is the one by which a neighbour answers, or else what the resolver says.
names() {
	local long

	well c b
	expect "paths to node b (asked at b)" "first choice: cb 10.77.2.2 -> bc 10.77.2.1, tcp"
	check a localhost
	expect_status 1
	expect "connection refused: nothing listens on that port"
	# Longer than a label of a name may be, so that no server is asked for it.
	long=node$(printf '%070d' 0)
	check a "$long"
	expect_status 1
	expect "$long does not answer as a neighbour, and its name has no address: " \
		"do:   run \`fi_mesh serve\` on node $long, or name one of its addresses"
}

# Nothing but IPv6 link-local addresses: every cable has the same subnet, and the neighbours say
# which NICs are on one cable.
link_local_mesh() {
	local addr node reports=$WORK/reports

	mesh_node x y z
	mesh_link x xy - y yx -
	mesh_link x xz - z zx -
	mesh_link y yz - z zy -
	serve y z
	addr=$(mesh_link_local y yx)
	well x "$addr%xy" z
	expect "first choice: xy fe80:" "paths to node y (asked at $addr%xy)" \
		"cable xy - yx: xy is cabled to node y" \
		"not xz: it is cabled to node z (zx)" "paths to node z (asked at z)" \
		"cable xz - zx: xz is cabled to node z" "2 nodes; findings:" " 0 fail"
	! grep -q 'another path' "$WORK/out" || fail "two paths over one cable: $(cat "$WORK/out")"
	check x "$addr%xz"
	expect_status 1
	expect "$addr%" "cannot be checked over xz" "xz is cabled to node z (zx)"
	check x "$addr%nosuch"
	expect_status 2
	grep -q 'this node has no such interface' "$WORK/err" || fail "$(cat "$WORK/err")"
	end_serving y z
	mkdir "$reports"
	for node in x y z; do on "$node" "$MESH" nics --json >"$reports/$node.json"; done
	"$MESH" topo "$reports" >"$WORK/out" 2>"$WORK/err" ||
		fail "topo refuses the reports: $(cat "$WORK/err")"
	expect "mesh: 3 nodes, 0 cables" "not known: link-local addresses do not show"
}

# two_checks: at once; what they print is in $WORK/first and $WORK/second. Status 0: both are well.
two_checks() {
	local pid1 pid2 status=0

	(on a timeout 180 "$MESH" check "${MEASURE[@]}" --peer 10.77.1.2 >"$WORK/first" 2>&1) &
	pid1=$!
	(on c timeout 180 "$MESH" check "${MEASURE[@]}" --peer 10.77.2.1 >"$WORK/second" 2>&1) &
	pid2=$!
	wait $pid1 || status=$?
	wait $pid2 || status=$?
	return $status
}

several_at_once() {
	local try

	for try in {1..5}; do
		two_checks && return
		only_figures "$WORK/first" && only_figures "$WORK/second" || break
	done
	fail "two checks at once, try $try: $(cat "$WORK/first" "$WORK/second")"
}

missing_cable() {
	mesh_unplug a ac
	check a 10.77.1.2 10.77.3.1
	expect_status 1
	expect "10.77.3.1 cannot be checked over ac" "seen: ac has no carrier" \
		"do:   reseat the cable of ac at both ends" \
		"first choice: ab 10.77.1.1 -> ba 10.77.1.2"
	mesh_plug a ac
}

no_server() {
	check a 10.77.0.2
	expect_status 1
	expect "10.77.0.2 cannot be checked" "connection refused: nothing listens on that port" \
		"do:   run \`fi_mesh serve\` there"
	check a 10.77.1.77
	expect_status 1
	expect "10.77.1.77 cannot be checked over ab" "seen: ab is cabled to node b (ba)"
}

wrong_subnet() {
	ip -n "$(mesh_ns b)" address flush dev ba scope global
	ip -n "$(mesh_ns b)" address add 10.99.1.2/24 dev ba
	# Twice, and the address of a mesh NIC, on which it listens anyhow.
	serve b -- --listen 10.77.0.2 --listen 10.77.0.2 --listen 10.99.1.2
	check a 10.77.0.2
	expect_status 1
	expect "no direct path to node b" \
		"ab is cabled to ba of node b, but 10.77.1.1/24 and 10.99.1.2/24 have no subnet" \
		"do:   \`fi_mesh up\`, or give both ends of this cable addresses of one subnet"
	end_serving
	mesh_addresses b ba 10.77.1.2/24,fd77:1::2/64
	ip -n "$(mesh_ns b)" address del 10.99.1.2/24 dev ba
}

# The cables of a are in each other's ports: the address says b, the cable leads to c.
crossed_addresses() {
	ip -n "$(mesh_ns a)" address flush dev ab scope global
	ip -n "$(mesh_ns a)" address flush dev ac scope global
	mesh_addresses a ab 10.77.3.2/24
	mesh_addresses a ac 10.77.1.1/24
	check a 10.77.1.2
	expect_status 1
	expect "10.77.1.2 cannot be checked over ac" "ac is cabled to node c (ca)" "move the cable"
	ip -n "$(mesh_ns a)" address flush dev ab scope global
	ip -n "$(mesh_ns a)" address flush dev ac scope global
	mesh_addresses a ab 10.77.1.1/24,fd77:1::1/64
	mesh_addresses a ac 10.77.3.2/24,fd77:3::2/64
}

# The patch panel's bridge is what takes less than the two NICs believe.
black_hole() {
	local port

	ip -n "$(mesh_ns a)" link set ab mtu 9000
	ip -n "$(mesh_ns b)" link set ba mtu 9000
	for port in "${MESH_PEER["a ab"]}" "${MESH_PEER["b ba"]}"; do
		ip -n "$(mesh_ns patch)" link set "${port#* }" mtu 9000
	done
	well a 10.77.1.2
	expect "frames of full size (9000 bytes) pass in both directions"
	port=${MESH_PEER["b ba"]}
	ip -n "$(mesh_ns patch)" link set "${port#* }" mtu 4000
	check a 10.77.1.2
	expect_status 1
	expect "a frame of 9000 bytes from ab to ba does not arrive: the largest that does has 4" \
		"a switch, bridge or tunnel between the two has a smaller MTU" \
		"a frame of 9000 bytes from ba to ab does not arrive"
	ip -n "$(mesh_ns patch)" link set "${port#* }" mtu 9000
	ip -n "$(mesh_ns b)" link set ba mtu 1500
	check a 10.77.1.2
	expect_status 1
	expect "a frame of 9000 bytes from ab to ba does not arrive" \
		"seen: MTU of ab here: 9000, of ba on node b: 1500" \
		"by hand on node b: ip link set ba mtu 9000"
	ip -n "$(mesh_ns a)" link set ab mtu 1500
}

slow_link() {
	local MEASURE=()

	# Far below what even a busy machine leaves of the 10 Gbit/s that veth reports.
	mesh_shape a ab 50mbit
	check a 10.77.1.2
	expect "of the link's 10 Gbit/s (tcp)" "shaping (tc qdisc show dev ab)"
	grep -qE '^(warn|unknown) .*bandwidth 0.0' "$WORK/out" ||
		fail "no warning: $(cat "$WORK/out")"
	mesh_shape a ab none
}

# firewall NODE RULE...: drops what comes in; status 1 where nft is missing.
firewall() {
	local node=$1

	shift
	on "$node" nft "add table inet block; add chain inet block input \
		{ type filter hook input priority 0 ; } ; add rule inet block input $*" 2>/dev/null
}

firewalls() {
	if ! firewall b tcp dport 18620 drop; then
		note "nft does not work here: the firewall is not tested"
		return
	fi
	check a 10.77.1.2
	expect_status 1
	expect "10.77.1.2 cannot be checked over ab: no answer" \
		"seen: ab is cabled to node b (ba)" "let the firewall of node b pass port 18620"
	on b nft flush ruleset
	firewall b meta l4proto udp udp dport != 18620 drop
	check a 10.77.1.2
	expect_status 1
	expect "no UDP datagram arrives at node b" "trust the mesh's interfaces"
	on b nft flush ruleset
	# The provider's own ports are closed, ours is open: what the plugin needs does not work.
	firewall b tcp dport != 18620 tcp flags syn drop
	check a 10.77.1.2
	expect_status 1
	expect "the plugin (tcp) does not work between ab and ba of node b:" \
		"no connection to it comes up"
	on b nft flush ruleset
}

providers_differ() {
	RANKS_ENV=()
	serve b -- NCCL_MESH_PROVIDER="tcp;ofi_rxm"
	check a 10.77.1.2
	expect_status 1
	expect "no direct path to node b" \
		"ab and ba of node b use different providers: tcp and tcp;ofi_rxm"
	end_serving
}

# Two nodes with a router between them.
routed() {
	mesh_node u v w
	mesh_link u uv 10.78.1.1/24 v vu 10.78.1.2/24
	mesh_link v vw 10.78.2.1/24 w wv 10.78.2.2/24
	mesh_forward v
	mesh_route u 10.78.2.0/24 10.78.1.2 uv
	mesh_route w 10.78.1.0/24 10.78.2.1 wv
	serve w
	well u 10.78.2.2
	expect "first choice: uv 10.78.1.1 -> wv 10.78.2.2, tcp (no RDMA at either end); routed" \
		"no subnet in common; the two have the same number on nodes with equally many" \
		"10.78.1.1 reaches 10.78.2.2" "frames of full size (1500 bytes) pass" \
		"1 node; findings:"
	! grep -q "is cabled" "$WORK/out" || fail "a router is no cable: $(cat "$WORK/out")"
	NCCL_MESH_ROUTED=off check u 10.78.2.2
	expect_status 1
	expect "no direct path to node w" "fi_mesh serve --relay"
	serve v
	on u "$MESH" topo --pair u,w >"$WORK/out" 2>"$WORK/err"
	expect "uv 10.78.1.1 -> wv 10.78.2.2" "routed: no subnet in common, and the two have the"
	on u "$MESH" topo --pair w,u --json >"$WORK/out" 2>"$WORK/err"
	expect '"routed": true' '"why": "number"' '"provider_reason": "no-rdma"' '"cables": 0'
	note "a routed path"
	relayed
	end_serving
}

# The same three without the routes: v relays, or nothing there does.
relayed() {
	local cables="u uv - vu v: tcp, 10 Gb/s; v vw - wv w: tcp, 10 Gb/s"

	NCCL_MESH_ROUTED=off check u 10.78.2.2
	expect_status 1
	expect "no link or route to node w; cables reach it over 1 node, where nothing relays" \
		"$cables" "seen: node v: nothing relays there now" "fi_mesh serve --relay"
	end_serving v
	serve v -- --relay
	NCCL_MESH_ROUTED=off check u 10.78.2.2
	expect_status 0
	expect "connections go through relays, on 1 route" "route over 1 relay: $cables" \
		"node v: \`fi_mesh serve --relay\` relays there for all jobs"
	NCCL_MESH_ROUTED=off check u 10.78.2.2 --json
	python3 - "$WORK/out" <<-'PY' || fail "the JSON of a relayed pair is not as documented"
		import json, sys
		paths = json.load(open(sys.argv[1]))["peers"][0]["sections"][0]
		assert paths["paths"] == [] and paths["verdict"] == "pass", paths
		route, = paths["relays"]
		assert route["via"] == ["v"] and route["served"], route
		assert [(h["from"], h["nic"], h["peer_nic"], h["to"]) for h in route["hops"]] == [
		    ("u", "uv", "vu", "v"), ("v", "vw", "wv", "w")], route
		assert {(h["provider"], h["width_mbps"]) for h in route["hops"]} == {("tcp", 10000)}
	PY
	note "a relayed pair"
}

# Clients that connect and send nothing, or nonsense, block no other.
noise() {
	local i

	for i in 1 2 3 4 5 6 7 8 9 10; do
		on a bash -c 'exec 3<>/dev/tcp/10.77.1.2/18620 && head -c 3000 /dev/urandom >&3;
			cat <&3' >/dev/null 2>&1 &
		on a bash -c 'exec 3<>/dev/tcp/10.77.1.2/18620 && timeout 20 cat <&3' \
			>/dev/null 2>&1 &
	done
	check a 10.77.1.2
	# It may have to wait for a place, but not for long: they are disconnected after 5 s.
	((STATUS == 0)) || well a 10.77.1.2
}

# descriptors PID: how many it has open.
descriptors() { find "/proc/$1/fd" -mindepth 1 | wc -l; }

# Without a file descriptor for a connection it reports that, waits, and then continues.
no_descriptors() {
	local limit free=0 pid=${SERVED[b]} ticks

	# What is open for earlier checks would become free below the limit, and the next one work.
	wait_for "((\$(descriptors $pid) <= $DESCRIPTORS))" 60 ||
		fail "b keeps descriptors: $(ls -l "/proc/$pid/fd")"
	while [[ -e /proc/$pid/fd/$free ]]; do ((++free)); done
	limit=$(prlimit --pid "$pid" --nofile --noheadings --output SOFT)
	prlimit --pid "$pid" --nofile=$free:
	ticks=$(awk '{print $14 + $15}' "/proc/$pid/stat")
	check a 10.77.1.2
	expect_status 1
	grep -q "cannot take a connection: Too many open files; out of file descriptors" \
		"$WORK/serve-b" || fail "b does not say what it lacks: $(cat "$WORK/serve-b")"
	ticks=$(($(awk '{print $14 + $15}' "/proc/$pid/stat") - ticks))
	# In hundredths of a second; the check waited for seconds.
	((ticks < 100)) || fail "b was busy for $ticks ticks while it could do nothing"
	prlimit --pid "$pid" --nofile="$limit":
	well a 10.77.1.2
}

ctrl_c() {
	mesh_spawn a "$WORK/interrupted" "$MESH" check --peer 10.77.1.2 10.77.1.2
	wait_for "grep -q 'first choice' $WORK/interrupted" 60 || fail "the check does not begin"
	kill -INT "$MESH_SPAWNED"
	wait "$MESH_SPAWNED"
	(($? == 1)) || fail "an interrupted check says that all is well"
	grep -q "interrupted: not everything was checked" "$WORK/interrupted" ||
		fail "an interrupted check: $(cat "$WORK/interrupted")"
	well a 10.77.1.2
}

main() {
	mesh_up triangle patched
	serve b
	DESCRIPTORS=$(descriptors "${SERVED[b]}")
	serve c
	all_is_well
	note "all is well, and said so"
	link_local_address
	names
	link_local_mesh
	several_at_once
	missing_cable
	no_server
	crossed_addresses
	note "cables"
	black_hole
	slow_link
	note "frames and bandwidth"
	firewalls
	noise
	no_descriptors
	ctrl_c
	end_serving
	wrong_subnet
	providers_differ
	routed
	rm -rf "$WORK"
}

main
