#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cable_joins.sh - one of two cables has no carrier when the connections are made. When it has
# one, they use it, too, in both directions, while messages of all sizes stream; and it is lost and
# comes back like any other. Every byte is checked.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/cables.sh"

cables_init 2 200mbit
mesh_carrier a x2 down
stream late 0
carries x1 20000
! grep -q 'INFO NET/Mesh : path: .*nic=x2' "$STREAM_FOLDER"/rank*.out ||
	stream_fail "a path goes over the cable without carrier"
mesh_carrier a x2 up
# libfabric opens the NIC, which takes up to a second.
carries x2 10000
note "the cable is in: $CARRIED % of it are used $CARRIED_MS ms later"
for rank in 0 1; do
	(($(grep -c 'INFO NET/Mesh : path: .*nic=x2' "$STREAM_FOLDER/rank$rank.out") == 8)) ||
		stream_fail "rank $rank has not 8 paths over the cable"
done
carries x1 1000

# Now it is one of two.
mesh_carrier b x2 down
moves 1000
mesh_carrier b x2 up
carries x2 1000
note "lost and back: $CARRIED % of it are used $CARRIED_MS ms later"
mesh_carrier a x1 down
moves 1000
mesh_carrier a x1 up
carries x1 1000
stream_stop
stream_ends

# The address of one end of the only cable changes while it is away.
mesh_carrier a x2 down
stream only 0
carries x1 20000
mesh_carrier a x1 down
on b ip address del 10.77.1.2/24 dev x1 && on b ip address add 10.77.1.9/24 dev x1 ||
	fail "cannot change the address of x1"
mesh_carrier a x1 up
moves 15000
note "x1 of b, the only cable, has another address: something arrives after $MOVED_MS ms"
stream_stop
stream_ends

# A NIC that no connection has needed, because its other end has no address: it gets one. Node a has
# more NICs than are opened at init; the others lead elsewhere.
mesh_carrier a x2 up
mesh_namespace_add "$(mesh_ns elsewhere)"
for i in 3 4 5; do mesh_link a x$i 10.77.$i.1/24 elsewhere x$i 10.77.$i.2/24; done
on b ip address del 10.77.2.2/24 dev x2 || fail "cannot take the address of x2"
stream unneeded 0
carries x1 20000
! grep -q 'INFO NET/Mesh : NIC [0-9]: x2 uses' "$STREAM_FOLDER/rank0.out" ||
	stream_fail "a has opened x2, which leads nowhere"
on b ip address add 10.77.2.2/24 dev x2 || fail "cannot give x2 an address"
carries x2 15000
note "x2 of b has an address: $CARRIED % of it are used $CARRIED_MS ms later"
stream_stop
stream_ends

# No cable has a carrier when the processes start: they use the management network, as there is
# nothing else, and leave it to a cable that comes up.
for i in 1 2 3 4 5; do mesh_carrier a x$i down; done
stream management 0
for rank in 0 1; do
	grep -q 'path: .*nic=mgmt0' "$STREAM_FOLDER/rank$rank.out" ||
		stream_fail "rank $rank does not use the management network"
done
mesh_carrier a x1 up
carries x1 15000
management=$(mesh_bytes a mgmt0 tx) cable=$(mesh_bytes a x1 tx)
wait_for "(($(mesh_bytes a x1 tx) < \$(mesh_bytes a x1 tx) - 20000000))" 60 ||
	stream_fail "the cable carries nothing"
((($(mesh_bytes a mgmt0 tx) - management) * 20 < $(mesh_bytes a x1 tx) - cable)) ||
	stream_fail "the management network goes on carrying data"
note "begun over the management network: $CARRIED % of a cable are used $CARRIED_MS ms later"
mesh_carrier a x1 down
moves 1000
note "and it is lost: something arrives over the management network after $MOVED_MS ms"
stream_stop
stream_ends
