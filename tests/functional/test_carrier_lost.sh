#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_carrier_lost.sh - a cable is pulled when its NICs are open, and then processes connect: they
# go over a relay at once. Every byte is checked. What happens without a relay is carrier-comes and
# no-carrier of tests/world/test_world_connects.c.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Of the connection without a cable. NCCL_MESH_CONNECT_TIMEOUT is much longer.
RELAYED_MS=8000

faults_init
FAULTS_ENV+=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500"
	"NCCL_MESH_CONNECT_TIMEOUT=60" "NCCL_MESH_ACCEPT_TIMEOUT=60")
mesh_up triangle patched
relays a relay
# The first comm needs the cable; the next one begins when it is out.
play c listener <<-END
	limit 120000
	accepts 0 $FAULTS/handle0 64K
	transfer 0 60000 8 3
	drop 0
	accepts 1 $FAULTS/handle1 64K
	transfer 1 60000 8 3
	drop 1
END
play b connector <<-END
	limit 120000
	connects 0 $FAULTS/handle0 64K
	transfer 0 60000 8 3
	drop 0
	touch $FAULTS/first
	await $FAULTS/away
	await $FAULTS/handle1
	within $(ms $RELAYED_MS) connect 1 $FAULTS/handle1
	room 1 64K
	transfer 1 60000 8 3
	drop 1
END
arrives first
mesh_unplug b bc
touch "$FAULTS/away"
ended connector
ended listener
touch "$FAULTS/over"
ended relay
said relay INFO 'relay: a circuit from node b to node c'
note "the cable is out: the connection goes over the relay"
