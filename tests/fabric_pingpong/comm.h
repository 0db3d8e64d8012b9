/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - one NCCL connection with its staging buffer, driven as NCCL's proxy drives one.
 *
 * A comm is set up and torn down by the service thread, and moved by the progress thread in
 * between; never by both at once, except for comm_register_scratch().
 */
#ifndef PINGPONG_COMM_H
#define PINGPONG_COMM_H

#include "adapter.h"
#include "options.h"
#include "pattern.h"
#include "phase.h"
#include "plugin.h"

#define COMM_ERROR_MAX 1400

struct comm_region {
	uint8_t *base;
	size_t bytes;
	void *registration;
	bool registered;
};

struct comm {
	const struct adapter *adapter;
	bool sender;
	unsigned int from, to; /* ranks, in the direction of the bytes */
	bool reply;	       /* against the pair's direction */
	uint32_t channel;
	int dev;
	uint32_t stream; /* of the test pattern */

	void *listen_comm;
	bool listening;
	/* NCCL keeps one buffer for all connect calls; the plugin may write to it. */
	uint8_t handle[NCCL_HANDLE_SIZE] __attribute__((aligned(16)));
	void *plugin_comm; /* sendComm or recvComm */
	bool connected;
	struct plugin_words words; /* what the plugin logged during connect or accept */

	uint8_t *memory; /* one allocation; the regions are parts of it */
	size_t memory_bytes;
	struct comm_region regions[PHASE_PROTOCOLS];

	struct plan plan;
	uint64_t first_sequence; /* number of this phase's first message in the comm */
	uint64_t filled;	 /* sender: slots that hold a message, in this phase */
	uint64_t posted;	 /* isend or irecv gave a request */
	uint64_t done;		 /* completed, and on the receiver verified */
	uint64_t attempts;	 /* calls of isend or irecv */
	uint64_t landing_ns;	 /* an optional completion came before its bytes: since when */
	uint64_t *stamps;	 /* where to note when each message was done; NULL: nowhere */
	void *requests[OPTIONS_INFLIGHT_MAX];
	void *stale; /* what *request holds before the next call */
	char *error; /* where to say what went wrong, COMM_ERROR_MAX bytes; the session's */
};

/** Prepares a comm of @adapter. Gets its buffer. Returns 0 or -ENOMEM. */
int comm_open(struct comm *comm, const struct options *options);

/* Set-up, on the service thread. All return 0, or a negative errno with comm->error filled in. */

/** Starts to listen; the handle for the peer is in comm->handle. */
int comm_listen(struct comm *comm);

/** Calls connect or accept once. comm->connected says whether it is done. */
int comm_poll_setup(struct comm *comm);

/**
 * Registers and deregisters other memory, as NCCL does for user buffers while data flows.
 *
 * @error: COMM_ERROR_MAX bytes; comm->error may be in use by the progress thread
 */
int comm_register_scratch(const struct comm *comm, void *memory, size_t bytes, char *error);

/**
 * Deregisters, frees the buffer and closes, in NCCL's order. An open listen comm stays, as it does
 * in NCCL after an abort.
 *
 * Returns 0, or -EIO with comm->error filled in.
 */
int comm_close(struct comm *comm);

/* Data, on the progress thread. */

/** Starts a phase. Returns 0, or -EPROTO if it does not fit. */
int comm_begin(struct comm *comm, const struct plan *plan);

/** True when all messages of the phase are done. */
bool comm_finished(const struct comm *comm);

/** Counts the phase's messages and gets ready for the next one. */
void comm_end(struct comm *comm);

/**
 * Does one of: fill a slot, isend, test the oldest.
 *
 * @allowed: so many messages of the phase may be sent so far
 *
 * Returns 1 if something got done, 0 if not, negative on an error (comm->error).
 */
int comm_send_pass(struct comm *comm, uint64_t allowed);

/** Posts one receive if a slot is free. Returns as comm_send_pass(). */
int comm_post_pass(struct comm *comm);

/** Tests the oldest receive and verifies its bytes. Returns as comm_send_pass(). */
int comm_test_pass(struct comm *comm);

/** The comm in words, for messages. */
void comm_describe(const struct comm *comm, char *text, size_t size);

#endif
