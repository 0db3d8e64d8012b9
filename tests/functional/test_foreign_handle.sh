#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_foreign_handle.sh - handles that are not a listener's: refused in words, at once, and the
# listener that they were made from still works.
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

VERSION=$(sed -n 's/^#define MESH_PROTOCOL_VERSION //p' "$MESH_TOP/src/wire/protocol.h")

# A wait for a peer takes this many seconds; a refusal, at most AT_ONCE ms.
FAULTS_ENV[0]=NCCL_MESH_CONNECT_TIMEOUT=30
AT_ONCE=8000

# One command for each forged handle: forge it, and connect to it within MS.
forged() {
	echo "forge $FAULTS/right $FAULTS/wrong $1 $2"
	echo "! within $(ms "$3") connect 1 $FAULTS/wrong"
	echo "close 1"
}

refusals() {
	local bit bytes

	forged zero 0 $AT_ONCE
	forged foreign 1 $AT_ONCE
	forged foreign 77 $AT_ONCE
	# Any bit but those of the connector's own note at the end.
	for ((bit = 0; bit < 960; bit += 7)); do
		forged flip $bit $AT_ONCE
	done
	# The checksum is the last four bytes that count: one alone may be zero already.
	for bytes in 0 1 4 8 31 32 40 115 116 117; do
		forged cut $bytes $AT_ONCE
	done
	forged version 0 $AT_ONCE
	forged version $((VERSION - 1)) $AT_ONCE
	forged version $((VERSION + 1)) $AT_ONCE
	forged version 255 $AT_ONCE
	forged cookie 0 $AT_ONCE
	forged cookie 63 $AT_ONCE
	forged listener 1 $AT_ONCE
	forged port 1 15000 # in the first seconds there may be no listener yet
}

faults_init
mesh_up triangle

play a listener <<END
listen 1 $FAULTS/closed.first
close-listen 1
listen 0 $FAULTS/right
touch $FAULTS/closed
await $FAULTS/done
accept 0 0
room 0 1M
transfer 0 64K 20 1
transfer 0 64K 20 2
drop 0
close-listen 0
END
play b survivor <<END
await $FAULTS/closed
$(refusals)
! within $(ms $AT_ONCE) connect 1 $FAULTS/closed.first
close 1
touch $FAULTS/done
connect 0 $FAULTS/right
room 0 1M
transfer 0 64K 20 1
! within $(ms $AT_ONCE) connect 1 $FAULTS/closed.first
forge $FAULTS/right $FAULTS/wrong cookie 5
! within $(ms $AT_ONCE) connect 1 $FAULTS/wrong
transfer 0 64K 20 2
drop 0
END
ended survivor
ended listener
said survivor WARN "handle that is not this plugin's"
said survivor WARN "handle of another version of this plugin from node a: it has protocol 255,"
said survivor WARN "from node a: it has protocol $((VERSION - 1)), .* here has protocol $VERSION\."
said survivor WARN "from a node whose version has no name in it: it has protocol 0,"
said survivor WARN "10\.77\.1\.1.*no such listener|no such listener.*10\.77\.1\.1"
unsaid survivor ABORT .
note "$(grep -c '^! within' "$FAULTS/survivor.script") wrong handles, refused in words and in time"
