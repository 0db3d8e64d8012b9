#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_no_common_subnet.sh - two nodes without a cable between them: an error at once, in words.
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# A wait for a peer takes this many seconds; a refusal, at most AT_ONCE ms.
FAULTS_ENV[0]=NCCL_MESH_CONNECT_TIMEOUT=30
AT_ONCE=8000
# accept() says after 10 s that it waits, here for a rank that no cable leads to.
FAULTS_ENV[1]=NCCL_MESH_ACCEPT_TIMEOUT=12

faults_init
mesh_up line 3
# An unplugged cable from c to a.
mesh_link a ac 10.77.9.1/24 c ca 10.77.9.2/24
mesh_carrier c ca down

play a far <<END
listen 0 $FAULTS/far
limit 120000
! accept 0 0
await $FAULTS/done
close-listen 0
END
play b near <<END
accepts 0 $FAULTS/near 1M
transfer 0 64K 20 1
drop 0
close-listen 0
END
play c survivor <<END
await $FAULTS/far
await $FAULTS/near
! within $(ms $AT_ONCE) connect 0 $FAULTS/far
close 0
! within $(ms $AT_ONCE) connect 0 $FAULTS/far
connect 1 $FAULTS/near
room 1 1M
transfer 1 64K 20 1
drop 1
END
ended survivor
touch "$FAULTS/done"
ended near
ended far
# Both sides' addresses, so that the reader sees which cable is missing.
said survivor WARN "node c cannot connect to node a \\(id [0-9a-f]{16}\\): no common subnet"
said survivor WARN "no common subnet.*10\.77\.2\.2/24.*10\.77\.1\.1/24"
said survivor WARN "no common subnet.*Skipped here: ca \(10\.77\.9\.2/24\): no carrier"
said far WARN "node a has waited 1[0-9] s .*10\.77\.1\.1/24.*NCCL_MESH_ACCEPT_TIMEOUT"
said far WARN "no rank connected within 12 s"
note "no common subnet: said at once, with both sides' addresses; the neighbour still works"
