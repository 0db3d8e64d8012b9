#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_mesh_lib.sh - the test library itself: links carry, limits limit, nothing is left behind.
# alone: it measures, and leaves a namespace behind that any other test would remove
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

LIB=$MESH_TOP/tests/functional/lib.sh

reaches() { on "$1" ping -c 1 -W 20 -I "$2" "$3" >/dev/null; }

# Sends $3 bytes from node $1 to address $2 in node $4; prints the milliseconds it took.
transfer_ms() {
	local port=9000

	mesh_spawn "$4" /dev/null python3 -c "
import socket
s = socket.create_server(('$2', $port))
c, _ = s.accept()
while c.recv(1 << 20): pass
c.send(b'x')"
	wait_for "on $4 ss -Hltn | grep -q :$port" 60 || fail "no server"
	on "$1" python3 -c "
import socket, time
s = socket.create_connection(('$2', $port))
t = time.monotonic()
s.sendall(bytes($3))
s.shutdown(socket.SHUT_WR)
s.recv(1)
print(int((time.monotonic() - t) * 1000))"
}

test_triangle_carries() {
	local pair

	for pair in "a ab 10.77.1.2" "b bc 10.77.2.2" "c ca 10.77.3.2" "a ac 10.77.3.1" \
		"a ab fd77:1::2" "c cb fd77:2::1" "a mgmt0 10.77.0.3"; do
		# shellcheck disable=SC2086 # three words
		reaches $pair || fail "no answer: $pair"
	done
	[[ $(mesh_addr b ba) == 10.77.1.2 ]] || fail "mesh_addr says '$(mesh_addr b ba)'"
	on a ip route show default | grep -q mgmt0 || fail "default route is not on mgmt0"
	# The cable b-c does not lead into a, and no node forwards.
	! on a ping -c 1 -W 1 10.77.2.1 >/dev/null || fail "a reaches the cable between b and c"
}

test_counters() {
	local before after

	before=$(mesh_bytes a ab tx)
	on a ping -c 3 -i 0.2 -s 1000 10.77.1.2 >/dev/null || fail "ping"
	after=$(mesh_bytes a ab tx)
	((after - before >= 3000 && after - before < 10000)) || fail "counted $((after - before))"
}

# 4 MiB at 100 Mbit/s take 335 ms, less the burst of 256 KiB; without a limit they take far less.
test_shape() {
	local ms

	mesh_shape a ab 100mbit
	ms=$(transfer_ms a 10.77.1.2 $((4 << 20)) b)
	((ms > 250 && ms < 20000)) || fail "4 MiB at 100 Mbit/s took $ms ms"
	mesh_shape a ab none
}

test_carrier() {
	mesh_carrier a ab down
	[[ $(mesh_has_carrier a ab) == 0 ]] || fail "a ab has carrier"
	mesh_carrier a ab up
	wait_for "reaches a ab 10.77.1.2" 60 || fail "the link did not come back"
}

test_cable_pulled() {
	mesh_node d e
	mesh_cable d de 10.77.9.1/24 e ed 10.77.9.2/24
	wait_for "reaches d de 10.77.9.2" 60 || fail "the cable does not carry"
	mesh_unplug d de
	[[ $(mesh_has_carrier d de)$(mesh_has_carrier e ed) == 00 ]] || fail "there is carrier"
	on e ip -o link show ed | grep -q '<[^>]*\bUP\b' || fail "ed is administratively down"
	mesh_plug d de
	wait_for "reaches e ed 10.77.9.1" 60 || fail "the cable did not come back"
}

test_switch() {
	mesh_switch sw a sw0 10.77.10.1/24 b sw0 10.77.10.2/24 c sw0 10.77.10.3/24
	reaches a sw0 10.77.10.3 || fail "a does not reach c over the switch"
	reaches b sw0 10.77.10.1 || fail "b does not reach a over the switch"
}

test_wait_for() {
	wait_for true 0 || fail "wait_for true"
	! wait_for false 0 || fail "wait_for false"
}

# A script leaves no namespace and no process, however it ends; a killed one is found.
test_cleanup() {
	local log pid how

	log=$(mktemp)
	# shellcheck disable=SC2016 # expanded by the inner shell
	for how in 'exit 3' 'kill -TERM $$; wait' 'set -u; echo "$UNSET_VARIABLE"'; do
		bash -c "PS4=; . '$LIB'; mesh_init; echo \$\$ >'$log'; mesh_node x
			mesh_spawn x /dev/null bash -c 'trap \"\" TERM; read -r <> <(:)'
			$how" 2>/dev/null
		pid=$(cat "$log")
		! ip netns list | grep -q "^mesh$pid-" || fail "'$how' leaves namespaces"
	done
	bash -c ". '$LIB'; mesh_init; echo \$\$ >'$log'; mesh_node x; kill -KILL \$\$" \
		2>/dev/null
	pid=$(cat "$log")
	rm -f "$log"
	[[ $(mesh_leftovers) == *"mesh$pid-x"* ]] || fail "a killed script's namespace is not found"
	mesh_remove_leftovers 2>/dev/null
	! ip netns list | grep -q "^mesh$pid-" || fail "leftovers stay"
}

command -v ping >/dev/null || skip "'ping' is missing (Debian, Ubuntu: iputils-ping)"
mesh_init
mesh_up triangle
for t in triangle_carries counters shape carrier cable_pulled switch wait_for cleanup; do
	"test_$t"
	note "ok $t"
done
