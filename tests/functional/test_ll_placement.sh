#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_ll_placement.sh - NCCL's LL and LL128 poll flags inside the receive buffer while data lands:
# no flag may be seen before its data, for any size and provider, wherever the order is ours.
#
# It is the kernel's where a large message comes over TCP: on processors with fast string copies
# (fsrm, erms) the words of a 128-byte line may be seen in any order while it copies, and arm64
# promises none at all. LL has its flag in the same 8 bytes as its data; LL128 has not. What is seen
# of that is noted, and README.md says what follows.
#
# A thread of the receiver polls as a GPU would, from the front, from the end and all over.
# seconds: 30
set -u
here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=tests/functional/faults.sh
. "$here/faults.sh"

ROUNDS=${LL_ROUNDS:-300}
# kind, bytes sent, bytes of the receive: NCCL posts a whole slot and sends what there is.
# 64 KiB is a slot of LL, 614,400 bytes one of LL128 (device.h).
CASES=(
	"ll 8 65536" "ll 64 65536" "ll 1024 65536" "ll 8192 65536" "ll 8200 65536"
	"ll 32768 65536" "ll 65536 65536"
	"ll128 128 614400" "ll128 1920 614400" "ll128 8192 614400" "ll128 8320 614400"
	"ll128 16384 614400" "ll128 16512 614400"
	"ll128 65536 614400" "ll128 307200 614400" "ll128 614400 614400"
)

# Larger than NCCL_MESH_EAGER_LIMIT, which is at most 8 KiB on ofi_rxm: the kernel writes these into
# place.
declare -A KERNEL_ORDERS=(
	[tcp]='^PLACEMENT ll128, (16512|65536|307200|614400) bytes'
	["tcp;ofi_rxm"]='^PLACEMENT ll128, (8320|16384|16512|65536|307200|614400) bytes'
)

# As try, but with every case: all are tried, then the failed ones are listed.
script() {
	local case kind size capacity

	for case in "${CASES[@]}"; do
		read -r kind size capacity <<<"$case"
		echo "placement 0 $kind $size $capacity $((ROUNDS / FAULTS_SLOW))"
	done
}

try() {
	FAULTS_ENV=("NCCL_MESH_PROVIDER=$1")
	rm -f "$FAULTS"/handle*
	play a receiver <<-END
		init 0
		listen 0 $FAULTS/handle
		accept 0 0
		buffer 0 1M
		reg 0 0 0
		$(script)
		dereg 0
		close 0
		close-listen 0
		finalize 0
	END
	play b sender <<-END
		init 0
		await $FAULTS/handle
		connect 0 $FAULTS/handle
		buffer 0 1M
		reg 0 0 0
		$(script)
		dereg 0
		close 0
		finalize 0
	END
	ended sender
	ended receiver
	[[ $(grep -c "provider=$1\$" "$FAULTS/receiver.log") == 1 ]] ||
		faults_show "the provider was not $1"
	grep -h '^PLACEMENT' "$FAULTS/receiver.log" | sed 's/^PLACEMENT/ /'
	failed+=$(grep -hE '^PLACEMENT.* [1-9][0-9]* flags' "$FAULTS/receiver.log" |
		grep -vE "${KERNEL_ORDERS[$1]}")
}

faults_init
mesh_up triangle
failed=
try tcp
try "tcp;ofi_rxm"
[[ -z $failed ]] || fail "flags were seen before their data"
note "no flag was seen before its data where the order is ours"
