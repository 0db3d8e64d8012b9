#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cut_others.sh - a connection that is closed while the peer's process is stopped is cut off,
# and with it what lies in the provider's socket: messages of other connections that count as sent.
# For these the link is lost: they wait for the process, and go on when it does, with every message.
# seconds: 10
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# Short enough messages are copied by the provider, and are done at once; more than these would
# need another grant.
MESSAGES=15

sequence() { seq "$1" "$MESSAGES"; }

faults_init
mesh_up triangle
play b victim <<-END
	$(meet listen 64M)
	await $FAULTS/handle.second
	accept 1 0
	room 1 4M
	post 0 0 0 64M
	$(for i in $(sequence 1); do echo "post $i 1 ${i}K 64"; done)
	touch $FAULTS/ready
	stop
	$(for i in $(sequence 1); do echo "test $i"; done)
	transfer 1 1M 20 5
	! test 0
	drop 0
	drop 1
END
play a survivor <<-END
	$(meet connect 64M)
	touch $FAULTS/handle.second
	connect 1 $FAULTS/handle
	room 1 4M
	await $FAULTS/stopped
	post 0 0 0 64M
	pending 0 500
	$(for i in $(sequence 1); do echo "post $i 1 ${i}K 64"; echo "test $i"; done)
	dereg 0
	touch $FAULTS/cut
	close 0
	transfer 1 1M 20 5
	drop 1
END
arrives ready
stands victim
touch "$FAULTS/stopped"
arrives cut
signal victim CONT
ended victim
ended survivor
said survivor WARN "lost node b .*: a connection with it that ends is cut off here"
said victim WARN "lost node a \(10\.77\.1\.1\), reached from ba .*: it gave this link up"
