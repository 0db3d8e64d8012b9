/* SPDX-License-Identifier: Apache-2.0 */
/* asking.c - asks on each of our NICs which node is there; what the answers say. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/random.h"
#include "neighbours/asking.h"

/*
 * A NIC that has no answer asks again after these times, in milliseconds from the begin of the
 * round; the last one is its end. A node answers within a millisecond, unless its processor is
 * busy. No two questions follow more closely than the first two.
 */
static const uint64_t due_ms[] = {0, 50, 200, 1000};
#define QUESTIONS ((int)(sizeof(due_ms) / sizeof(due_ms[0])) - 1)
/* Datagrams taken in one call. */
#define TAKE_MAX 64

/* ---- sockets ------------------------------------------------------------------------------- */

/* The one of that family, which is opened if it is not. Returns its descriptor or an errno. */
static int socket_of(struct mesh_asking *asking, enum mesh_family family)
{
	struct mesh_watch *watch = &asking->sockets[family == MESH_FAMILY_IPV6 ? 0 : 1].watch;
	int ret = watch->fd < 0 ? mesh_datagram_watch(asking->engine, watch, family, 0) : 0;

	return ret ? ret : watch->fd;
}

static void sockets_close(struct mesh_asking *asking)
{
	int i;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		if (asking->engine)
			mesh_engine_unwatch(asking->engine, &asking->sockets[i].watch);
		else
			mesh_descriptor_close(asking->sockets[i].watch.fd);
		asking->sockets[i].watch.fd = -1;
	}
}

/* ---- our NICs ------------------------------------------------------------------------------ */

static void asked_free(struct mesh_asked *asked)
{
	while (asked->num_heard)
		free(asked->heard[--asked->num_heard]);
}

static void round_end(struct mesh_asking *asking)
{
	sockets_close(asking);
	if (asking->engine)
		mesh_engine_timer_cancel(asking->engine, &asking->timer);
	asking->began_ms = asking->sought = 0;
}

void mesh_asking_finish(struct mesh_asking *asking)
{
	int i;

	round_end(asking);
	for (i = 0; i < asking->num_links; i++)
		asked_free(&asking->asked[i]);
	asking->num_links = 0;
}

/* True if the cable may be another one. */
static bool link_differs(const struct mesh_neighbour_link *a, const struct mesh_neighbour_link *b)
{
	struct mesh_neighbour about = a->about;

	about.flags = b->about.flags;
	return memcmp(&about, &b->about, sizeof(about)) != 0 ||
	       !mesh_addr_equal(&a->ask_from, &b->ask_from);
}

bool mesh_asking_links_set(struct mesh_asking *asking, const struct mesh_neighbour_link *links,
			   int num_links)
{
	struct mesh_asked old[MESH_NICS_MAX];
	bool changed = false;
	int num_old = asking->num_links, i, k;

	memcpy(old, asking->asked, sizeof(old));
	memset(asking->asked, 0, sizeof(asking->asked));
	for (i = 0; i < num_links; i++) {
		for (k = 0; k < num_old && old[k].ifindex != links[i].ifindex; k++)
			continue;
		if (k < num_old && !link_differs(&asking->links[k], &links[i])) {
			asking->asked[i] = old[k];
			old[k].num_heard = 0; /* moved */
			changed |= asking->links[k].about.flags != links[i].about.flags;
		} else {
			asking->asked[i].ifindex = links[i].ifindex;
			changed = true;
		}
	}
	for (k = 0; k < num_old; k++)
		asked_free(&old[k]);
	memmove(asking->links, links, (size_t)num_links * sizeof(*links));
	asking->num_links = num_links;
	return changed;
}

/* ---- questions ----------------------------------------------------------------------------- */

static int round_begin(struct mesh_asking *asking, uint64_t now_ms)
{
	uint64_t next_ms;
	int i, fd, ret = 0, opened = 0;

	if (asking->began_ms) {
		if (!asking->sent)
			return 0; /* its first question is still to come */
		/* As if the round began now; a question that has just been sent counts. */
		next_ms = asking->began_ms + due_ms[asking->sent - 1] + due_ms[1];
		asking->began_ms = next_ms > now_ms ? next_ms : now_ms;
	} else {
		ret = mesh_random(&asking->token, sizeof(asking->token));
		asking->began_ms = now_ms ? now_ms : 1;
	}
	for (i = 0; i < asking->num_links && !ret; i++) {
		asking->asked[i].answered = false;
		if (asking->links[i].ask_from.family == MESH_FAMILY_NONE)
			continue;
		fd = socket_of(asking, asking->links[i].ask_from.family);
		if (fd < 0)
			ret = fd;
		else
			opened++;
	}
	asking->sent = 0;
	asking->due_ms = asking->began_ms;
	if (ret || !opened)
		round_end(asking);
	return ret;
}

int mesh_asking_begin(struct mesh_asking *asking, uint64_t now_ms)
{
	int ret = round_begin(asking, now_ms);

	if (ret && asking->engine)
		mesh_info("cannot ask the neighbours: %s", strerror(-ret));
	mesh_asking_advance(asking, now_ms);
	return ret;
}

int mesh_asking_seek(struct mesh_asking *asking, uint64_t node_id, uint64_t now_ms)
{
	asking->sought = node_id;
	return mesh_asking_begin(asking, now_ms);
}

/* True if the NIC has heard that NIC of the node; NULL: any. */
static bool is_heard(const struct mesh_asked *asked, uint64_t node_id, const char *netdev)
{
	const struct mesh_heard *heard;
	int i;

	for (i = 0; i < asked->num_heard; i++) {
		heard = asked->heard[i];
		if (!heard->error && heard->about.node_id == node_id &&
		    (!netdev || !strcmp(heard->about.netdev, netdev)))
			return true;
	}
	return false;
}

/* On a switch the first answer may be another node's. */
static bool is_wanted(const struct mesh_asking *asking, const struct mesh_asked *asked)
{
	return !asked->answered || (asking->sought && !is_heard(asked, asking->sought, NULL));
}

/* To all nodes of the link. Returns 0 or a negative errno. */
static int group_send(struct mesh_asking *asking, const struct mesh_neighbour_link *link,
		      const void *datagram, size_t size)
{
	struct mesh_addr group = mesh_datagram_group(link->ask_from.family);

	if (link->ask_from.family == MESH_FAMILY_NONE)
		return -EADDRNOTAVAIL;
	return mesh_datagram_send(socket_of(asking, link->ask_from.family), link->ifindex,
				  &link->ask_from, &group, MESH_NEIGHBOUR_PORT, datagram, size);
}

void mesh_asking_send_all(struct mesh_asking *asking, const void *datagram, size_t size)
{
	int i;

	for (i = 0; i < asking->num_links; i++)
		group_send(asking, &asking->links[i], datagram, size);
}

static void question_send(struct mesh_asking *asking, int i)
{
	const struct mesh_neighbour_link *link = &asking->links[i];
	struct mesh_neighbour question = link->about;

	question.token = asking->token;
	question.job = asking->self->job;
	if (asking->self->process.role) {
		question.total_processes = question.num_processes = 1;
		question.processes[0] = asking->self->process;
	}
	mesh_neighbour_finish(&question, MESH_NEIGHBOUR_QUESTION);
	asking->asked[i].error = group_send(asking, link, &question, question.length);
}

void mesh_asking_advance(struct mesh_asking *asking, uint64_t now_ms)
{
	int i;

	if (asking->began_ms && now_ms >= asking->due_ms && asking->sent == QUESTIONS)
		round_end(asking);
	if (!asking->began_ms)
		return;
	if (now_ms >= asking->due_ms) {
		for (i = 0; i < asking->num_links; i++) {
			if (is_wanted(asking, &asking->asked[i]))
				question_send(asking, i);
		}
		asking->sent++;
		asking->due_ms = asking->began_ms + due_ms[asking->sent];
	}
	if (asking->engine)
		mesh_engine_timer_set(asking->engine, &asking->timer, asking->due_ms);
}

MESH_HOLDS(process)
static void question_due(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_asking *asking = mesh_container_of(timer, struct mesh_asking, timer);

	mesh_asking_advance(asking, now_ms);
	if (asking->stepped)
		asking->stepped(asking, now_ms);
}

/* ---- answers ------------------------------------------------------------------------------- */

static bool is_same(const struct mesh_heard *heard, const struct mesh_datagram *datagram)
{
	if (heard->error || datagram->error) /* only the name is known */
		return !strcmp(heard->about.node, datagram->about.node);
	return heard->about.node_id == datagram->about.node_id &&
	       !strcmp(heard->about.netdev, datagram->about.netdev);
}

/* The entry of this neighbour, or a new one, or the oldest; NULL without memory. */
static struct mesh_heard *heard_place(struct mesh_asked *asked,
				      const struct mesh_datagram *datagram)
{
	struct mesh_heard *oldest = NULL;
	int i;

	for (i = 0; i < asked->num_heard; i++) {
		if (is_same(asked->heard[i], datagram))
			return asked->heard[i];
		if (!oldest || asked->heard[i]->heard_ms < oldest->heard_ms)
			oldest = asked->heard[i];
	}
	if (asked->num_heard == MESH_HEARD_MAX)
		return oldest;
	asked->heard[i] = malloc(sizeof(*asked->heard[i]));
	if (!asked->heard[i])
		return NULL;
	asked->num_heard++;
	return asked->heard[i];
}

int mesh_asking_link_find(const struct mesh_asking *asking, unsigned int ifindex)
{
	int i;

	for (i = 0; i < asking->num_links; i++) {
		if (asking->asked[i].ifindex == ifindex)
			return i;
	}
	return -1;
}

static void answer_enter(struct mesh_asking *asking, const struct mesh_datagram *datagram,
			 uint64_t now_ms)
{
	int link = mesh_asking_link_find(asking, datagram->ifindex);
	struct mesh_asked *asked;
	struct mesh_heard *heard;

	if (link < 0 || (!datagram->error && (datagram->about.type != MESH_NEIGHBOUR_ANSWER ||
					      datagram->about.token != asking->token)))
		return;
	asked = &asking->asked[link];
	heard = heard_place(asked, datagram);
	if (!heard)
		return;
	*heard = (struct mesh_heard){.about = datagram->about,
				     .from = datagram->from,
				     .error = datagram->error,
				     .heard_ms = now_ms};
	/* The other half of our port, or a loop, answers before the node at the other end. */
	asked->answered |= !mesh_heard_is_own(asking, heard);
}

void mesh_asking_take(struct mesh_asking *asking, int fd, uint64_t now_ms)
{
	struct mesh_datagram datagram;
	int i, ret;

	for (i = 0; i < TAKE_MAX && asking->began_ms; i++) {
		ret = mesh_datagram_receive(fd, &datagram);
		if (ret == -EAGAIN)
			return;
		if (ret && !datagram.is_links)
			answer_enter(asking, &datagram, now_ms);
		else if (ret && datagram.links.head.type == MESH_LINKS_ANSWER &&
			 asking->links_answered)
			asking->links_answered(asking->links_owner, &datagram.links.answer);
	}
}

MESH_HOLDS(process)
static void answers_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_asking *asking =
		mesh_container_of(watch, struct mesh_asking_socket, watch)->asking;
	uint64_t now_ms = mesh_clock_ms();

	(void)events;
	mesh_asking_take(asking, watch->fd, now_ms);
	if (asking->stepped)
		asking->stepped(asking, now_ms);
}

bool mesh_asking_all_answered(const struct mesh_asking *asking)
{
	int i;

	for (i = 0; i < asking->num_links; i++) {
		if (!asking->asked[i].answered && !asking->asked[i].error)
			return false;
	}
	return true;
}

const struct mesh_heard *mesh_asking_heard_next(const struct mesh_asking *asking, uint64_t node_id,
						uint64_t since_ms, struct mesh_heard_at *at)
{
	const struct mesh_heard *heard;

	for (; at->link < asking->num_links; at->link++, at->next = 0) {
		while (at->next < asking->asked[at->link].num_heard) {
			heard = asking->asked[at->link].heard[at->next++];
			if (!heard->error && heard->heard_ms >= since_ms &&
			    (node_id ? heard->about.node_id == node_id
				     : heard->about.node_id != asking->self->node_id))
				return heard;
		}
	}
	return NULL;
}

void mesh_asking_init(struct mesh_asking *asking, const struct mesh_neighbour_self *self)
{
	int i;

	memset(asking, 0, sizeof(*asking));
	asking->self = self;
	asking->timer.expired = question_due;
	for (i = 0; i < MESH_ASKING_SOCKETS; i++)
		asking->sockets[i] = (struct mesh_asking_socket){
			.watch = {.fd = -1, .ready = answers_ready}, .asking = asking};
}

/* ---- what they say ------------------------------------------------------------------------- */

bool mesh_heard_is_own(const struct mesh_asking *asking, const struct mesh_heard *heard)
{
	return !heard->error && heard->about.node_id == asking->self->node_id;
}

/* Two of our NICs share a wire if one hears the other, or both hear one NIC of another node. */
static bool share_wire(const struct mesh_asking *asking, int a, int b)
{
	const struct mesh_asked *asked = &asking->asked[a];
	int i;

	if (is_heard(asked, asking->self->node_id, asking->links[b].about.netdev) ||
	    is_heard(&asking->asked[b], asking->self->node_id, asking->links[a].about.netdev))
		return true;
	for (i = 0; i < asked->num_heard; i++) {
		const struct mesh_heard *heard = asked->heard[i];

		if (!heard->error && !mesh_heard_is_own(asking, heard) &&
		    is_heard(&asking->asked[b], heard->about.node_id, heard->about.netdev))
			return true;
	}
	return false;
}

/* Of another version only the name is known. */
static bool is_same_node(const struct mesh_heard *a, const struct mesh_heard *b)
{
	if (a->error || b->error)
		return !strcmp(a->about.node, b->about.node);
	return a->about.node_id == b->about.node_id;
}

/* In the order of the NICs, which is that of the cable's halves at either end. */
static void cable_hear(struct mesh_asked_cable *cable, const struct mesh_heard *heard)
{
	int i;

	for (i = 0; i < cable->num_heard; i++) {
		if (is_same_node(cable->heard[i], heard) &&
		    !strcmp(cable->heard[i]->about.netdev, heard->about.netdev))
			return;
	}
	if (i == MESH_HEARD_MAX)
		return;
	for (cable->num_heard++; i && cable->heard[i - 1]->about.nic > heard->about.nic; i--)
		cable->heard[i] = cable->heard[i - 1];
	cable->heard[i] = heard;
}

static uint64_t port_of(const struct mesh_asking *asking, int index)
{
	return mesh_neighbour_link_port(&asking->links[index]);
}

static enum mesh_cable_far far_of(const struct mesh_asking *asking,
				  const struct mesh_asked_cable *cable)
{
	uint64_t port, first = port_of(asking, cable->nics[0]);
	int i, at = 0;
	enum mesh_cable_far far = MESH_CABLE_SILENT;

	if (mesh_cable_node_next(cable, &at))
		return mesh_cable_node_next(cable, &at) ? MESH_CABLE_SWITCH : MESH_CABLE_LEADS;
	for (i = 1; i < cable->num_nics; i++) {
		port = port_of(asking, cable->nics[i]);
		if (!first || !port)
			far = MESH_CABLE_UNSURE;
		else if (first != port)
			return MESH_CABLE_LOOP;
	}
	return far;
}

void mesh_cable_find(const struct mesh_asking *asking, int index, struct mesh_asked_cable *cable)
{
	uint32_t nics = 1u << index, before;
	int i, k;

	do {
		before = nics;
		for (i = 0; i < asking->num_links; i++) {
			for (k = 0; k < asking->num_links; k++) {
				if (nics >> i & 1 && share_wire(asking, i, k))
					nics |= 1u << k;
			}
		}
	} while (nics != before);
	cable->num_nics = cable->num_heard = 0;
	for (i = 0; i < asking->num_links; i++) {
		if (!(nics >> i & 1))
			continue;
		cable->nics[cable->num_nics++] = i;
		for (k = 0; k < asking->asked[i].num_heard; k++) {
			if (!mesh_heard_is_own(asking, asking->asked[i].heard[k]))
				cable_hear(cable, asking->asked[i].heard[k]);
		}
	}
	cable->far = far_of(asking, cable);
}

int mesh_cable_other(const struct mesh_asking *asking, const struct mesh_asked_cable *cable,
		     int index)
{
	int i, other = -1;

	for (i = 0; i < cable->num_nics; i++) {
		if (cable->nics[i] != index &&
		    (other < 0 || port_of(asking, other) == port_of(asking, index)))
			other = cable->nics[i];
	}
	return other;
}

int mesh_cable_half(const struct mesh_asking *asking, const struct mesh_asked_cable *cable,
		    int index)
{
	int other = mesh_cable_other(asking, cable, index);

	if (cable->far != MESH_CABLE_LEADS || cable->num_heard < cable->num_nics || other < 0 ||
	    (port_of(asking, index) && port_of(asking, other) &&
	     port_of(asking, index) != port_of(asking, other)))
		return -1;
	return other;
}

const struct mesh_heard *mesh_cable_node_next(const struct mesh_asked_cable *cable, int *at)
{
	int i;

	for (; *at < cable->num_heard; ++*at) {
		for (i = 0; i < *at && !is_same_node(cable->heard[i], cable->heard[*at]); i++)
			continue;
		if (i == *at)
			return cable->heard[(*at)++];
	}
	return NULL;
}

static struct mesh_addr addr_of(const struct mesh_neighbour *about)
{
	struct mesh_addr addr = {.family = MESH_FAMILY_NONE};

	if (about->num_addrs)
		mesh_neighbour_addr_get(&about->addrs[0], &addr);
	return addr;
}

const struct mesh_heard *mesh_cable_partner(const struct mesh_asking *asking,
					    const struct mesh_asked_cable *cable, int index,
					    const struct mesh_heard *node)
{
	struct mesh_addr ours[MESH_NICS_MAX], theirs[MESH_HEARD_MAX];
	const struct mesh_heard *of_node[MESH_HEARD_MAX] = {NULL};
	int partners[MESH_NICS_MAX], i, num = 0;

	if (node->error)
		return node; /* its NICs are not known */
	for (i = 0; i < cable->num_nics; i++)
		ours[i] = addr_of(&asking->links[cable->nics[i]].about);
	for (i = 0; i < cable->num_heard; i++) {
		if (!is_same_node(cable->heard[i], node))
			continue;
		theirs[num] = addr_of(&cable->heard[i]->about);
		of_node[num++] = cable->heard[i];
	}
	mesh_addr_pair(ours, cable->num_nics, theirs, num, partners);
	for (i = 0; cable->nics[i] != index; i++)
		continue;
	return partners[i] < 0 ? NULL : of_node[partners[i]];
}
