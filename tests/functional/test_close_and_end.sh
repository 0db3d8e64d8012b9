#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_close_and_end.sh - what was sent on a comm that was closed arrives, even if the sender's
# process ends right afterwards without closing its other comms, as os._exit() does; also if the
# receiver's process reads it, or its NCCL calls accept(), only then.
# seconds: 25
. "$(dirname "${BASH_SOURCE[0]}")/faults.sh"

# arrives_after SIZE COUNT: the kernel of the sender still holds most of it when the sender's last
# request is done.
arrives_after() {
	local size=$1 count=$2

	rm -f "$FAULTS"/handle*
	play a receiver <<-END
		listen 1 $FAULTS/handle.open
		$(meet listen 16M)
		accept 1 1
		transfer 0 $size $count 3
		close 0
		close 1
	END
	play b sender <<-END
		$(meet connect 16M)
		connects 1 $FAULTS/handle.open
		transfer 0 $size $count 3
		close 0
		die
	END
	ended receiver
	ended sender 137
	note "$count messages of $size"
}

# The receiver's process has not read what its kernel has, when the sender's ends: with a frame of
# the receiver's unread, so that the control connection is reset.
unread_at_the_end() {
	rm -f "$FAULTS"/{handle,stopped,closed,over}*
	play a receiver <<-END
		listen 1 $FAULTS/handle.open
		$(meet listen 64K)
		accept 1 1
		stop
		await $FAULTS/over
		transfer 0 8000 8 3
		close 0
		close 1
	END
	play b sender <<-END
		$(meet connect 64K)
		connects 1 $FAULTS/handle.open
		await $FAULTS/stopped
		transfer 0 8000 8 3
		close 0
		touch $FAULTS/closed
		stop
	END
	stands receiver
	touch "$FAULTS/stopped"
	arrives closed
	stands sender
	signal receiver CONT
	signal sender KILL
	ended sender 137
	wait_for "grep -Eq 'on ab ended: |lost node b' $FAULTS/receiver.log" 60 ||
		faults_show "the receiver does not notice the sender's end"
	touch "$FAULTS/over"
	ended receiver
	note "8 messages, unread when the sender's process ended:" \
		"$(grep -hoE 'its (control connection|process).*' "$FAULTS/receiver.log" | head -1)"
}

# accepted_at_the_end COUNT: the sender's process has ended when accept() is called.
accepted_at_the_end() {
	rm -f "$FAULTS"/{handle,over}*
	play a receiver <<-END
		listen 0 $FAULTS/handle
		accepts 1 $FAULTS/handle.open
		await $FAULTS/over
		accept 0 0
		room 0 64K poison
		transfer 0 8000 $1 3
		post 0 0 0 64K
		! test 0
		drop 0
		close 1
	END
	play b sender <<-END
		connects 0 $FAULTS/handle 64K
		connects 1 $FAULTS/handle.open
		transfer 0 8000 $1 3
		drop 0
		die
	END
	ended sender 137
	wait_for "grep -Eq 'on ab ended: |lost node b' $FAULTS/receiver.log" 60 ||
		faults_show "the receiver does not notice the sender's end"
	touch "$FAULTS/over"
	ended receiver
	unsaid receiver WARN "did not finish|no rank connected"
	note "$1 messages, not accepted when the sender's process ended"
}

faults_init
mesh_up triangle
for _ in 1 2; do unread_at_the_end; done
accepted_at_the_end 0
accepted_at_the_end 8
# Slower than the half second for which a receiver reads on when it learns of the sender's end.
mesh_shape b ba 10mbit
arrives_after 4M 1
arrives_after 2000 64
arrives_after 0 8
