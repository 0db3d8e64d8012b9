/* SPDX-License-Identifier: Apache-2.0 */
/* reporting.c - answers to questions about links, and passes them on. */
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/version.h"
#include "neighbours/reporting.h"

_Static_assert(MESH_NICS_MAX <= 32, "a bit for each");

/* ---- passing on ---------------------------------------------------------------------------- */

static bool is_kept(const struct mesh_forwarding_slot *slot, uint64_t now_ms)
{
	return slot->came_ms && mesh_clock_elapsed_ms(slot->came_ms, now_ms) <= MESH_LINKS_KEEP_MS;
}

/* Of the question with this token; else one that is free; NULL: there is none. */
static struct mesh_forwarding_slot *slot_of(struct mesh_forwarding *forwarding, uint64_t token,
					    uint64_t now_ms)
{
	struct mesh_forwarding_slot *slot, *unused = NULL;

	for (slot = forwarding->slots; slot < forwarding->slots + MESH_FORWARDING_SLOTS; slot++) {
		if (!is_kept(slot, now_ms))
			unused = slot;
		else if (slot->token == token)
			return slot;
	}
	return unused;
}

void mesh_forwarding_question(struct mesh_forwarding *forwarding, int link,
			      const struct mesh_forwarding_asker *from,
			      const struct mesh_links_question *question, uint64_t now_ms)
{
	struct mesh_forwarding_slot *slot = slot_of(forwarding, question->token, now_ms);

	if (question->node_id == forwarding->node_id || !slot)
		return; /* it has come back, or too many have come */
	if (is_kept(slot, now_ms)) {
		slot->links |= 1u << link;
		return;
	}
	*slot = (struct mesh_forwarding_slot){
		.asker = *from,
		.token = question->token,
		.job = question->job,
		.node_id = question->node_id,
		.came_ms = now_ms,
		.links = 1u << link,
		.hops = question->hops,
		.passed = question->hops == 1,
	};
}

void mesh_forwarding_answer(struct mesh_forwarding *forwarding,
			    const struct mesh_links_answer *answer, uint64_t now_ms)
{
	const struct mesh_forwarding_slot *slot = slot_of(forwarding, answer->token, now_ms);

	if (slot && is_kept(slot, now_ms))
		forwarding->answer(forwarding->owner, &slot->asker, answer);
}

static void slot_pass(struct mesh_forwarding *forwarding, struct mesh_forwarding_slot *slot)
{
	struct mesh_links_question question = {
		.token = slot->token,
		.job = slot->job,
		.node_id = slot->node_id,
		.hops = slot->hops - 1,
	};

	slot->passed = true;
	forwarding->ask(forwarding->owner, slot->links, &question);
}

bool mesh_forwarding_advance(struct mesh_forwarding *forwarding, uint64_t now_ms)
{
	struct mesh_forwarding_slot *slot;
	bool more = false;

	for (slot = forwarding->slots; slot < forwarding->slots + MESH_FORWARDING_SLOTS; slot++) {
		if (!is_kept(slot, now_ms))
			continue;
		slot->answered = slot->answered || forwarding->own(forwarding->owner, slot);
		if (!slot->passed &&
		    mesh_clock_elapsed_ms(slot->came_ms, now_ms) >= MESH_FORWARDING_DELAY_MS)
			slot_pass(forwarding, slot);
		more |= !slot->answered || !slot->passed;
	}
	return more;
}

/* ---- the survey ---------------------------------------------------------------------------- */

/* The second half of a port answers right after the first one. */
static bool is_settled(const struct mesh_reporting *reporting, uint64_t now_ms)
{
	uint64_t waited_ms = mesh_clock_elapsed_ms(reporting->surveyed_ms, now_ms);

	return reporting->surveyed_ms && (waited_ms >= MESH_ASKING_SETTLE_MS ||
					  (waited_ms >= MESH_FORWARDING_DELAY_MS &&
					   mesh_asking_all_answered(&reporting->survey)));
}

MESH_HOLDS(process)
static void survey_refresh(struct mesh_reporting *reporting, uint64_t now_ms)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	int num_links;

	if (reporting->surveyed_ms &&
	    mesh_clock_elapsed_ms(reporting->surveyed_ms, now_ms) < MESH_LINKS_KEEP_MS)
		return;
	num_links = mesh_members_links(reporting->members, links, MESH_NICS_MAX);
	mesh_asking_links_set(&reporting->survey, links, num_links);
	reporting->surveyed_ms = now_ms;
	mesh_asking_begin(&reporting->survey, now_ms);
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

/* Our answer, as many datagrams as it needs. */
MESH_HOLDS(process)
static void links_report(struct mesh_reporting *reporting, const struct mesh_forwarding_slot *slot)
{
	const struct mesh_neighbour_self *self = reporting->members->self;
	struct mesh_links_nic nics[MESH_NICS_MAX];
	struct mesh_links_link links[MESH_LINKS_MAX];
	int num_nics = nics_list(reporting, nics), num_links = links_list(reporting, links);
	struct mesh_links_answer answer;

	memset(&answer, 0, sizeof(answer));
	memcpy(answer.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(answer.head.node, self->node, sizeof(answer.head.node));
	memcpy(answer.site, self->site, sizeof(answer.site));
	answer.node_id = self->node_id;
	answer.token = slot->token;
	answer.protocol = MESH_PROTOCOL_VERSION;
	mesh_members_count(reporting->members, slot->job, &answer);
	do {
		mesh_links_answer_fill(&answer, answer.next, nics, num_nics, links, num_links);
		reporting->send(reporting, slot->asker.ifindex, &slot->asker.addr, slot->asker.port,
				&answer.head);
	} while (answer.next);
}

MESH_HOLDS(process)
static bool own_question(void *owner, const struct mesh_forwarding_slot *slot)
{
	struct mesh_reporting *reporting = owner;

	if (!is_settled(reporting, mesh_clock_ms()))
		return false;
	links_report(reporting, slot);
	return true;
}

/* ---- other nodes' links -------------------------------------------------------------------- */

MESH_HOLDS(process)
static void links_ask(void *owner, uint32_t links, const struct mesh_links_question *question)
{
	struct mesh_reporting *reporting = owner;
	const struct mesh_neighbour_self *self = reporting->members->self;
	struct mesh_links_question onward = *question;
	int i;

	memcpy(onward.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(onward.head.node, self->node, sizeof(onward.head.node));
	mesh_links_question_finish(&onward);
	for (i = 0; i < reporting->survey.num_links; i++) {
		if (!(links >> i & 1))
			reporting->send(reporting, reporting->survey.links[i].ifindex, NULL,
					MESH_NEIGHBOUR_PORT, &onward.head);
	}
}

MESH_HOLDS(process)
static void answer_return(void *owner, const struct mesh_forwarding_asker *to,
			  const struct mesh_links_answer *answer)
{
	struct mesh_reporting *reporting = owner;

	reporting->send(reporting, to->ifindex, &to->addr, to->port, &answer->head);
}

MESH_HOLDS(process)
static void questions_due(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_reporting *reporting = mesh_container_of(timer, struct mesh_reporting, timer);

	if (mesh_forwarding_advance(&reporting->forwarding, now_ms))
		mesh_engine_timer_set(reporting->survey.engine, timer,
				      now_ms + MESH_FORWARDING_DELAY_MS);
}

void mesh_reporting_take(struct mesh_reporting *reporting, const struct mesh_datagram *datagram,
			 uint64_t now_ms)
{
	const struct mesh_forwarding_asker from = {
		.ifindex = datagram->ifindex, .addr = datagram->from, .port = datagram->port};
	int link;

	if (datagram->links.head.type == MESH_LINKS_ANSWER) {
		mesh_forwarding_answer(&reporting->forwarding, &datagram->links.answer, now_ms);
		return;
	}
	survey_refresh(reporting, now_ms);
	link = mesh_asking_link_find(&reporting->survey, datagram->ifindex);
	if (link < 0)
		return;
	mesh_forwarding_question(&reporting->forwarding, link, &from, &datagram->links.question,
				 now_ms);
	if (!reporting->timer.set)
		mesh_engine_timer_set(reporting->survey.engine, &reporting->timer,
				      now_ms + MESH_FORWARDING_DELAY_MS);
}

/* ---- opening and closing ------------------------------------------------------------------- */

void mesh_reporting_init(struct mesh_reporting *reporting, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self, const struct mesh_members *members)
{
	memset(reporting, 0, sizeof(*reporting));
	reporting->members = members;
	mesh_asking_init(&reporting->survey, self);
	reporting->survey.engine = engine;
	reporting->timer.expired = questions_due;
	reporting->forwarding.node_id = self->node_id;
	reporting->forwarding.owner = reporting;
	reporting->forwarding.ask = links_ask;
	reporting->forwarding.answer = answer_return;
	reporting->forwarding.own = own_question;
}

void mesh_reporting_finish(struct mesh_reporting *reporting)
{
	mesh_engine_timer_cancel(reporting->survey.engine, &reporting->timer);
	mesh_asking_finish(&reporting->survey);
}
