#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_nic_joins.sh - a NIC that could not be used at init carries the next comm once its link is
# up: its cable is plugged in, it appears, or it gets an address. NCCL's devices stay the same.
# seconds: 40
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Nothing here is lost or dead: these only end a test that hangs.
FAULTS_ENV=(
	"NCCL_MESH_CONNECT_TIMEOUT=40" "NCCL_MESH_ACCEPT_TIMEOUT=40"
	"NCCL_MESH_DEAD_PEER_TIMEOUT=40"
)

# comm ROLE NAME SIZE: makes comm 0 by the handle NAME, sends 3 messages of SIZE once the file
# NAME.carries is there, and closes it.
comm() {
	meet "$1" "$3" | sed "s|$FAULTS/handle|$FAULTS/$2|"
	printf '%s\n' "await $FAULTS/$2.carries" "transfer 0 $3 3 5" "dereg 0" "close 0"
	[[ $1 != listen ]] || echo "close-listen 0"
}

# scene ROLE FIRST: a process that makes one comm, unless FIRST is "-", and a further one when its
# new NIC has joined.
scene() {
	echo "init 0"
	if [[ $2 == - ]]; then
		echo "listen 9 $FAULTS/unused.$1" # starts the plugin's thread, as NCCL does
	else
		comm "$1" first 1M
	fi
	printf '%s\n' "touch $FAULTS/ready.$1" "await $FAULTS/joined"
	comm "$1" again 8M
	echo "finalize 0"
}

# joins CASE FIRST NIC_A NIC_B COMMAND...: two processes; COMMAND brings the new NIC of both.
joins() {
	local node before
	local -A nic=([a]=$3 [b]=$4)

	CASE=$1
	rm -f "$FAULTS"/{first,again,ready,joined,unused}*
	touch "$FAULTS/first.carries"
	play a a < <(scene connect "$2")
	play b b < <(scene listen "$2")
	arrives ready.connect ready.listen
	for node in a b; do unsaid $node INFO "NIC [0-9]+: ${nic[$node]} uses"; done
	"${@:5}"
	for node in a b; do
		wait_for "grep -Eq '^INFO .*NIC [1-9]: ${nic[$node]} uses' $FAULTS/$node.log" 60 ||
			faults_show "$CASE: ${nic[$node]} does not join"
	done
	before=$(mesh_bytes a "$3" tx)
	touch "$FAULTS/joined"
	# Up to a second after the cable the kernel answers nothing there. A comm with another path
	# begins without, and gets this one when it answers.
	for node in a b; do
		wait_for "grep -q 'path: from=a to=b nic=${nic[$node]} ' $FAULTS/$node.log" 60 ||
			faults_show "$CASE: no path over ${nic[$node]}"
	done
	touch "$FAULTS/again.carries"
	for node in a b; do
		ended $node
		unsaid $node WARN "."
	done
	note "$CASE: $(($(mesh_bytes a "$3" tx) - before)) bytes over the new NIC"
	(($(mesh_bytes a "$3" tx) - before > 3 << 20)) || faults_show "$CASE: the NIC is not used"
}

# A second cable, beside one that is up.
second_cable() {
	mesh_cable a ax 10.77.9.1/24 b bx 10.77.9.2/24
	mesh_unplug a ax
	joins "a second cable" first ax bx mesh_plug a ax
}

# At init the only NIC of each node is the management network's; the cable then replaces it.
instead_of_management() {
	mesh_unplug a ab
	joins "instead of the management network" first ab ba mesh_plug a ab
	for node in a b; do
		(($(grep -c 'path: .* nic=mgmt0 ' "$FAULTS/$node.log") == 1)) ||
			faults_show "$CASE: $node still uses the management network"
	done
}

# At init only loopback is there. Comms cannot be made before the NIC has joined.
instead_of_loopback() {
	mesh_unplug a ab
	for node in a b; do ip -n "$(mesh_ns $node)" link set mgmt0 down; done
	joins "instead of loopback" - ab ba mesh_plug a ab
	for node in a b; do ip -n "$(mesh_ns $node)" link set mgmt0 up; done
}

# The NIC is created after init.
hot_plugged() {
	joins "hot-plugged" first ay by mesh_link a ay 10.77.8.1/24 b by 10.77.8.2/24
	ip -n "$(mesh_ns a)" link del ay
}

addresses_give() {
	mesh_addresses a az 10.77.7.1/24
	mesh_addresses b bz 10.77.7.2/24
}

# The NIC has a carrier at init, and no address, not even a link-local one.
address_later() {
	mesh_pair a az b bz
	for nic in "a az" "b bz"; do
		# shellcheck disable=SC2086 # two words
		set -- $nic
		ip -n "$(mesh_ns "$1")" link set "$2" addrgenmode none
		ip -n "$(mesh_ns "$1")" -6 address flush dev "$2"
	done
	joins "an address later" first az bz addresses_give
	ip -n "$(mesh_ns a)" link del az
}

faults_init
mesh_up line 2 patched
all() {
	address_later
	hot_plugged
	second_cable
	mesh_unplug a ax
	instead_of_management
	instead_of_loopback
}

"${@:-all}"
