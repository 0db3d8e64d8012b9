/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - one rank's side of an ordered pair: comms in both directions, set up, taken through
 * the phases and torn down. Both sides are the same, but one leads.
 */
#ifndef PINGPONG_SESSION_H
#define PINGPONG_SESSION_H

#include "activity.h"
#include "comm.h"
#include "frame.h"
#include "leader.h"
#include "plugin.h"

enum session_state {
	SESSION_LISTEN,	 /* the peer's handles have not come */
	SESSION_CONNECT, /* connect and accept are polled */
	SESSION_DATA,	 /* phases run */
	SESSION_OVER,	 /* nothing more to do but teardown */
};

enum session_step {
	SESSION_IDLE,	   /* leader: starts the next phase; follower: waits for one */
	SESSION_RUN,	   /* this side has messages to move */
	SESSION_WAIT_DONE, /* leader: the follower has not said that it is through */
};

struct session {
	uint32_t pair; /* index */
	unsigned int from, to, self, peer;
	bool leads;	/* self is from */
	char name[160]; /* "pair 0 (alpha) -> 1 (beta)" */
	const struct options *options;
	const struct plugin *plugin;
	struct activity *activity;
	struct mailbox *outbox;

	struct comm *sends, *receives; /* one of each per channel */
	enum session_state state;
	bool finished; /* everything that was to be done was done */
	bool failed;
	bool peer_failed;
	unsigned long warnings_before; /* that the plugin had logged */
	char error[COMM_ERROR_MAX];    /* "" if nothing went wrong on this side */

	/* Progress thread only. */
	enum session_step step;
	struct phase phase;
	bool ready_sent, peer_ready, peer_done;
	uint64_t start_ns, end_ns;
	struct leader leader;

	/* Set by the progress thread, read by the service thread: registration may be tried. */
	atomic_bool checking;
	char scratch_error[COMM_ERROR_MAX]; /* the service thread's */
	struct nic_counters counters;
};

/**
 * Makes the comms, listens and sends the handles to the peer. On an error the session is failed
 * and must be torn down and closed like any other.
 */
void session_open(struct session *session);

/** Moves a session that is not in the data state. Returns true if something got done. */
bool session_setup_pass(struct session *session);

/** Moves a session in the data state. Returns true if something got done. */
bool session_data_pass(struct session *session);

/** True while a session in the data state has nothing to do until the peer speaks. */
bool session_is_waiting(const struct session *session);

/** Takes a frame from the peer. */
void session_frame(struct session *session, const struct frame *frame);

/** Gives up; session->error says why. Informs the peer. */
void session_fail(struct session *session);

/** Deregisters and closes all, as NCCL does after an operation or an abort. */
void session_teardown(struct session *session);

/** This side's result as JSON text, to be released with free(). */
char *session_result(struct session *session);

/** Frees what is left. */
void session_close(struct session *session);

/** Says in words, for a hang, how far the session has come. */
void session_describe(const struct session *session, char *text, size_t size);

#endif
