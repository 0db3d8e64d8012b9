/* SPDX-License-Identifier: Apache-2.0 */
/* forwarding.c - passes questions about links on, and the answers back. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "neighbours/forwarding.h"

/* An answer that takes longer is not passed back: the asker has asked again. */
#define SLOT_MS 1000
/* Nothing was passed on for this long. */
#define IDLE_MS 2000

struct mesh_forwarding_slot {
	struct mesh_forwarding_asker asker;
	uint64_t token; /* ours; 0: the slot is free */
	uint64_t asker_token;
	uint64_t route; /* hash of what an answer depends on */
	uint64_t target;
	uint64_t sent_ms;
	uint16_t asker_number, cursor;
};

struct mesh_forwarding_kept {
	uint64_t route, target;
	uint64_t taken_ms;
	uint16_t cursor;
	struct mesh_links_answer answer; /* head.length bytes are allocated */
};

void mesh_forwarding_clear(struct mesh_forwarding *forwarding)
{
	int i;

	for (i = 0; forwarding->kept && i < MESH_FORWARDING_KEPT; i++)
		free(forwarding->kept[i]);
	free(forwarding->kept);
	free(forwarding->slots);
	forwarding->kept = NULL;
	forwarding->slots = NULL;
}

/* Returns false if memory is short. */
static bool memory_take(struct mesh_forwarding *forwarding)
{
	if (forwarding->slots && forwarding->kept)
		return true;
	mesh_forwarding_clear(forwarding);
	if (mesh_random(&forwarding->key, sizeof(forwarding->key)))
		return false;
	forwarding->slots = calloc(MESH_FORWARDING_SLOTS, sizeof(*forwarding->slots));
	forwarding->kept = calloc(MESH_FORWARDING_KEPT, sizeof(struct mesh_forwarding_kept *));
	return forwarding->slots && forwarding->kept;
}

/* Of all that an answer depends on. The key never leaves this process. */
static uint64_t route_hash(const struct mesh_forwarding *forwarding,
			   const struct mesh_links_question *question)
{
	uint64_t hash = forwarding->key ^ question->job;
	int i;

	for (i = 1; i < question->num_route; i++) {
		hash = (hash ^ question->route[i]) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	hash = (hash ^ question->cursor) * 0xc4ceb9fe1a85ec53u;
	return hash ^ hash >> 29;
}

/* ---- answers that are kept ----------------------------------------------------------------- */

static void answer_keep(struct mesh_forwarding *forwarding, const struct mesh_forwarding_slot *slot,
			const struct mesh_links_answer *answer, uint64_t now_ms)
{
	struct mesh_forwarding_kept **place = &forwarding->kept[slot->route % MESH_FORWARDING_KEPT];
	size_t size = offsetof(struct mesh_forwarding_kept, answer) + answer->head.length;

	free(*place);
	*place = malloc(size);
	if (!*place)
		return;
	(*place)->route = slot->route;
	(*place)->target = slot->target;
	(*place)->cursor = slot->cursor;
	(*place)->taken_ms = now_ms;
	memcpy(&(*place)->answer, answer, answer->head.length);
}

/* Answers with what was kept; returns false if there is nothing that fits. */
static bool kept_answer(struct mesh_forwarding *forwarding,
			const struct mesh_forwarding_asker *from,
			const struct mesh_links_question *question, uint64_t now_ms)
{
	uint64_t route = route_hash(forwarding, question);
	const struct mesh_forwarding_kept *kept = forwarding->kept[route % MESH_FORWARDING_KEPT];
	struct mesh_links_answer answer;

	if (!kept || kept->route != route || kept->cursor != question->cursor ||
	    kept->target != question->route[question->num_route - 1] ||
	    mesh_clock_elapsed_ms(kept->taken_ms, now_ms) > MESH_FORWARDING_KEEP_MS)
		return false;
	memset(&answer, 0, sizeof(answer));
	memcpy(&answer, &kept->answer, kept->answer.head.length);
	answer.token = question->token;
	answer.number = question->number;
	forwarding->repeated++;
	forwarding->answer(forwarding->owner, from, &answer);
	return true;
}

/* ---- passing on ---------------------------------------------------------------------------- */

void mesh_forwarding_question(struct mesh_forwarding *forwarding,
			      const struct mesh_forwarding_asker *from,
			      const struct mesh_links_question *question, uint64_t now_ms)
{
	struct mesh_links_question onward = *question;
	struct mesh_forwarding_slot *slot;

	if (question->route[0] != forwarding->node_id)
		return; /* it went to all nodes of the link */
	if (question->num_route == 1) {
		forwarding->own(forwarding->owner, from, question);
		return;
	}
	forwarding->used_ms = now_ms;
	if (!memory_take(forwarding) || kept_answer(forwarding, from, question, now_ms))
		return;
	slot = &forwarding->slots[forwarding->next_slot];
	*slot = (struct mesh_forwarding_slot){
		.asker = *from,
		.asker_token = question->token,
		.route = route_hash(forwarding, question),
		.target = question->route[question->num_route - 1],
		.sent_ms = now_ms,
		.asker_number = question->number,
		.cursor = question->cursor,
	};
	if (mesh_random(&slot->token, sizeof(slot->token)))
		return;
	slot->token |= 1;
	onward.token = slot->token;
	onward.number = (uint16_t)forwarding->next_slot;
	onward.num_route--;
	memmove(onward.route, onward.route + 1, onward.num_route * sizeof(onward.route[0]));
	onward.route[onward.num_route] = 0;
	mesh_links_question_finish(&onward);
	if (!forwarding->ask(forwarding->owner, onward.route[0], &onward)) {
		slot->token = 0;
		forwarding->refused++;
		return;
	}
	forwarding->passed++;
	forwarding->next_slot = (forwarding->next_slot + 1) % MESH_FORWARDING_SLOTS;
}

void mesh_forwarding_answer(struct mesh_forwarding *forwarding,
			    const struct mesh_links_answer *answer, uint64_t now_ms)
{
	struct mesh_links_answer back = *answer;
	struct mesh_forwarding_slot *slot;

	if (!forwarding->slots || answer->number >= MESH_FORWARDING_SLOTS) {
		forwarding->refused++;
		return;
	}
	slot = &forwarding->slots[answer->number];
	if (!slot->token || slot->token != answer->token || slot->target != answer->node_id ||
	    slot->cursor != answer->cursor ||
	    mesh_clock_elapsed_ms(slot->sent_ms, now_ms) > SLOT_MS) {
		forwarding->refused++;
		return;
	}
	slot->token = 0;
	answer_keep(forwarding, slot, answer, now_ms);
	back.token = slot->asker_token;
	back.number = slot->asker_number;
	forwarding->returned++;
	forwarding->answer(forwarding->owner, &slot->asker, &back);
}

/* ---- memory -------------------------------------------------------------------------------- */

uint64_t mesh_forwarding_expire(struct mesh_forwarding *forwarding, uint64_t now_ms)
{
	if (!forwarding->slots)
		return UINT64_MAX;
	if (mesh_clock_elapsed_ms(forwarding->used_ms, now_ms) < IDLE_MS)
		return forwarding->used_ms + IDLE_MS;
	mesh_forwarding_clear(forwarding);
	return UINT64_MAX;
}

uint64_t mesh_forwarding_bytes(const struct mesh_forwarding *forwarding)
{
	uint64_t bytes = 0;
	int i;

	if (!forwarding->slots)
		return 0;
	bytes = MESH_FORWARDING_SLOTS * sizeof(*forwarding->slots) +
		MESH_FORWARDING_KEPT * sizeof(*forwarding->kept);
	for (i = 0; i < MESH_FORWARDING_KEPT; i++) {
		if (forwarding->kept[i])
			bytes += offsetof(struct mesh_forwarding_kept, answer) +
				 forwarding->kept[i]->answer.head.length;
	}
	return bytes;
}
