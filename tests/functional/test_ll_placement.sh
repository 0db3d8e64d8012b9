#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_ll_placement.sh - NCCL's LL and LL128 poll flags inside the receive buffer while data lands:
# no flag may be seen before its data, for any size and provider.
#
# What copies the bytes promises no order: libfabric's tcp takes what its read-ahead has with
# memcpy(), which brings some bytes of a line after its flag, and a kernel's string copy, on fsrm
# processors and on arm64, may do the same. How often that is seen depends on the machine. So the
# cases of LL128 run once more where every copy brings the flags first (preload_unordered.c): a
# message that leaves the order to others fails there each time. LL has its flag in the same 8 bytes
# as its data, which no copy of whole words parts.
#
# A thread of the receiver polls as a GPU would, from the front, from the end and all over.
# seconds: 30
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

ROUNDS=${LL_ROUNDS:-100}
# kind, bytes sent, bytes of the receive: NCCL posts a whole slot and sends what there is.
# 64 KiB is a slot of LL, 614,400 bytes one of LL128 (device.h).
CASES=(
	"ll 8 65536" "ll 64 65536" "ll 1024 65536" "ll 8192 65536" "ll 8200 65536"
	"ll 32768 65536" "ll 65536 65536"
	"ll128 128 614400" "ll128 1920 614400" "ll128 8192 614400" "ll128 8320 614400"
	"ll128 16384 614400" "ll128 16512 614400"
	"ll128 65536 614400" "ll128 307200 614400" "ll128 614400 614400"
)

# The same with every copy out of order: what the plugin copies itself, and what it does not.
UNORDERED=(
	"ll128 8192 614400" "ll128 16384 614400" "ll128 16512 614400" "ll128 65536 614400"
	"ll128 614400 614400" "ll128 4194304 4194304"
)

# script ROUNDS CASE...: lines for both ends; one case that fails does not end the others.
script() {
	local rounds=$1 case kind size capacity

	shift
	for case; do
		read -r kind size capacity <<<"$case"
		echo "placement 0 $kind $size $capacity $rounds"
	done
}

# try PROVIDER SENDER ROUNDS CASE...: from that node to a. The failed cases are added to $failed.
try() {
	local provider=$1 sender=$2

	shift 2
	FAULTS_ENV+=("NCCL_MESH_PROVIDER=$provider")
	rm -f "$FAULTS"/handle*
	play a receiver <<-END
		accepts 0 $FAULTS/handle 4M
		$(script "$@")
		drop 0
		close-listen 0
	END
	play "$sender" sender <<-END
		connects 0 $FAULTS/handle 4M
		$(script "$@")
		drop 0
	END
	ended sender
	ended receiver
	[[ $(grep -c "provider=$provider\$" "$FAULTS/receiver.log") == 1 ]] ||
		faults_show "the provider was not $provider"
	grep -h '^PLACEMENT' "$FAULTS/receiver.log" | sed 's/^PLACEMENT/ /'
	failed+=$(grep -hE '^PLACEMENT.* [1-9][0-9]* flags' "$FAULTS/receiver.log")
}

faults_init
mesh_up triangle
failed=
PRELOAD=("LD_PRELOAD=$(realpath "$MESH_BUILD/functional/preload_unordered.so")")
# The sanitizers replace these functions themselves.
[[ $MESH_BUILD != *sanitize* ]] || PRELOAD=()
for provider in tcp "tcp;ofi_rxm"; do
	FAULTS_ENV=()
	try "$provider" b $((ROUNDS / FAULTS_SLOW)) "${CASES[@]}"
	FAULTS_ENV=("${PRELOAD[@]}")
	try "$provider" b 5 "${UNORDERED[@]}"
done
# d has a cable to c only, whose process relays.
mesh_node d
mesh_link d dc 10.77.9.1/24 c cd 10.77.9.2/24
JOB=("MASTER_ADDR=127.0.0.1" "MASTER_PORT=29500") # only a job's own processes relay for it
FAULTS_ENV=("${JOB[@]}")
relays c relay
FAULTS_ENV=("${JOB[@]}" "${PRELOAD[@]}")
try tcp d 5 "${UNORDERED[@]}"
grep -q "via=c" "$FAULTS/sender.log" || faults_show "no relay was on the way"
touch "$FAULTS/over"
ended relay
[[ -z $failed ]] || fail "flags were seen before their data"
note "no flag was seen before its data"
