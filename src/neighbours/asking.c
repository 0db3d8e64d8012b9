/* SPDX-License-Identifier: Apache-2.0 */
/* asking.c - asks on each of our NICs which node is there, and keeps the answers. */
#include <errno.h>
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
 * round. A node answers within a millisecond, unless its processor is busy.
 */
static const uint64_t question_ms[] = {0, 50, 200};
#define QUESTIONS ((int)(sizeof(question_ms) / sizeof(question_ms[0])))
#define ROUND_MS 1000
#define PACE_MS 50
/* Datagrams taken in one call, and in one round. */
#define TAKE_MAX 64
#define ROUND_MAX 8192

/* ---- sockets ------------------------------------------------------------------------------- */

void mesh_asking_sockets_init(struct mesh_asking_socket *sockets,
			      void (*ready)(struct mesh_watch *watch, uint32_t events), void *owner)
{
	int i;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++)
		sockets[i] = (struct mesh_asking_socket){{.fd = -1, .ready = ready}, owner};
}

int mesh_asking_socket_of(const struct mesh_asking *asking, struct mesh_asking_socket *sockets,
			  enum mesh_family family)
{
	struct mesh_watch *watch = &sockets[family == MESH_FAMILY_IPV6 ? 0 : 1].watch;
	int fd = watch->fd >= 0 ? watch->fd : mesh_datagram_open(family, 0);
	int ret = 0;

	if (fd < 0 || watch->fd >= 0)
		return fd;
	watch->fd = fd;
	if (asking->engine)
		ret = mesh_engine_watch(asking->engine, watch, EPOLLIN);
	if (!ret)
		return fd;
	mesh_descriptor_close(fd);
	watch->fd = -1;
	return ret;
}

void mesh_asking_sockets_close(const struct mesh_asking *asking, struct mesh_asking_socket *sockets)
{
	int i;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		if (asking->engine)
			mesh_engine_unwatch(asking->engine, &sockets[i].watch);
		else
			mesh_descriptor_close(sockets[i].watch.fd);
		sockets[i].watch.fd = -1;
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
	mesh_asking_sockets_close(asking, asking->sockets);
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
	uint64_t latest_ms;
	int i, fd, ret = 0, opened = 0;

	if (asking->began_ms) {
		if (!asking->sent)
			return 0; /* its first question is still to come */
		/* As if the round began now; a question that has just been sent counts. */
		latest_ms = asking->began_ms + question_ms[asking->sent - 1];
		asking->began_ms = latest_ms + PACE_MS > now_ms ? latest_ms + PACE_MS : now_ms;
	} else {
		ret = mesh_random(&asking->token, sizeof(asking->token));
		asking->began_ms = now_ms ? now_ms : 1;
	}
	for (i = 0; i < asking->num_links && !ret; i++) {
		asking->asked[i].answered = false;
		if (asking->links[i].ask_from.family == MESH_FAMILY_NONE)
			continue;
		fd = mesh_asking_socket_of(asking, asking->sockets,
					   asking->links[i].ask_from.family);
		if (fd < 0)
			ret = fd;
		else
			opened++;
	}
	asking->sent = asking->taken = 0;
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

bool mesh_asked_has_heard(const struct mesh_asked *asked, uint64_t node_id)
{
	int i;

	for (i = 0; i < asked->num_heard; i++) {
		if (!asked->heard[i]->error && asked->heard[i]->about.node_id == node_id)
			return true;
	}
	return false;
}

/* On a switch the first answer may be another node's. */
static bool is_wanted(const struct mesh_asking *asking, const struct mesh_asked *asked)
{
	return !asked->answered || (asking->sought && !mesh_asked_has_heard(asked, asking->sought));
}

static void question_send(struct mesh_asking *asking, int i)
{
	const struct mesh_neighbour_link *link = &asking->links[i];
	struct mesh_neighbour question = link->about;
	struct mesh_addr group = mesh_datagram_group(link->ask_from.family);

	if (link->ask_from.family == MESH_FAMILY_NONE) {
		asking->asked[i].error = -EADDRNOTAVAIL;
		return;
	}
	question.token = asking->token;
	question.job = asking->self->job;
	if (asking->self->process.role) {
		question.total_processes = question.num_processes = 1;
		question.processes[0] = asking->self->process;
	}
	if (asking->sent == 1)
		question.flags |= MESH_NEIGHBOUR_AGAIN;
	mesh_neighbour_finish(&question, MESH_NEIGHBOUR_QUESTION);
	asking->asked[i].error = mesh_datagram_send(
		mesh_asking_socket_of(asking, asking->sockets, link->ask_from.family),
		link->ifindex, &link->ask_from, &group, MESH_NEIGHBOUR_PORT, &question);
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
		asking->due_ms = asking->began_ms +
				 (asking->sent < QUESTIONS ? question_ms[asking->sent] : ROUND_MS);
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

static struct mesh_asked *asked_find(struct mesh_asking *asking, unsigned int ifindex)
{
	int i;

	for (i = 0; i < asking->num_links; i++) {
		if (asking->asked[i].ifindex == ifindex)
			return &asking->asked[i];
	}
	return NULL;
}

static void answer_enter(struct mesh_asking *asking, const struct mesh_datagram *datagram,
			 uint64_t now_ms)
{
	struct mesh_asked *asked = asked_find(asking, datagram->ifindex);
	struct mesh_heard *heard;

	if (!asked || datagram->is_links ||
	    (!datagram->error && (datagram->about.type != MESH_NEIGHBOUR_ANSWER ||
				  datagram->about.token != asking->token)))
		return;
	heard = heard_place(asked, datagram);
	if (!heard)
		return;
	*heard = (struct mesh_heard){.about = datagram->about,
				     .from = datagram->from,
				     .error = datagram->error,
				     .heard_ms = now_ms};
	asked->answered = true;
}

void mesh_asking_take(struct mesh_asking *asking, int fd, uint64_t now_ms)
{
	struct mesh_datagram datagram;
	int i, ret;

	for (i = 0; i < TAKE_MAX && asking->began_ms; i++) {
		ret = mesh_datagram_receive(fd, &datagram);
		if (ret == -EAGAIN)
			return;
		if (ret)
			answer_enter(asking, &datagram, now_ms);
		if (++asking->taken > ROUND_MAX)
			round_end(asking);
	}
}

MESH_HOLDS(process)
static void answers_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_asking *asking =
		mesh_container_of(watch, struct mesh_asking_socket, watch)->owner;
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

const struct mesh_heard *mesh_asking_heard_next(const struct mesh_asking *asking, uint64_t since_ms,
						struct mesh_heard_at *at)
{
	const struct mesh_heard *heard;

	for (; at->link < asking->num_links; at->link++, at->next = 0) {
		while (at->next < asking->asked[at->link].num_heard) {
			heard = asking->asked[at->link].heard[at->next++];
			if (!heard->error && heard->heard_ms >= since_ms)
				return heard;
		}
	}
	return NULL;
}

uint64_t mesh_asking_waited_ms(const struct mesh_asking *asking, uint64_t now_ms)
{
	return asking->began_ms ? mesh_clock_elapsed_ms(asking->began_ms, now_ms) : UINT64_MAX;
}

void mesh_asking_init(struct mesh_asking *asking, const struct mesh_neighbour_self *self)
{
	memset(asking, 0, sizeof(*asking));
	asking->self = self;
	asking->timer.expired = question_due;
	mesh_asking_sockets_init(asking->sockets, answers_ready, asking);
}
