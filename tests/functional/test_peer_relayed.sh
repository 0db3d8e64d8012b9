#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_peer_relayed.sh - `fi_mesh check --peer` measures a pair without a common cable over the
# nodes between, where `fi_mesh serve --relay` or a rank runs, and says why where it cannot.
#
#            a ---ab ba--- b          a checks c, at its address of the management network. All
#            |             |          cables are shaped, so that their rate is what it measures.
#           ad da       bc cb
#            |             |
#            d ---dc cd--- c
# seconds: 90
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

MESH=$MESH_BUILD/fi_mesh
# Of each cable: so little that a busy machine can fill it.
RATE_MBIT=16
# How long each measurement takes, where figures are not looked at.
QUICK=(--ms 50)

# serves NODE [NAME=VALUE...] [OPTION...]: at its address of the management network.
serves() { serve "$1" -- "${@:2}" --listen "$(mesh_mgmt_addr "$1")"; }

# check ARGUMENT...: from a; its status in $STATUS.
check() {
	on a timeout 180 "$MESH" check --peer "$@" >"$OUT/out" 2>"$OUT/err"
	STATUS=$?
	((STATUS != 124)) || fail "check --peer $* does not end"
}

says() {
	local text

	for text in "$@"; do
		grep -qF -- "$text" "$OUT/out" ||
			fail "no \"$text\" in: $(cat "$OUT/out" "$OUT/err")"
	done
}

# shape RATE: of all cables, in both directions.
shape() {
	local end

	for end in "a ab" "b ba" "b bc" "c cb" "c cd" "d dc" "d da" "a ad"; do
		# shellcheck disable=SC2086 # two words
		mesh_shape $end "$1"
	done
}

# measured ROUTES VIA...: the JSON in $OUT/out has figures of a pair that took these relays, and
# they are those of so many cables.
measured() {
	python3 - "$OUT/out" "$RATE_MBIT" "$@" <<-'PY' || fail "not as expected: $(cat "$OUT/out")"
		import json, sys
		rate, routes, via = float(sys.argv[2]) / 1000, int(sys.argv[3]), sys.argv[4:]
		peer = [p for p in json.load(open(sys.argv[1]))["peers"] if p["node"] == "c"][0]
		paths, relayed = peer["sections"]
		assert paths["id"] == "paths" and not paths["paths"], paths
		assert len(paths["relays"]) == routes, paths
		assert relayed["id"] == "relayed" and relayed["title"] == "node c over relays"
		assert relayed["verdict"] in ("pass", "unknown"), relayed
		assert sorted(p["via"] for p in relayed["paths"]) == [[v] for v in via], relayed
		assert sorted(p["nic"] for p in relayed["paths"]) == sorted("a" + v for v in via)
		assert relayed["half_rtt_us"] > 0, relayed
		# Where there are two cables, both carry; a busy machine may not fill them.
		least = {1: 0.5, 2: 1.2}[routes] * rate
		for key in "to_gbps", "from_gbps":
		    assert least < relayed[key] < 1.1 * routes * rate, (key, relayed)
	PY
}

# In a line of three, and beside it a pair with a cable.
one_relay() {
	local mgmt cable

	mgmt=$(bytes_sent a mgmt0) cable=$(bytes_sent a ab)
	check 10.77.1.2 "$C" --json
	measured 1 b
	python3 - "$OUT/out" "$RATE_MBIT" <<-'PY' || fail "the pair beside it: $(cat "$OUT/out")"
		import json, sys
		rate = float(sys.argv[2]) / 1000
		peer = [p for p in json.load(open(sys.argv[1]))["peers"] if p["node"] == "b"][0]
		assert [s["id"] for s in peer["sections"]] == ["paths", "link"], peer
		for key in "to_gbps", "from_gbps":
		    assert 0.5 * rate < peer["sections"][1][key] < 1.25 * rate, peer
	PY
	mgmt=$(($(bytes_sent a mgmt0) - mgmt)) cable=$(($(bytes_sent a ab) - cable))
	((mgmt * 50 < cable)) || fail "the management network carried $mgmt of $cable bytes"
	check "$C" "${QUICK[@]}"
	says "node c over relays" "us to node c (half of a round trip of 8 bytes, via=b)" \
		"of its route (via=b)" "1 node; findings:" "0 warn, 0 fail"
	note "a line of three, and a direct pair beside it"
}

# A process of a job on b, as idle as NCCL between two collectives: the plugin is initialised.
rank_start() {
	rm -f "$OUT/initialised"
	printf '%s\n' "limit 240000" "init 0" "touch $OUT/initialised" "await $OUT/never" \
		>"$OUT/rank.script"
	mesh_spawn b "$OUT/rank" env RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 MASTER_PORT=29500 \
		"$MESH_BUILD/functional/fault_driver" "$MESH_BUILD/libnccl-net-mesh.so" \
		"$OUT/rank.script"
	RANK=$MESH_SPAWNED
	wait_for "[[ -e $OUT/initialised ]]" 60 || fail "no rank: $(cat "$OUT/rank")"
}

# A rank relays for its job only: who asks from a shell without a job is taken for one of it.
rank_relays() {
	rank_start
	check "$C" "${QUICK[@]}"
	says "node b: a rank runs there, and relays for its job" "of 8 bytes, via=b)" \
		"of its route (via=b)" "0 warn, 0 fail"
	MASTER_ADDR=192.0.2.1 MASTER_PORT=29500 check "$C" "${QUICK[@]}"
	says "of 8 bytes, via=b)" "0 warn, 0 fail"
	MASTER_ADDR=192.0.2.1 MASTER_PORT=1 check "$C" "${QUICK[@]}"
	((STATUS == 1)) || fail "status $STATUS: $(cat "$OUT/out")"
	# The end that gives up first says it.
	says "node c cannot be reached over relays: no connection to it comes up (" \
		"no relay reaches node" "no neighbour runs a process of this job" \
		"seen: the route: a ab - ba b: tcp, 10 Gb/s; b bc - cb c: tcp, 10 Gb/s"
	kill "$RANK"
	note "a rank of a job relays"
}

# The hop behind the relay is shut: the relay is named, and what it says.
relay_cannot_go_on() {
	if ! on c nft "add table inet block; add chain inet block input \
		{ type filter hook input priority 0 ; } ; add rule inet block input \
		iifname cb meta l4proto tcp drop" 2>/dev/null; then
		note "nft does not work here: a hop that is shut is not tested"
		return
	fi
	check "$C" "${QUICK[@]}"
	((STATUS == 1)) || fail "status $STATUS: $(cat "$OUT/out")"
	says "no connection to it comes up" "node b: "
	on c nft flush ruleset
	note "a hop behind the relay that is shut"
}

relaying_is_off() {
	NCCL_MESH_RELAY=off check "$C" "${QUICK[@]}"
	((STATUS == 1)) || fail "status $STATUS: $(cat "$OUT/out")"
	says "no direct path to node c" "seen: NCCL_MESH_RELAY=off is set here"
	end_serving c
	serves c NCCL_MESH_RELAY=off
	check "$C" "${QUICK[@]}"
	((STATUS == 1)) || fail "status $STATUS: $(cat "$OUT/out")"
	says "cannot be reached over relays: it does not join the mesh (on node c: NCCL_MESH" \
		"seen: the route: a ab - ba b: tcp, 10 Gb/s; b bc - cb c: tcp, 10 Gb/s"
	end_serving c
	serves c
	note "NCCL_MESH_RELAY=off at either end"
}

main() {
	mesh_init
	mesh_up ring 4
	C=$(mesh_mgmt_addr c)
	shape ${RATE_MBIT}mbit
	serves c
	serves b
	check "$C" "${QUICK[@]}"
	says "cables reach it over 1 node, where nothing relays now"
	! grep -q 'over relays' "$OUT/out" || fail "$(cat "$OUT/out")"
	end_serving b
	rank_relays
	serves b --relay
	one_relay
	relay_cannot_go_on
	relaying_is_off
	serves d --relay
	check "$C" --json
	measured 2 b d
	note "the diagonal of a ring of four: both ways round"
	end_serving
	! grep -h 'lost' "$OUT"/serve-* || fail "a relay misses a process that has ended in order"
}

main
