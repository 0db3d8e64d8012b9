#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_watch.sh - `fi_mesh watch` sees what the plugin of two running ranks moves, in their own
# counters and in the netdev's, and nothing of it stays behind.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mesh_init

MESH=$MESH_BUILD/fi_mesh
WORK=$(mktemp -d) || exit 1
STATS=$WORK/stats
PIDS=()

# ranks_start [VARIABLE=VALUE...]: two ranks that exchange data until they are stopped.
ranks_start() {
	local rank=0 node

	PIDS=()
	for node in a b; do
		mesh_spawn $node "$WORK/rank$rank.out" env RANK=$rank WORLD_SIZE=2 \
			MASTER_ADDR="$(mesh_mgmt_addr a)" MASTER_PORT=29500 "$@" \
			timeout -k 5 240 "$MESH_BUILD/fabric_pingpong" --sizes 4M --iters 100000
		PIDS+=("$MESH_SPAWNED")
		rank=$((rank + 1))
	done
}

# ranks_signal SIGNAL: to the ranks themselves, not only to the `timeout` around them.
ranks_signal() {
	local node pids

	for node in a b; do
		mapfile -t pids < <(mesh_namespace_pids "$MESH_PREFIX$node")
		kill "-$1" "${pids[@]}" 2>/dev/null
	done
}

ranks_live() { [[ $(for node in a b; do mesh_namespace_pids "$MESH_PREFIX$node"; done) ]]; }

# They get no chance to clean up.
ranks_kill() {
	ranks_signal KILL
	wait "${PIDS[@]}" 2>/dev/null
	# The ranks are not our children, and end after the `timeout` around them.
	wait_for "! ranks_live" 60 || fail "the ranks do not end"
}

files() { find "$STATS" -type f; }

watch_a() { on a timeout 60 "$MESH" watch --stats-dir "$STATS" "$@"; }

bytes_moved() { watch_a --prometheus | awk '/^nccl_mesh_link_bytes_total.*nic="ab"/ {s += $2}
	END {printf "%d\n", s}'; }

# filters: as root, all users' processes are shown, unless one user or process is asked for.
filters() {
	local pids count

	pids=$(python3 -c 'import json, sys
for process in json.loads(open(sys.argv[1]).readline())["processes"]:
    assert process["uid"] == 0, process
    print(process["pid"])' "$WORK/json") || fail "no user: $(cat "$WORK/json")"
	[[ $(wc -l <<<"$pids") == 2 ]] || fail "not two processes: $pids"
	for count in "2 --user root" "2 --user 0" "0 --user 65534" "1 --pid ${pids%%$'\n'*}" \
		"0 --user 65534 --pid ${pids%%$'\n'*}"; do
		# shellcheck disable=SC2086 # the words of an option
		watch_a --count 1 --interval 0.1 ${count#* } >"$WORK/text" || fail "$count: $?"
		[[ $(grep -c 'fabric_pingpong (pid' "$WORK/text") == "${count%% *}" ]] ||
			fail "not ${count%% *} with ${count#* }: $(cat "$WORK/text")"
	done
	note "filters by user and process"
}

# The same rates in the drawing: measured here, and from the reports of both nodes.
drawn_rates() {
	local node

	on a timeout 60 "$MESH" topo --rates --json >"$WORK/topo" || fail "topo --rates: $?"
	python3 - "$WORK/topo" <<-'PY' || fail "no rates in $(cat "$WORK/topo")"
		import json, sys
		a, b = json.load(open(sys.argv[1]))["nodes"]
		(ab,) = [nic for nic in a["nics"] if nic["name"] == "ab"]
		assert ab["tx_bytes_per_s"] > 1e6 and ab["rx_bytes_per_s"] > 1e6, ab
		assert all(nic["tx_bytes_per_s"] is None for nic in b["nics"]), b
	PY
	mkdir "$WORK/reports"
	for node in a b; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		on $node sh -c '"$0" nics --json; "$0" watch --json --count 1 --interval 0.5' \
			"$MESH" >"$WORK/reports/$node.json"
	done
	"$MESH" topo --dot "$WORK/reports" >"$WORK/topo" || fail "topo of reports: $?"
	[[ $(grep -c $'\u2191.*[GM]b/s \u2193.*[GM]b/s' "$WORK/topo") == 2 ]] &&
		grep -q 'now [0-9.]* [GM]b/s' "$WORK/topo" ||
		fail "no rates in the picture: $(cat "$WORK/topo")"
	note "topo draws what the cable carries now"
}

living_counters() {
	ranks_start NCCL_MESH_STATS_DIR="$STATS"
	wait_for "[[ \$(bytes_moved) -gt 400000000 ]]" 120 ||
		fail "no bytes are counted: $(cat "$WORK"/rank*.out)"
	[[ $(stat -c %a "$STATS") == 700 ]] || fail "the folder is open: $(stat -c %a "$STATS")"
	[[ $(stat -c %a "$STATS"/*.mesh | sort -u) == 600 ]] || fail "a file is open to others"
	watch_a --count 2 --interval 1 >"$WORK/text" || fail "watch: $?"
	grep -q 'ab .*kernel (TCP)' "$WORK/text" || fail "TCP is not seen: $(cat "$WORK/text")"
	grep -q ' b  *ab  *10.77.1.1 -> 10.77.1.2  tcp ' "$WORK/text" ||
		fail "the path is not shown: $(cat "$WORK/text")"
	# On a busy machine nothing may move for a second.
	wait_for "watch_a --count 2 --interval 1 --json >$WORK/json &&
		tail -n 1 $WORK/json | grep -q '\"traffic\":\"kernel\"'" 60 ||
		fail "watch --json sees no traffic: $(cat "$WORK/json")"
	# Both layers' counters at one moment: nothing moves between the two looks.
	ranks_signal STOP
	watch_a --count 1 --json >"$WORK/still" || fail "watch --json: $?"
	ranks_signal CONT
	python3 - "$WORK/json" "$WORK/still" <<-'PY' ||
		import json, sys
		looks = [json.loads(line) for path in sys.argv[1:] for line in open(path)]
		assert len(looks) == 3, len(looks)
		nics = [[n for n in look["nics"] if n["netdev"] == "ab"][0] for look in looks]
		links = [[l for l in look["links"] if l["peer"] == "b" and l["nic"] == "ab"]
		         for look in looks]
		assert nics[1]["traffic"] == "kernel" and nics[1]["rdma"] is None, nics[1]
		assert {l["direction"] for l in links[1]} == {"send", "receive"}, links[1]
		# A rate is what the counter has gained.
		def fits(rate, now, before):
		    assert abs(rate * looks[1]["seconds"] - (now - before)) < 2, (rate, now, before)
		for way in "tx_bytes", "rx_bytes":
		    assert nics[1][way + "_per_s"] > 0, nics[1]
		    fits(nics[1][way + "_per_s"], nics[1][way], nics[0][way])
		for now, before in zip(links[1], links[0]):
		    assert now["direction"] == before["direction"]
		    fits(now["bytes_per_s"], now["bytes"], before["bytes"])
		assert sum(l["bytes_per_s"] for l in links[1]) > 0, links[1]
		# The same traffic, seen from above and from below, with headers.
		plugin = sum(l["bytes"] for l in links[2])
		netdev = nics[2]["tx_bytes"] + nics[2]["rx_bytes"]
		print("  the plugin's bytes are %.2f of the netdev's" % (plugin / netdev))
		assert 0.7 * netdev < plugin < 1.1 * netdev, (plugin, netdev)
		assert all(l["errors"] == l["losses"] == l["resent"] == 0 and l["open_paths"] >= 1
		           for l in links[1]), links[1]
		big = [l for l in links[1] if l["segments"]]
		assert big and all(l["bytes"] > l["messages"] for l in big), links[1]
	PY
		fail "the JSON does not fit together: $(cat "$WORK/json" "$WORK/still")"
	filters
	drawn_rates
	watch_a --prometheus --output "$WORK/mesh.prom" || fail "watch --output: $?"
	[[ $(stat -c %a "$WORK/mesh.prom") == 644 ]] || fail "the textfile collector cannot read it"
	grep -q '^nccl_mesh_link_paths{nic="ab",peer="b"' "$WORK/mesh.prom" ||
		fail "no gauge: $(cat "$WORK/mesh.prom")"
	python3 "$MESH_TOP/tests/functional/check_dashboard.py" \
		"$MESH_TOP/packaging/grafana/nccl-mesh.json" "$WORK/mesh.prom" ||
		fail "Grafana's dashboard does not fit the metrics"
	if command -v promtool >/dev/null; then
		promtool check metrics <"$WORK/mesh.prom" || fail "promtool does not like it"
	fi
}

# Each path of the link is as often lost as the log says that the link is, and what was in flight
# was sent again.
loss_is_counted() {
	watch_a --count 1 --interval 0.1 --json >"$WORK/json" &&
		watch_a --prometheus >"$WORK/mesh.prom" &&
		python3 - "$WORK"/{json,mesh.prom,rank0.out,rank1.out} 2>"$WORK/why" <<-'PY'
		import json, re, sys
		look, metrics, *logs = [open(path).read() for path in sys.argv[1:]]
		links = json.loads(look)["links"]
		assert len(links) == 4, links
		for link in links:
		    lost = len(re.findall("lost node " + link["peer"], logs[link["peer"] == "a"]))
		    assert link["losses"] == lost * link["open_paths"] > 0, (link, lost)
		    assert link["direction"] == "send" or not link["resent"], link
		for name, metric in ("losses", "losses"), ("resent", "resent_bytes"):
		    count = sum(link[name] for link in links)
		    found = re.findall("nccl_mesh_link_%s_total{.*} (.*)" % metric, metrics)
		    assert sum(map(int, found)) == count > 0, (name, found, count)
	PY
}

# dead_cable_in_use: its tool has taken the addresses away with the carrier, and then the NIC is
# gone: the comms that are open still name it.
dead_cable_in_use() {
	mesh_carrier a ab down
	ip -n "${MESH_PREFIX}a" address flush dev ab || fail "cannot flush ab"
	watch_a --prometheus >"$WORK/mesh.prom" || fail "watch --prometheus: $?"
	grep -q '^nccl_mesh_nic_up{nic="ab"} 0$' "$WORK/mesh.prom" ||
		fail "the NIC in use is not in the metrics: $(cat "$WORK/mesh.prom")"
	ip -n "${MESH_PREFIX}a" link set ab down && ip -n "${MESH_PREFIX}a" link set ab name gone ||
		fail "cannot rename ab"
	watch_a --prometheus >"$WORK/mesh.prom" || fail "watch --prometheus: $?"
	grep -q '^nccl_mesh_nic_up{nic="ab"} 0$' "$WORK/mesh.prom" ||
		fail "the NIC that vanished is not in the metrics: $(cat "$WORK/mesh.prom")"
	! grep -q '^nccl_mesh_nic_up{nic="gone"}' "$WORK/mesh.prom" ||
		fail "a NIC that nobody uses is: $(cat "$WORK/mesh.prom")"
	watch_a --count 1 --interval 0.1 >"$WORK/text" || fail "watch: $?"
	grep -q '^ab .*link down' "$WORK/text" || fail "no dead cable: $(cat "$WORK/text")"
	ip -n "${MESH_PREFIX}a" link set gone name ab && ip -n "${MESH_PREFIX}a" link set ab up ||
		fail "cannot name ab again"
	mesh_addresses a ab 10.77.1.1/24
	mesh_carrier a ab up
	wait_for "watch_a --prometheus | grep -q '^nccl_mesh_nic_up{nic=\"ab\"} 1$'" 60 ||
		fail "the cable is not back: $(watch_a --prometheus)"
	wait_for loss_is_counted 60 ||
		fail "the loss is not counted: $(cat "$WORK/why" "$WORK/json")"
	note "shows a NIC that is in use and has lost its cable, its addresses, and itself"
}

ctrl_c() {
	mesh_spawn a "$WORK/endless" "$MESH" watch --stats-dir "$STATS" --interval 0.2
	wait_for "grep -q NETDEV $WORK/endless" 60 || fail "watch shows nothing"
	kill -INT "$MESH_SPAWNED"
	wait "$MESH_SPAWNED" || fail "watch ends with $? after Ctrl-C"
}

killed_ranks() {
	[[ $(files | wc -l) == 2 ]] || fail "not two files: $(files)"
	ranks_kill
	watch_a --count 1 --interval 0.1 >"$WORK/text" || fail "watch: $?"
	grep -q 'No process uses the plugin now.' "$WORK/text" || fail "$(cat "$WORK/text")"
	[[ -z $(files) ]] || fail "files of dead processes stay: $(files)"
}

clean_end() {
	RANKS_ENV=(NCCL_MESH_STATS_DIR="$STATS")
	run_ranks "$WORK/clean" a b -- --sizes 8,1M --iters 5 || {
		ranks_show "$WORK/clean"
		fail "the ranks failed"
	}
	[[ -z $(files) ]] || fail "a process that has ended leaves its file: $(files)"
	RANKS_ENV=(NCCL_MESH_STATS_DIR=none)
	rmdir "$STATS"
	run_ranks "$WORK/none" a b -- --sizes 8 --iters 5 || fail "the ranks failed"
	[[ ! -e $STATS ]] || fail "'none' makes a folder"
	# A folder that cannot be used is no reason to fail.
	RANKS_ENV=(NCCL_MESH_STATS_DIR=/proc/nowhere NCCL_DEBUG=INFO)
	run_ranks "$WORK/bad" a b -- --sizes 8 --iters 5 || fail "the ranks failed"
}

# dead_cable: a NIC without carrier is still shown, as one whose link is down.
dead_cable() {
	mesh_carrier a ab down
	watch_a --prometheus >"$WORK/mesh.prom" || fail "watch --prometheus: $?"
	grep -q '^nccl_mesh_nic_up{nic="ab"} 0$' "$WORK/mesh.prom" &&
		grep -q '^nccl_mesh_nic_transmit_bytes_total{nic="ab"} [1-9]' "$WORK/mesh.prom" &&
		! grep -q '^nccl_mesh_nic_speed.*"ab"' "$WORK/mesh.prom" ||
		fail "the dead cable is not in the metrics: $(cat "$WORK/mesh.prom")"
	watch_a --count 1 --interval 0.1 >"$WORK/text" || fail "watch: $?"
	grep -q '^ab .*link down' "$WORK/text" || fail "no dead cable: $(cat "$WORK/text")"
	mesh_carrier a ab up
	wait_for "watch_a --prometheus | grep -q '^nccl_mesh_nic_up{nic=\"ab\"} 1$'" 60 ||
		fail "the cable is not back: $(watch_a --prometheus)"
	note "shows a NIC whose link is down"
}

main() {
	mesh_up line 2
	living_counters
	dead_cable_in_use
	ctrl_c
	killed_ranks
	clean_end
	dead_cable
	rm -rf "$WORK"
}

main
