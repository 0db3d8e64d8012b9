/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinator.h - rank 0's plan of the whole run: who is there, which pair's turn it is, what came
 * out. It is called by the hub and speaks through it. Used by one thread.
 */
#ifndef PINGPONG_COORDINATOR_H
#define PINGPONG_COORDINATOR_H

#include <jansson.h>

#include "hub.h"
#include "options.h"

enum coordinator_state {
	COORDINATOR_GATHER, /* ranks are missing */
	COORDINATOR_LOAD,   /* all are there; plugins are being loaded */
	COORDINATOR_RUN,    /* pairs run */
	COORDINATOR_FINISH, /* plugins are being unloaded */
	COORDINATOR_ENDED,  /* EXIT or ABORT was sent; the report is final */
};

struct coordinator {
	const struct options *options;
	struct hub *hub;
	enum coordinator_state state;
	uint64_t gather_deadline_ns;
	uint64_t abort_ns;		/* a rank failed: when to end all; 0: none did */
	char *failure;			/* what the first one said */
	char *hosts[OPTIONS_RANKS_MAX]; /* NULL: not there yet */
	int num_reported;		/* ranks that said LOADED or BYE in this state */
	struct pair_name *pairs;
	uint8_t *sides;	   /* results that came for each pair, 0 to 2 */
	uint8_t *finished; /* of these, the ones of a side that did all that was to be done */
	size_t num_pairs;
	size_t next_pair; /* the first that was not started */
	size_t num_done;
	json_t *report;
};

/** Starts to wait for the ranks. @options and @hub must outlive it. */
void coordinator_open(struct coordinator *coordinator, const struct options *options,
		      struct hub *hub);

void coordinator_close(struct coordinator *coordinator);

/** What the hub calls. */
struct hub_events coordinator_events(struct coordinator *coordinator);

/** Looks at the deadlines. */
void coordinator_tick(struct coordinator *coordinator);

/** Ends the run on all ranks because of @why, unless it has ended. */
void coordinator_abort(struct coordinator *coordinator, const char *why);

#endif
