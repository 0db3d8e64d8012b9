/* SPDX-License-Identifier: Apache-2.0 */
/* deputy.c - answers for the node while its speaker does not run. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "neighbours/deputy.h"

static void kept_free(struct mesh_deputy *deputy)
{
	free(deputy->kept);
	deputy->kept = NULL;
	deputy->num_kept = 0;
}

/* The speaker has been silent for too long. */
MESH_HOLDS(process)
static void silence_is_over(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_deputy *deputy = mesh_container_of(timer, struct mesh_deputy, timer);
	int i;

	(void)now_ms;
	if (!deputy->times++)
		mesh_info("the process that answers the neighbours for this node does not run; "
			  "this one answers in its place");
	deputy->speaks = true;
	/* Also what goes to an address of this node, as answers to what we pass on do. */
	mesh_answering_open(deputy->answering, MESH_ANSWERING_ALL);
	for (i = 0; i < deputy->num_kept; i++)
		mesh_answering_take(deputy->answering, &deputy->kept[i]);
	kept_free(deputy);
}

void mesh_deputy_init(struct mesh_deputy *deputy, struct mesh_members *members,
		      struct mesh_answering *answering)
{
	memset(deputy, 0, sizeof(*deputy));
	deputy->members = members;
	deputy->answering = answering;
	deputy->timer.expired = silence_is_over;
}

void mesh_deputy_begin(struct mesh_deputy *deputy)
{
	deputy->on = true;
	if (!deputy->speaks)
		mesh_answering_open(deputy->answering, MESH_ANSWERING_GROUP);
}

void mesh_deputy_end(struct mesh_deputy *deputy)
{
	mesh_engine_timer_cancel(deputy->members->engine, &deputy->timer);
	kept_free(deputy);
	deputy->on = deputy->pinged = deputy->speaks = false;
}

bool mesh_deputy_keep(struct mesh_deputy *deputy, const struct mesh_datagram *question)
{
	if (!deputy->on || deputy->speaks)
		return false;
	if (!deputy->pinged) {
		/* Without a speaker another process, or this one, is about to become it. */
		mesh_members_ping(deputy->members);
		deputy->pinged = true;
		mesh_engine_timer_set(deputy->members->engine, &deputy->timer,
				      mesh_clock_ms() + MESH_DEPUTY_WAIT_MS);
	}
	if (!deputy->kept)
		deputy->kept = calloc(MESH_DEPUTY_KEPT_MAX, sizeof(*deputy->kept));
	if (deputy->kept && deputy->num_kept < MESH_DEPUTY_KEPT_MAX)
		deputy->kept[deputy->num_kept++] = *question;
	return true;
}

void mesh_deputy_speaker_lives(struct mesh_deputy *deputy)
{
	if (!deputy->on)
		return;
	mesh_engine_timer_cancel(deputy->members->engine, &deputy->timer);
	kept_free(deputy);
	deputy->pinged = false;
	if (deputy->speaks) {
		deputy->speaks = false;
		mesh_answering_open(deputy->answering, MESH_ANSWERING_GROUP);
	}
}
