/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sender_model.h - a model of the sender of a receiving comm, and of what is on the way between the
 * two: test_receive_model.c. A test that uses it has ldflags as with fake_fabric.h, with
 * --wrap=mesh_remotes_fence and --wrap=mesh_fence_drain.
 */
#ifndef MESH_TESTS_SENDER_MODEL_H
#define MESH_TESTS_SENDER_MODEL_H

#include "comm_fixture.h"
#include "wire/immediate.h"

#define MESSAGES 120 /* more than an immediate can count: 64 */
#define AREAS 16     /* so a receive's memory is soon another one's */
#define AREA ((size_t)8192)
#define GUARD ((size_t)64)
#define FILL 0xee
#define LARGE_MAX ((size_t)4096)
#define SEGMENTS 5
#define LINKS FIXTURE_PATHS
#define LIVES 24 /* peers, of all links together */
#define ITEMS 512
#define FRAMES 64

enum segment_state {
	UNSENT,
	FLYING, /* the sender does not know whether it has arrived */
	ACKED,
	DOUBT, /* its path was lost meanwhile */
};

struct segment {
	enum segment_state state;
	int link;
	bool arrived; /* the last write of it */
	bool landed;  /* its bytes are in the receive */
};

/* As the sender knows it, except for what has landed. */
struct message {
	size_t size, room; /* of the message, and of its receive */
	bool sent;	   /* a small one was sent once; a large one is cut */
	int num;
	size_t bytes; /* of each segment but the last */
	struct segment segments[SEGMENTS];
	bool asked, settled, announce_again;
	bool granted;
	int grant_paths;
	struct mesh_grant grant;
	struct mesh_request *request; /* the receive, while it is not complete */
	bool done;
};

enum item_kind {
	ITEM_WRITE, /* with an immediate */
	ITEM_PLAIN, /* without one: WRITTEN follows */
	ITEM_MESSAGE,
	ITEM_REPORT, /* from the receiver: GRANT or POSTED */
};

/* What is on the way over a link, in its order. */
struct item {
	enum item_kind kind;
	uint32_t id, token; /* the receiver's, when it was sent */
	uint32_t seq;
	int segment;
	uint64_t address, key;
	struct mesh_immediate immediate;
	struct mesh_message_header header;
	uint8_t payload[1024];
};

/* One link, as the sender knows it. */
struct link {
	bool up;
	uint32_t id, token;	/* the receiver's */
	bool unaware;		/* the receiver has lost it, and the sender not yet */
	bool refuses;		/* the sender has lost it, and its REFUSE is on the way */
	struct mesh_peer *peer; /* the receiver's, of the present life */
	int read_end;		/* of its control connection */
	bool greeted;		/* a new peer is up, and JOIN may follow */
	struct item items[ITEMS];
	int first, num;
};

struct frame_on_way {
	int link;
	struct mesh_frame frame;
};

/* An immediate that comes late: of a path that was fenced, or once more after its message. */
struct late {
	int link;
	uint32_t seq;
	struct mesh_immediate immediate;
};

/* All of it belongs to the seed that runs. */
struct sender_model {
	uint64_t random;
	struct mesh_comm *comm;
	int immediate_bits, num_links;
	struct message messages[MESSAGES];
	int received, sent; /* receives posted; messages that the sender has */
	struct link links[LINKS];
	struct mesh_peer lives[LIVES];
	int life_ends[LIVES], num_lives;
	struct {
		int link;
		uint32_t id;
	} ids[LINKS + LIVES]; /* that paths have had */
	int num_ids;
	uint32_t posted, round, eager_run; /* as the sender knows them */
	int grant_paths;
	bool resending;
	struct frame_on_way questions[FRAMES], answers[FRAMES];
	int num_questions, num_answers;
	struct late late[FRAMES];
	int num_late;
	int seen_sends;
};
extern struct sender_model model;

/* Of all seeds: the steps do what they are for. */
struct sender_model_counts {
	int completed, rewritten, fenced, answers, old_answers, joined, late_joined, late, twice;
};
extern struct sender_model_counts counts;

/** A number below @sides; the same for the same seed. */
uint32_t roll(uint32_t sides);

static inline bool is_small(const struct message *message)
{
	return message->size <= FIXTURE_EAGER_LIMIT;
}

/** The byte of message @seq at @at. */
static inline uint8_t byte_of(int seq, size_t at)
{
	return (uint8_t)((unsigned int)seq * 151 + at * 7 + (at >> 8));
}

/** The memory of receive @seq, with GUARD bytes before and behind it. */
static inline char *area_of(int seq)
{
	return fixture_memory + (size_t)(seq % AREAS) * AREA + GUARD;
}

/* ---- sender_model_wire.c: what is on the way ------------------------------------------------ */

/** The place for something more that leaves over the link; its id and token are written. */
struct item *item_add(int link);
/** The oldest on one of the links arrives. */
void step_arrive(void);
/** An immediate comes late. */
void step_late(void);

/** What the receiver has posted is on its way. */
void reports_learn(void);

/** A frame comes over the control connection of @peer. */
void frame_arrives(struct mesh_peer *peer, enum mesh_frame_type type, struct mesh_frame *frame);

/**
 * Reads what the receiver has sent over the link's control connection, and keeps each HAVE for the
 * sender; fails the test if one is not true.
 *
 * @resume: what was asked, or NULL
 *
 * Returns the last ACCEPT or REFUSE of a path, or zeros.
 */
struct mesh_frame frames_read(int link, const struct mesh_frame_resume *resume);

/* ---- sender_model.c: what the sender does --------------------------------------------------- */

/** A link that is up, of the first @below; -1: none is. */
int link_choose(int below);

/** Posts some of its messages, those after a loss first. */
void step_push(void);
/** Some of its writes complete. */
void step_acknowledge(void);

/** The sender stops a path. */
void sender_loses(int link);
/** Asks about messages that are in doubt. */
void step_ask(void);
/** A RESUME reaches the receiver, or a HAVE the sender; with @faults, it may come once more. */
void step_question(bool faults);
void step_answer(bool faults);

#endif
