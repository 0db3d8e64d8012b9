/* SPDX-License-Identifier: Apache-2.0 */
/* reporting.c - answers to questions about links, and passes them on. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/random.h"
#include "base/version.h"
#include "neighbours/reporting.h"

/* ---- passing on ---------------------------------------------------------------------------- */

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
	forwarding->answer(forwarding->owner, from, &answer);
	return true;
}

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
	if (forwarding->ask(forwarding->owner, onward.route[0], &onward))
		forwarding->next_slot = (forwarding->next_slot + 1) % MESH_FORWARDING_SLOTS;
	else
		slot->token = 0;
}

void mesh_forwarding_answer(struct mesh_forwarding *forwarding,
			    const struct mesh_links_answer *answer, uint64_t now_ms)
{
	struct mesh_links_answer back = *answer;
	struct mesh_forwarding_slot *slot;

	if (!forwarding->slots || answer->number >= MESH_FORWARDING_SLOTS)
		return;
	slot = &forwarding->slots[answer->number];
	if (!slot->token || slot->token != answer->token || slot->target != answer->node_id ||
	    slot->cursor != answer->cursor ||
	    mesh_clock_elapsed_ms(slot->sent_ms, now_ms) > MESH_FORWARDING_KEEP_MS)
		return;
	slot->token = 0;
	forwarding->used_ms = now_ms;
	answer_keep(forwarding, slot, answer, now_ms);
	back.token = slot->asker_token;
	back.number = slot->asker_number;
	forwarding->answer(forwarding->owner, &slot->asker, &back);
}

/* ---- memory -------------------------------------------------------------------------------- */

uint64_t mesh_forwarding_expire(struct mesh_forwarding *forwarding, uint64_t now_ms)
{
	if (!forwarding->slots)
		return UINT64_MAX;
	if (mesh_clock_elapsed_ms(forwarding->used_ms, now_ms) <= MESH_FORWARDING_KEEP_MS)
		return forwarding->used_ms + 1 + MESH_FORWARDING_KEEP_MS;
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

/* ---- the survey ---------------------------------------------------------------------------- */

static bool is_settled(const struct mesh_reporting *reporting, uint64_t now_ms)
{
	return reporting->surveyed_ms &&
	       (mesh_clock_elapsed_ms(reporting->surveyed_ms, now_ms) >= MESH_ASKING_SETTLE_MS ||
		mesh_asking_all_answered(&reporting->survey));
}

MESH_HOLDS(process)
static void survey_refresh(struct mesh_reporting *reporting, uint64_t now_ms)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	int num_links;

	if (reporting->surveyed_ms &&
	    mesh_clock_elapsed_ms(reporting->surveyed_ms, now_ms) < MESH_FORWARDING_KEEP_MS)
		return;
	num_links = mesh_members_links(reporting->members, links, MESH_NICS_MAX);
	mesh_asking_links_set(&reporting->survey, links, num_links);
	reporting->surveyed_ms = now_ms;
	mesh_asking_begin(&reporting->survey, now_ms);
	mesh_engine_timer_set(reporting->survey.engine, &reporting->settled,
			      now_ms + MESH_ASKING_SETTLE_MS);
}

/* ---- our own links ------------------------------------------------------------------------- */

static bool is_in_use(const struct mesh_asking *asking, const char *netdev)
{
	int i;

	for (i = 0; i < asking->num_links; i++) {
		if (!strcmp(asking->links[i].about.netdev, netdev))
			return true;
	}
	return false;
}

static void down_fill(struct mesh_links_nic *entry, const struct mesh_nic *nic)
{
	const struct mesh_addr *addr = nic->source.family ? &nic->source : &nic->addrs[0];

	memset(entry, 0, sizeof(*entry));
	memcpy(entry->netdev, nic->netdev, sizeof(entry->netdev));
	entry->mtu = (uint32_t)nic->mtu;
	entry->flags = MESH_LINKS_NIC_DOWN;
	if (!nic->source.family && !nic->num_addrs)
		return;
	entry->addr.family = (uint8_t)addr->family;
	entry->addr.prefix_len = addr->prefix_len;
	memcpy(entry->addr.addr, addr->bytes, mesh_addr_size(addr->family));
}

void mesh_reporting_down_set(struct mesh_reporting *reporting, const struct mesh_nic *const *nics,
			     int num)
{
	int i;

	for (i = 0; i < num && i < MESH_NICS_MAX; i++)
		down_fill(&reporting->down[i], nics[i]);
	reporting->num_down = i;
}

/* @nics: MESH_NICS_MAX */
static int nics_list(const struct mesh_reporting *reporting, struct mesh_links_nic *nics)
{
	const struct mesh_asking *asking = &reporting->survey;
	const struct mesh_neighbour *about;
	int i, num = asking->num_links;

	memset(nics, 0, (size_t)asking->num_links * sizeof(*nics));
	for (i = 0; i < asking->num_links; i++) {
		about = &asking->links[i].about;
		memcpy(nics[i].netdev, about->netdev, sizeof(nics[i].netdev));
		if (about->num_addrs)
			nics[i].addr = about->addrs[0];
		nics[i].mtu = about->mtu;
		nics[i].speed_mbps = about->speed_mbps;
		nics[i].nic = about->nic;
		nics[i].providers = about->providers;
		if (about->flags & MESH_NEIGHBOUR_DRAINED)
			nics[i].flags = MESH_LINKS_NIC_DRAINED;
	}
	for (i = 0; i < reporting->num_down && num < MESH_NICS_MAX; i++) {
		if (!is_in_use(asking, reporting->down[i].netdev))
			nics[num++] = reporting->down[i];
	}
	return num;
}

static int links_list(const struct mesh_reporting *reporting, struct mesh_links_link *links)
{
	const struct mesh_asking *asking = &reporting->survey;
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};
	int num = 0;

	/* Of the latest round: another NIC may be there by now. */
	while (num < MESH_LINKS_MAX &&
	       (heard = mesh_asking_heard_next(asking, 0, reporting->surveyed_ms, &at)))
		links[num++] = (struct mesh_links_link){
			.node_id = heard->about.node_id,
			.speed_mbps = heard->about.speed_mbps,
			.nic = asking->links[at.link].about.nic,
			.peer_nic = heard->about.nic,
		};
	return num;
}

MESH_HOLDS(process)
static void answer_return(void *owner, const struct mesh_forwarding_asker *to,
			  const struct mesh_links_answer *answer)
{
	struct mesh_reporting *reporting = owner;

	reporting->send(reporting, to, &answer->head);
}

MESH_HOLDS(process)
static void own_answer(struct mesh_reporting *reporting, const struct mesh_forwarding_asker *to,
		       const struct mesh_links_question *question)
{
	const struct mesh_neighbour_self *self = reporting->members->self;
	struct mesh_links_nic nics[MESH_NICS_MAX];
	struct mesh_links_link links[MESH_LINKS_MAX];
	struct mesh_links_answer answer;

	memset(&answer, 0, sizeof(answer));
	memcpy(answer.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(answer.head.node, self->node, sizeof(answer.head.node));
	memcpy(answer.site, self->site, sizeof(answer.site));
	answer.node_id = self->node_id;
	answer.protocol = MESH_PROTOCOL_VERSION;
	answer.num_ranks =
		(uint16_t)mesh_members_ranks(reporting->members, question->job, &answer.first_rank);
	if (answer.num_ranks)
		answer.flags |= MESH_LINKS_SAME_JOB;
	if (mesh_members_serve(reporting->members, question->job))
		answer.flags |= MESH_LINKS_RELAY;
	mesh_links_answer_fill(&answer, question, nics, nics_list(reporting, nics), links,
			       links_list(reporting, links));
	answer_return(reporting, to, &answer);
}

MESH_HOLDS(process)
static void waiting_answer(struct mesh_reporting *reporting)
{
	int i;

	for (i = 0; i < reporting->num_waiting; i++)
		own_answer(reporting, &reporting->waiting[i].from, &reporting->waiting[i].question);
	free(reporting->waiting);
	reporting->waiting = NULL;
	reporting->num_waiting = 0;
}

/* A question for this node: its answer may have to wait for those of the neighbours. */
MESH_HOLDS(process)
static void own_question(void *owner, const struct mesh_forwarding_asker *from,
			 const struct mesh_links_question *question)
{
	struct mesh_reporting *reporting = owner;
	uint64_t now_ms = mesh_clock_ms();

	survey_refresh(reporting, now_ms);
	if (is_settled(reporting, now_ms)) {
		own_answer(reporting, from, question);
		return;
	}
	if (!reporting->waiting)
		reporting->waiting = calloc(MESH_REPORTING_WAITING, sizeof(*reporting->waiting));
	if (!reporting->waiting || reporting->num_waiting == MESH_REPORTING_WAITING)
		return;
	reporting->waiting[reporting->num_waiting++] =
		(struct mesh_reporting_question){*from, *question};
}

MESH_HOLDS(process)
static void survey_stepped(struct mesh_asking *survey, uint64_t now_ms)
{
	struct mesh_reporting *reporting = mesh_container_of(survey, struct mesh_reporting, survey);

	if (reporting->num_waiting && is_settled(reporting, now_ms))
		waiting_answer(reporting);
}

MESH_HOLDS(process)
static void settle_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)now_ms;
	waiting_answer(mesh_container_of(timer, struct mesh_reporting, settled));
}

/* ---- other nodes' links -------------------------------------------------------------------- */

MESH_HOLDS(process)
static bool neighbour_ask(void *owner, uint64_t node_id, const struct mesh_links_question *question)
{
	struct mesh_reporting *reporting = owner;
	struct mesh_forwarding_asker to = {.port = MESH_NEIGHBOUR_PORT};
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};

	survey_refresh(reporting, mesh_clock_ms());
	heard = node_id ? mesh_asking_heard_next(&reporting->survey, node_id, 0, &at) : NULL;
	if (!heard)
		return false;
	to.ifindex = reporting->survey.links[at.link].ifindex;
	to.addr = heard->from;
	reporting->send(reporting, &to, &question->head);
	return true;
}

MESH_HOLDS(process)
static void forget_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_reporting *reporting =
		mesh_container_of(timer, struct mesh_reporting, forgotten);
	uint64_t due_ms = mesh_forwarding_expire(&reporting->forwarding, now_ms);

	if (due_ms != UINT64_MAX)
		mesh_engine_timer_set(reporting->survey.engine, timer, due_ms);
}

void mesh_reporting_take(struct mesh_reporting *reporting, const struct mesh_datagram *datagram,
			 uint64_t now_ms)
{
	struct mesh_forwarding_asker from = {
		.ifindex = datagram->ifindex, .addr = datagram->from, .port = datagram->port};

	if (datagram->links.head.type == MESH_LINKS_ANSWER)
		mesh_forwarding_answer(&reporting->forwarding, &datagram->links.answer, now_ms);
	else
		mesh_forwarding_question(&reporting->forwarding, &from, &datagram->links.question,
					 now_ms);
	if (reporting->forwarding.slots && !reporting->forgotten.set)
		forget_expired(&reporting->forgotten, now_ms);
}

/* ---- opening and closing ------------------------------------------------------------------- */

void mesh_reporting_init(struct mesh_reporting *reporting, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self, const struct mesh_members *members)
{
	memset(reporting, 0, sizeof(*reporting));
	reporting->members = members;
	mesh_asking_init(&reporting->survey, self);
	reporting->survey.engine = engine;
	reporting->survey.stepped = survey_stepped;
	reporting->settled.expired = settle_expired;
	reporting->forgotten.expired = forget_expired;
	reporting->forwarding = (struct mesh_forwarding){
		.node_id = self->node_id,
		.owner = reporting,
		.ask = neighbour_ask,
		.answer = answer_return,
		.own = own_question,
	};
}

void mesh_reporting_finish(struct mesh_reporting *reporting)
{
	mesh_engine_timer_cancel(reporting->survey.engine, &reporting->settled);
	mesh_engine_timer_cancel(reporting->survey.engine, &reporting->forgotten);
	mesh_asking_finish(&reporting->survey);
	mesh_forwarding_clear(&reporting->forwarding);
	free(reporting->waiting);
	reporting->waiting = NULL;
	reporting->num_waiting = 0;
	reporting->surveyed_ms = 0;
}
