/* SPDX-License-Identifier: Apache-2.0 */
/*
 * receiver_model.h - a model of the receiver of a sending comm with two paths, and of what is on
 * the way between the two: test_recovery_model.c. The first path is always up; the second one is
 * lost and joins again. A test that uses it has ldflags as with fake_fabric.h.
 */
#ifndef MESH_TESTS_RECEIVER_MODEL_H
#define MESH_TESTS_RECEIVER_MODEL_H

#include "comm_fixture.h"

#define RECEIVER_MESSAGES 40
#define RECEIVER_OUTSTANDING 8
#define RECEIVER_LIVES 12
#define RECEIVER_QUESTIONS 16
#define RECEIVER_PROCESS_ID 0x1234

struct receiver_message {
	struct mesh_request *request; /* NULL: not posted, or done */
	size_t size;
	uint64_t arrived; /* bits: segments that the receiver has */
	int in_flight;	  /* writes of it that have not ended */
	bool in_socket;	  /* a small one: in the second path's socket */
};

struct receiver_write {
	int seq, segment, life; /* life 0: over the first path */
	bool ended, decided, arrives;
};

/* All of it belongs to the seed that runs. */
struct receiver_model {
	uint64_t random;
	struct mesh_comm *comm;
	struct receiver_message messages[RECEIVER_MESSAGES];
	int posted, granted; /* messages */
	struct receiver_write writes[FAKE_POSTS_MAX];
	int num_writes;
	int seen_sends;
	struct mesh_peer lives[RECEIVER_LIVES + 1];
	int frames[RECEIVER_LIVES + 1]; /* the peer's end of each life's control connection */
	int life;			/* of the second path: 1 is the first */
	bool up;
	uint32_t join; /* the id in the JOIN that waits for its answer; 0: none */
	struct mesh_frame_resume questions[RECEIVER_QUESTIONS]; /* that the receiver has not read */
	struct mesh_frame_have answers[RECEIVER_QUESTIONS];	/* that the sender has not read */
	int num_questions, num_answers;
	bool closing, closed;  /* it has sent CLOSE, CLOSED */
	uint32_t closed_count; /* in CLOSED: the messages that it has */
	bool sender_closed;    /* the sender's CLOSED is here */
	bool closed_in_doubt;  /* then a question was open */
	uint64_t looks;
	int resumes, joins;
};
extern struct receiver_model receiver;

/** Starts the seed's run: a comm over two paths. */
void receiver_begin(void **state, int seed);
/** Ends it. */
void receiver_clean(void **state);

/** A number below @sides; the same for the same seed. */
uint32_t receiver_roll(uint32_t sides);

/**
 * Looks at what the sender has posted, and at its requests: fails the test if a segment is written
 * again that has arrived, over a path of an earlier life, or if a request is done before the
 * receiver has its message, or fails although it has.
 */
void receiver_learn(void);
/** The engine's turn: the sender asks, and the receiver has its questions. */
void receiver_recover(void);

/** NCCL posts a send; a receive. */
void receiver_step_post(void);
void receiver_step_grant(void);
/** A write that is in flight ends: one on a lost path fails, or completes late. */
void receiver_step_end(bool faults);
/** The second path is lost. */
void receiver_step_lose(void);
/** The receiver fences and answers a question; the sender reads an answer. @faults: they repeat. */
void receiver_step_question(bool faults);
void receiver_step_answer(bool faults);
/** The sender asks for its second path; the receiver answers. */
void receiver_step_join(void);
void receiver_step_join_answer(void);
/** Everything in the second path's socket is read. */
void receiver_socket_read(void);
/** NCCL closes the receiver: CLOSE first, then CLOSED. Without effect once both were sent. */
void receiver_step_close(void);

/** True if all requests have ended and, while the receiver is open, all messages have arrived. */
bool receiver_is_over(void);

#endif
