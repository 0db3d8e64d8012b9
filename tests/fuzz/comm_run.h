/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_run.h - one run of fuzz_comm.c: what its input names, and what is checked of whatever the
 * comms do.
 */
#ifndef MESH_TESTS_COMM_RUN_H
#define MESH_TESTS_COMM_RUN_H

#include "base/log.h"
#include "control/peer.h"
#include "transport/comm.h"

#include "check.h"
#include "comm_stage.h"
#include "machine.h"

#define COMMS 2
#define LIVES 8	   /* peers of links that have come back */
#define SLOTS 64   /* one for each request */
#define GRANTS 128 /* the last ones */
#define OLD_IDS 16
#define STRIDE (FIXTURE_MEMORY / SLOTS)
/* Only small messages are copied: what is farther from a receive is not looked at. */
#define GUARD ((size_t)64)
#define NEAR ((size_t)4096 + 2 * GUARD)
#define FILL 0xee
#define OWN_ID 0x77

/* A request of a comm, and its memory. */
struct slot {
	struct mesh_request *request; /* NULL: free, or the comm has failed */
	int comm;
	uint32_t seq;
	size_t size;
	bool used; /* its memory was filled */
	bool over; /* its bytes change no more */
	uint8_t after[NEAR];
};

struct granted {
	int comm;
	uint32_t seq;
	uint64_t size, address, key;
};

/* All of it belongs to the input that runs. */
struct comm_run {
	bool sending;
	struct mesh_comm *comms[COMMS]; /* NULL: closed */
	const void *opened[COMMS];	/* the same, closed or not */
	struct mesh_peer lives[LIVES];
	int num_lives;
	int reads[FIXTURE_PATHS + LIVES]; /* the peers' ends of the control connections */
	uint32_t old_ids[16];		  /* ids that paths had, the last ones */
	int num_old_ids;
	struct slot slots[SLOTS];
	struct granted grants[GRANTS];
	uint64_t num_grants;
	int seen_sends, seen_writes;
	bool fails; /* while a comm closes: its operations do */
};
extern struct comm_run run;

/* ---- the input ----------------------------------------------------------------------------- */

/** A comm that lives, and its index; NULL: there is none. */
struct mesh_comm *take_comm(int *index);
struct mesh_path *take_path(struct mesh_comm *comm);
struct mesh_peer *take_peer(void);
/** Often the id of a path, or one that it had in an earlier life. */
uint32_t take_id(void);
/** Most are near those of the requests that are posted. */
uint32_t take_seq(const struct mesh_comm *comm);

/* ---- what the comms do --------------------------------------------------------------------- */

/** The memory of a request. */
char *slot_data(const struct slot *slot);
/** Outside of @size bytes from there on, near it, nothing was written. */
void slot_bounds_check(const struct slot *slot, size_t size);
/** The same of all that are posted, and nothing has changed in those that are done. */
void slots_check(void);

/** Checks what was posted since the last call, and that no lock is held. */
void learn(void);

/* ---- the machine --------------------------------------------------------------------------- */

/** Begins a run: nothing has been written, and the clock begins anew. */
void run_begin(const uint8_t *data, size_t size);

/** All operations in flight end. */
void all_end(bool fails);
/** Forgets what has ended and was read: the fake has room for so many only. */
void forget(void);
/** What failed was connected: the provider, or the plugin's connector, makes it anew. */
void connect_again(void);

/** Each log line. */
void lines_read(enum mesh_log_level level, const char *file, int line, const char *text);
/** Each call of the provider. */
void polled(enum fake_call call);

/** Time passes fast until closing has ended, as it must; @fails: what is in flight fails. */
void closing_begin(bool fails);
void closing_end(void);

/* ---- comm_peer.c: steps of the peer --------------------------------------------------------- */

void step_frame(void);
void step_message(void);
void step_immediate(void);

#endif
