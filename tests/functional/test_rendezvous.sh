#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_rendezvous.sh - the ranks meet where launchers send them: at a name that is the loopback on
# rank 0's machine, and at a port on which torchrun's store listens.
# seconds: 5
. "$(dirname "${BASH_SOURCE[0]}")/launchers.sh"

# ranks_meet RUN ADDRESS0 ADDRESS [VARIABLE=VALUE]...: a rank in each node, of which rank 0 has
# ADDRESS0 for MASTER_ADDR; all end well.
ranks_meet() {
	local run=$1 addresses=("$2" "$3" "$3") rank pids=() status=()

	shift 3
	for rank in 0 1 2; do
		mesh_spawn "${NODES[rank]}" "$OUT/$run.rank$rank" "$NAMED" env RANK=$rank \
			WORLD_SIZE=3 MASTER_ADDR="${addresses[rank]}" MASTER_PORT=29500 "$@" \
			fabric_pingpong --check --check-max 8 --timeout 60 --rendezvous-timeout 20
		pids+=("$MESH_SPAWNED")
	done
	for rank in 0 1 2; do
		wait "${pids[rank]}"
		status+=($?)
	done
	[[ ${status[*]} == "0 0 0" ]] ||
		{ cat "$OUT/$run".rank*; fail "$run: ranks ended with ${status[*]}"; }
}

# Listens on the port, as torchrun's agent does for as long as the ranks live.
hold_port() {
	mesh_spawn "$1" "$OUT/store" python3 -c "if True:
		import socket, time
		store = socket.create_server(('', $2))
		time.sleep(600)"
	# shellcheck disable=SC2016 # expanded by wait_for
	wait_for "on $1 ss -Hltn 'sport = :$2' | grep -q LISTEN" 60 || fail "no listener on $2"
}

mesh_init
launchers_up
ranks_meet name n1 n1
note "at rank 0's name, which is 127.0.1.1 there"
ranks_meet localhost localhost 192.168.1.10
note "at rank 0's address, which it calls localhost itself"
hold_port n1 29500
ranks_meet store 192.168.1.10 192.168.1.10 TORCHELASTIC_USE_AGENT_STORE=True
note "beside torchrun's store"
