#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_serve_relay.sh - a star of five whose hub runs no rank: `fi_mesh serve --relay` relays there,
# for the jobs that its environment allows; two ranks there share that;
# and NCCL_MESH_RELAY=any.
# seconds: 50
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"
. "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
. "$(dirname "${BASH_SOURCE[0]}")/serving.sh"

ARGS=(--timeout 100 --sizes "8,64K,1M" --iters 2 --repeat 1 --check-max 20K
	--check-every 2)
LEAVES=(m n o p)
# Percent of what the cables carry that the management network may.
MANAGEMENT_MAX=1

# relay WORDS [NAME=VALUE...]: starts the service at the hub, with these variables, which relays for
# what the words say.
relay() {
	serve h -- "${@:2}" --relay
	serving_await h "relaying for $1"
}

# The pair m, n with MASTER_PORT=29500 at m.
other_job() {
	relay 'the job that the environment names' MASTER_ADDR=192.0.2.1 MASTER_PORT=29500
	ranks_refuse other-job 60 'no common subnet' m n -- \
		"${ARGS[@]}" --pairs 0-1
	end_serving h
	note "a service for another job: no relay"
}

# Every size of the correctness matrix.
own_job() {
	relay 'the job that the environment names' MASTER_ADDR="$(mesh_mgmt_addr m)" \
		MASTER_PORT=29500
	ranks_pass own-job m n -- "${ARGS[@]}" --check-max 1048577
	said own-job '"via": "h"'
	end_serving h
	note "a service for this job relays"
}

# What the service has relayed, and for whom, is shown after the circuits have ended.
counted() {
	on h "$MESH_BUILD/fi_mesh" watch --count 1 --json --pid "${SERVED[h]}" >"$OUT/watch"
	python3 - "$OUT/watch" 2>"$OUT/why" <<-'PY'
		import json, sys
		circuits = json.load(open(sys.argv[1]))["circuits"]
		pairs = {(c["from"], c["to"]): c for c in circuits}
		assert len(pairs) == len(circuits) == 12, pairs
		for (a, b), c in pairs.items():
		    assert c["nic_from"] == "h" + a and c["nic_to"] == "h" + b, c
		    assert c["bytes"] >= 1 << 20 and c["segments"] and c["messages"], c
		    assert c["open_circuits"] == c["slots"] == c["used_slots"] == 0, c
	PY
}

# The ranks' tuner differs from what the service knows, which is nothing.
all_jobs() {
	local mgmt cable

	relay 'all jobs'
	on m "$MESH_BUILD/fi_mesh" neighbours >"$OUT/neighbours"
	grep -qE '^mh .* h .*fi_mesh serve --relay$' "$OUT/neighbours" ||
		fail "m does not see the service: $(cat "$OUT/neighbours")"
	mgmt=$(bytes_sent m mgmt0) cable=$(bytes_sent m mh)
	RANKS_ENV=(NCCL_MESH_TUNER=ring)
	ranks_pass star "${LEAVES[@]}" -- "${ARGS[@]}" --all-at-once
	RANKS_ENV=()
	mgmt=$(($(bytes_sent m mgmt0) - mgmt)) cable=$(($(bytes_sent m mh) - cable))
	((mgmt * 100 < cable * MANAGEMENT_MAX)) ||
		fail "m sent $mgmt bytes over the management network, $cable over the cable"
	[[ $(grep -o '"via": "h"' "$OUT/star/rank0.out" | wc -l) -ge 12 ]] ||
		fail "not each pair has gone through the hub"
	wait_for counted 60 || fail "not what was relayed: $(cat "$OUT/watch" "$OUT/why")"
	end_serving h
	note "star of 5, the hub without a rank: all pairs at once"
}

# A rank of another job in the middle.
any_rank() {
	FAULTS_ENV+=(NCCL_MESH_RELAY=any MASTER_ADDR=192.0.2.1 MASTER_PORT=1)
	relays h hub
	RANKS_ENV=(NCCL_MESH_RELAY=any)
	ranks_pass any m n -- "${ARGS[@]}"
	RANKS_ENV=()
	touch "$FAULTS/over"
	ended hub
	note "NCCL_MESH_RELAY=any: a rank of another job relays"
}

# Two ranks of this job at the hub, each with memory for three of the four circuits.
two_ranks() {
	local name before=("${FAULTS_ENV[@]}")

	FAULTS_ENV+=(
		NCCL_MESH_RELAY_MEMORY=3M "MASTER_ADDR=$(mesh_mgmt_addr m)" MASTER_PORT=29500
	)
	for name in hub1 hub2; do relays h $name; done
	ranks_pass two m n -- "${ARGS[@]}"
	touch "$FAULTS/over"
	for name in hub1 hub2; do ended $name; done
	rm "$FAULTS/over"
	FAULTS_ENV=("${before[@]}")
	note "two ranks at the hub: what one has no memory for, the other one relays"
}

refused() {
	! on h env NCCL_MESH_RELAY=off "$MESH_BUILD/fi_mesh" serve --relay >"$OUT/refused" 2>&1 ||
		fail "it relays although NCCL_MESH_RELAY=off"
	grep -q 'cannot relay: NCCL_MESH_RELAY=off' "$OUT/refused" || fail "$(cat "$OUT/refused")"
}

faults_init
mesh_node h "${LEAVES[@]}"
mesh_cabled "${LEAVES[@]/#/h}"
refused
other_job
own_job
all_jobs
two_ranks
any_rank
