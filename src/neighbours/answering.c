/* SPDX-License-Identifier: Apache-2.0 */
/* answering.c - one answer of this node to each question, and questions that it passes on. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/version.h"
#include "neighbours/answering.h"

/*
 * Datagrams taken: a second, and at once. 64 processes on each of 16 nodes of a switch that start
 * together send 1024 questions. The rest stays in the kernel, which drops it.
 */
#define TAKE_RATE 2000
#define TAKE_BURST 4096
/* In one call, which has the engine's lock. */
#define TAKE_MAX 64

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

/* ---- sending ------------------------------------------------------------------------------- */

/*
 * Our address on that NIC from which the sender is reached, or one of its family: then only a
 * datagram to @all gets there. Returns false if there is none.
 */
static bool own_address(const struct mesh_neighbour *about, const struct mesh_addr *from,
			struct mesh_addr *own, bool *all)
{
	struct mesh_addr addr;
	bool found = false;
	int i;

	for (i = 0; i < about->num_addrs; i++) {
		mesh_neighbour_addr_get(&about->addrs[i], &addr);
		if (addr.family != from->family ||
		    (addr.family == MESH_FAMILY_IPV6 && !mesh_addr_is_link_local(&addr)))
			continue;
		if (addr.family == MESH_FAMILY_IPV6 || mesh_addr_in_subnet(from, &addr)) {
			*own = addr;
			return true;
		}
		if (!found)
			*own = addr;
		found = true;
	}
	*all = true;
	return found;
}

/*
 * Sends from our NIC @link. IPv4 has no route to an address of another subnet: what is for one goes
 * to the group of all nodes of the link. Returns 0 or a negative errno.
 */
static int link_send(const struct mesh_answering *answering, const struct mesh_neighbour_link *link,
		     struct mesh_addr to, uint16_t port, const void *datagram, size_t size)
{
	int fd = answering->sockets[to.family == MESH_FAMILY_IPV6 ? 0 : 1].watch.fd;
	struct mesh_addr own;
	bool all = false;

	if (fd < 0 || !own_address(&link->about, &to, &own, &all))
		return -EADDRNOTAVAIL;
	if (all)
		to = mesh_datagram_group(to.family);
	return mesh_datagram_send(fd, link->ifindex, &own, &to, port, datagram, size);
}

MESH_HOLDS(process)
static void answer_return(void *owner, const struct mesh_forwarding_asker *to,
			  const struct mesh_links_answer *answer)
{
	const struct mesh_answering *answering = owner;
	struct mesh_neighbour_link link;

	if (mesh_members_link(answering->members, to->ifindex, &link))
		link_send(answering, &link, to->addr, to->port, answer, answer->head.length);
}

/* ---- the survey ---------------------------------------------------------------------------- */

/* The second half of a port answers right after the first one. */
static bool is_settled(const struct mesh_answering *answering, uint64_t now_ms)
{
	uint64_t waited_ms = mesh_clock_elapsed_ms(answering->surveyed_ms, now_ms);

	return answering->surveyed_ms && (waited_ms >= MESH_ASKING_SETTLE_MS ||
					  (waited_ms >= MESH_FORWARDING_DELAY_MS &&
					   mesh_asking_all_answered(&answering->survey)));
}

MESH_HOLDS(process)
static void survey_refresh(struct mesh_answering *answering, uint64_t now_ms)
{
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	int num_links;

	if (answering->surveyed_ms &&
	    mesh_clock_elapsed_ms(answering->surveyed_ms, now_ms) < MESH_LINKS_KEEP_MS)
		return;
	num_links = mesh_members_links(answering->members, links, MESH_NICS_MAX);
	mesh_asking_links_set(&answering->survey, links, num_links);
	answering->surveyed_ms = now_ms;
	mesh_asking_begin(&answering->survey, now_ms);
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

void mesh_answering_down_set(struct mesh_answering *answering, const struct mesh_nic *const *nics,
			     int num)
{
	int i;

	for (i = 0; i < num && i < MESH_NICS_MAX; i++)
		down_fill(&answering->down[i], nics[i]);
	answering->num_down = i;
}

/* @nics: MESH_NICS_MAX */
static int nics_list(const struct mesh_answering *answering, struct mesh_links_nic *nics)
{
	const struct mesh_asking *asking = &answering->survey;
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
	for (i = 0; i < answering->num_down && num < MESH_NICS_MAX; i++) {
		if (!is_in_use(asking, answering->down[i].netdev))
			nics[num++] = answering->down[i];
	}
	return num;
}

static int links_list(const struct mesh_answering *answering, struct mesh_links_link *links)
{
	const struct mesh_asking *asking = &answering->survey;
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};
	int num = 0;

	/* Of the latest round: another NIC may be there by now. */
	while (num < MESH_LINKS_MAX &&
	       (heard = mesh_asking_heard_next(asking, 0, answering->surveyed_ms, &at)))
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
static bool own_question(void *owner, const struct mesh_forwarding_slot *slot)
{
	struct mesh_answering *answering = owner;
	const struct mesh_neighbour_self *self = answering->members->self;
	struct mesh_links_nic nics[MESH_NICS_MAX];
	struct mesh_links_link links[MESH_LINKS_MAX];
	struct mesh_links_answer answer;
	int num_nics, num_links;

	if (!is_settled(answering, mesh_clock_ms()))
		return false;
	num_nics = nics_list(answering, nics);
	num_links = links_list(answering, links);
	memset(&answer, 0, sizeof(answer));
	memcpy(answer.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(answer.head.node, self->node, sizeof(answer.head.node));
	memcpy(answer.site, self->site, sizeof(answer.site));
	answer.node_id = self->node_id;
	answer.token = slot->token;
	answer.protocol = MESH_PROTOCOL_VERSION;
	mesh_members_count(answering->members, slot->job, &answer);
	do {
		mesh_links_answer_fill(&answer, answer.next, nics, num_nics, links, num_links);
		answer_return(answering, &slot->asker, &answer);
	} while (answer.next);
	return true;
}

/* ---- other nodes' links -------------------------------------------------------------------- */

MESH_HOLDS(process)
static void links_ask(void *owner, uint32_t links, const struct mesh_links_question *question)
{
	struct mesh_answering *answering = owner;
	const struct mesh_neighbour_self *self = answering->members->self;
	struct mesh_links_question onward = *question;
	const struct mesh_neighbour_link *link;
	int i;

	memcpy(onward.head.product, mesh_version(), strlen(mesh_version()));
	memcpy(onward.head.node, self->node, sizeof(onward.head.node));
	mesh_links_question_finish(&onward);
	for (i = 0; i < answering->survey.num_links; i++) {
		link = &answering->survey.links[i];
		if (!(links >> i & 1)) /* from our port, which the answer comes back to */
			link_send(answering, link, mesh_datagram_group(link->ask_from.family),
				  MESH_NEIGHBOUR_PORT, &onward, onward.head.length);
	}
}

MESH_HOLDS(process)
static void questions_due(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_answering *answering = mesh_container_of(timer, struct mesh_answering, passing);

	if (mesh_forwarding_advance(&answering->forwarding, now_ms))
		mesh_engine_timer_set(answering->engine, timer, now_ms + MESH_FORWARDING_DELAY_MS);
}

/* A datagram about links. */
MESH_HOLDS(process)
static void links_take(struct mesh_answering *answering, const struct mesh_datagram *datagram,
		       uint64_t now_ms)
{
	const struct mesh_forwarding_asker from = {
		.ifindex = datagram->ifindex, .addr = datagram->from, .port = datagram->port};
	int link;

	if (datagram->links.head.type == MESH_LINKS_ANSWER) {
		mesh_forwarding_answer(&answering->forwarding, &datagram->links.answer, now_ms);
		return;
	}
	survey_refresh(answering, now_ms);
	link = mesh_asking_link_find(&answering->survey, datagram->ifindex);
	if (link < 0)
		return;
	mesh_forwarding_question(&answering->forwarding, link, &from, &datagram->links.question,
				 now_ms);
	if (!answering->passing.set)
		mesh_engine_timer_set(answering->engine, &answering->passing,
				      now_ms + MESH_FORWARDING_DELAY_MS);
}

/* ---- questions ----------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void question_answer(struct mesh_answering *answering, const struct mesh_datagram *question,
			    const struct mesh_neighbour_link *link)
{
	struct mesh_neighbour answer = link->about;

	/* A question of another version gets an answer of ours: both have the names. */
	answer.token = question->about.token;
	answer.job = question->about.job;
	mesh_members_list(answering->members, &answer);
	mesh_neighbour_finish(&answer, MESH_NEIGHBOUR_ANSWER);
	if (!link_send(answering, link, question->from, question->port, &answer, answer.length))
		answering->answered++;
}

/* True for what may be answered: never what comes from another node's port. */
static bool is_question(const struct mesh_datagram *datagram)
{
	if (datagram->from.family == MESH_FAMILY_IPV6 && !mesh_addr_is_link_local(&datagram->from))
		return false;
	if (datagram->is_links)
		return true;
	return datagram->port != MESH_NEIGHBOUR_PORT &&
	       (datagram->error || datagram->about.type == MESH_NEIGHBOUR_QUESTION);
}

MESH_HOLDS(process)
static void datagram_take(struct mesh_answering *answering, const struct mesh_datagram *datagram)
{
	struct mesh_neighbour_link link;

	if (!mesh_members_link(answering->members, datagram->ifindex, &link))
		return;
	if (datagram->is_links)
		links_take(answering, datagram, mesh_clock_ms());
	else
		question_answer(answering, datagram, &link);
}

/* ---- pace ---------------------------------------------------------------------------------- */

static void credit_add(struct mesh_answering *answering, uint64_t now_ms)
{
	uint64_t earned = mesh_clock_elapsed_ms(answering->credit_ms, now_ms) * TAKE_RATE / 1000;

	answering->credit_ms = now_ms;
	answering->credit += earned;
	if (answering->credit > TAKE_BURST)
		answering->credit = TAKE_BURST;
}

MESH_HOLDS(process)
static void sockets_rewatch(struct mesh_answering *answering, uint32_t events)
{
	int i;

	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++) {
		if (answering->sockets[i].watch.fd >= 0)
			mesh_engine_rewatch(answering->engine, &answering->sockets[i].watch,
					    events);
	}
}

MESH_HOLDS(process)
static void pause_end(struct mesh_timer *timer, uint64_t now_ms)
{
	(void)now_ms;
	sockets_rewatch(mesh_container_of(timer, struct mesh_answering, timer), EPOLLIN);
}

MESH_HOLDS(process)
static void pause_begin(struct mesh_answering *answering, uint64_t now_ms)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&answering->floods, 1, now_ms, more))
		mesh_warn("more than %d datagrams a second arrive on UDP port %d, so some "
			  "neighbours' questions are not answered; connections are not "
			  "affected%s",
			  TAKE_RATE, MESH_NEIGHBOUR_PORT, more);
	sockets_rewatch(answering, 0);
	mesh_engine_timer_set(answering->engine, &answering->timer, now_ms + MESH_MEMBERS_PAUSE_MS);
}

MESH_HOLDS(process)
static void socket_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_answering_socket *socket =
		mesh_container_of(watch, struct mesh_answering_socket, watch);
	struct mesh_answering *answering = socket->answering;
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_datagram datagram;
	int i, ret;

	(void)events;
	credit_add(answering, now_ms);
	for (i = 0; i < TAKE_MAX; i++) {
		if (!answering->credit) {
			pause_begin(answering, now_ms);
			return;
		}
		ret = mesh_datagram_receive(watch->fd, &datagram);
		if (ret == -EAGAIN)
			return;
		answering->credit--;
		if (!ret || !is_question(&datagram))
			answering->dropped++;
		else
			datagram_take(answering, &datagram);
	}
}

/* ---- sockets ------------------------------------------------------------------------------- */

void mesh_answering_init(struct mesh_answering *answering, struct mesh_engine *engine,
			 const struct mesh_neighbour_self *self, const struct mesh_members *members)
{
	int i;

	memset(answering, 0, sizeof(*answering));
	answering->engine = engine;
	answering->members = members;
	answering->timer.expired = pause_end;
	mesh_asking_init(&answering->survey, self);
	answering->survey.engine = engine;
	answering->passing.expired = questions_due;
	answering->forwarding.node_id = self->node_id;
	answering->forwarding.owner = answering;
	answering->forwarding.ask = links_ask;
	answering->forwarding.answer = answer_return;
	answering->forwarding.own = own_question;
	answering->credit = TAKE_BURST;
	answering->credit_ms = mesh_clock_ms();
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		answering->sockets[i] = (struct mesh_answering_socket){
			.watch = {.fd = -1, .ready = socket_ready},
			.answering = answering,
			.family = i ? MESH_FAMILY_IPV4 : MESH_FAMILY_IPV6,
		};
}

void mesh_answering_open(struct mesh_answering *answering)
{
	int i, ret;

	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++) {
		ret = mesh_datagram_watch(answering->engine, &answering->sockets[i].watch,
					  answering->sockets[i].family, MESH_NEIGHBOUR_PORT);
		/* The kernel may lack a family. */
		if (ret && ret != -EAFNOSUPPORT && ret != -EADDRNOTAVAIL)
			mesh_info("this node does not answer its neighbours over IPv%d: UDP port "
				  "%d: %s",
				  (int)answering->sockets[i].family, MESH_NEIGHBOUR_PORT,
				  strerror(-ret));
	}
}

void mesh_answering_close(struct mesh_answering *answering)
{
	int i;

	mesh_engine_timer_cancel(answering->engine, &answering->timer);
	mesh_engine_timer_cancel(answering->engine, &answering->passing);
	for (i = 0; i < MESH_ANSWERING_SOCKETS; i++)
		mesh_engine_unwatch(answering->engine, &answering->sockets[i].watch);
	mesh_asking_finish(&answering->survey);
}
