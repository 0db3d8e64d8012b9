/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_ends.h - the two ends of circuits through a chain of relays (relay_chain.h), as a model
 * that checks what comes: everything arrives where it belongs, in order, and once; a segment counts
 * as sent only when it is in the receiver's memory; nothing is written there after "drained".
 */
#ifndef MESH_TESTS_RELAY_ENDS_H
#define MESH_TESTS_RELAY_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/mr.h"
#include "relay/hop.h"
#include "wire/message.h"

#include "relay_chain.h"

#define CIRCUITS 6
#define SEGMENTS 40 /* of each circuit, each a message of its own */
#define DATA 100    /* small messages of each */
#define SEGMENT_MAX ((size_t)40 << 10)
#define MEMORY_KEY(i) (0x5000u + (uint64_t)(i))

enum phase {
	NOT_ASKED,
	ASKED,
	OPEN,
	ENDED, /* refused, shut, withdrawn or lost: the connector does nothing more */
};

struct segment {
	bool started, finished, placed, arrived;
	/* Of one that is cut in two: the first piece is posted, has been placed, has arrived. */
	bool cut, half_placed, half_arrived;
};

struct circuit {
	int number, from, to; /* nodes */
	bool idle, liar;
	/* The connecting end. */
	enum phase phase;
	uint32_t relay_id, relay_token;
	struct mesh_hop hop;
	bool has_hop, lost, shut;
	struct segment segments[SEGMENTS];
	int in_flight, started;
	uint32_t data_sent, grants_seen;
	/* The listening end. */
	bool asked, accepted, ended, drained;
	bool told;		      /* LOST came from there, or to there */
	uint32_t last_id, last_token; /* the last relay's */
	uint32_t data_seen, granted;
};

/* All of it belongs to the seed that runs. */
struct ends {
	struct circuit circuits[CIRCUITS];
	bool losses, lies;
	bool cuts; /* some segments are cut; ends_open() leaves it */
	int finished, drained, refused, broken;
	int grown; /* how often the memory of a circuit did, in the first relay */
	uint8_t target[CIRCUITS][SEGMENTS][SEGMENT_MAX]; /* the receivers' memory */
};

extern struct ends ends;

/** Begins a run on a chain that is open; the chain calls this file from then on. */
void ends_open(void);

/** After a run: every segment is finished, and nothing of a hop is in use. */
void ends_close(void);

/** Setup and teardown of a group: the memory that all segments of the program are written from. */
void ends_source_open(void);
void ends_source_close(void);

struct chain_end *connector_end(const struct circuit *circuit);
struct chain_end *listener_end(const struct circuit *circuit);

/** What a connecting end does. */
void open_send(struct circuit *circuit);
void data_send(struct circuit *circuit);
void segment_write(struct circuit *circuit);
/** Its NCCL frees the comm: it sends SHUT or WITHDRAWN, unless it has no circuit. */
void circuit_end(struct circuit *circuit, enum mesh_circuit_event event);
/** The circuit is lost: what is not complete fails. */
void circuit_abandon(struct circuit *circuit);

/** What a listening end does. */
void connect_answer(struct circuit *circuit);
void grant_send(struct circuit *circuit);
void lost_send(struct circuit *circuit);

#endif
