/* SPDX-License-Identifier: Apache-2.0 */
/* rest.c - when the thread that relays polls, pauses and sleeps. */
#include "relay/rest.h"

/* The thread polls for so long after a small message, and where no descriptor would wake it. */
#define POLL_NS 200000ull
/* And for so long, which is about the time of a wake-up, after a segment. */
#define SEGMENT_POLL_NS 10000ull
/* A pause is this part of the time since then, within these bounds. */
#define PAUSE_PART 16
#define PAUSE_MIN_NS 20000ull
#define PAUSE_MAX_NS 1000000ull
/* The credit grows by this part of the time, up to that. */
#define CREDIT_PART 2
#define CREDIT_MAX_NS 2000000ull

void mesh_rest_init(struct mesh_rest *rest, uint64_t now_ns)
{
	*rest = (struct mesh_rest){.moved_ns = now_ns,
				   .until_ns = now_ns,
				   .turn_ns = now_ns,
				   .credit_ns = CREDIT_MAX_NS};
}

static void credit_settle(struct mesh_rest *rest, uint64_t now_ns, bool moved)
{
	uint64_t elapsed_ns = now_ns - rest->turn_ns;
	uint64_t spent_ns = rest->polls && !moved ? elapsed_ns : 0;

	rest->credit_ns += elapsed_ns / CREDIT_PART;
	if (rest->credit_ns > CREDIT_MAX_NS)
		rest->credit_ns = CREDIT_MAX_NS;
	rest->credit_ns -= spent_ns < rest->credit_ns ? spent_ns : rest->credit_ns;
}

static void moved_note(struct mesh_rest *rest, uint64_t now_ns, enum mesh_rest_moved moved)
{
	uint64_t until_ns = now_ns + (moved == MESH_REST_MESSAGE ? POLL_NS : SEGMENT_POLL_NS);

	rest->moved_ns = now_ns;
	rest->vain = false;
	if (until_ns > rest->until_ns)
		rest->until_ns = until_ns;
}

bool mesh_rest_polls(struct mesh_rest *rest, uint64_t now_ns, enum mesh_rest_moved moved,
		     bool bounded)
{
	credit_settle(rest, now_ns, moved != MESH_REST_NOTHING);
	rest->turn_ns = now_ns;
	if (moved != MESH_REST_NOTHING)
		moved_note(rest, now_ns, moved);
	if (bounded)
		rest->polls = now_ns < rest->until_ns && rest->credit_ns;
	else
		rest->polls = now_ns - rest->moved_ns < POLL_NS;
	return rest->polls;
}

uint64_t mesh_rest_pause_ns(const struct mesh_rest *rest, uint64_t now_ns)
{
	uint64_t pause_ns = (now_ns - rest->moved_ns) / PAUSE_PART;

	if (pause_ns < PAUSE_MIN_NS)
		return PAUSE_MIN_NS;
	return pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
}
