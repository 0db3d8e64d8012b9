/* SPDX-License-Identifier: Apache-2.0 */
/* asking.c - asks on each of our NICs which node is there; what the answers say. */
#include <errno.h>
#include <stdarg.h>
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
/* Neighbours that are named for each of our NICs; a switch may have many more. */
#define NAMED_MAX 3

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

bool mesh_asked_has_heard(const struct mesh_asked *asked, uint64_t node_id)
{
	return is_heard(asked, node_id, NULL);
}

/* On a switch the first answer may be another node's. */
static bool is_wanted(const struct mesh_asking *asking, const struct mesh_asked *asked)
{
	return !asked->answered || (asking->sought && !mesh_asked_has_heard(asked, asking->sought));
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

	if (!asked || (!datagram->error && (datagram->about.type != MESH_NEIGHBOUR_ANSWER ||
					    datagram->about.token != asking->token)))
		return;
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

const struct mesh_heard *mesh_asked_own(const struct mesh_asking *asking, int index, int *others)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_heard *own = NULL;
	int i;

	*others = 0;
	for (i = 0; i < asked->num_heard; i++) {
		if (mesh_heard_is_own(asking, asked->heard[i]))
			own = asked->heard[i];
		else
			++*others;
	}
	return own;
}

/* The only NIC of another node that is heard here, or NULL. */
static const struct mesh_neighbour *only_neighbour(const struct mesh_asking *asking, int index)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_heard *only = NULL;
	int i;

	for (i = 0; i < asked->num_heard; i++) {
		if (mesh_heard_is_own(asking, asked->heard[i]))
			continue;
		if (only || asked->heard[i]->error)
			return NULL;
		only = asked->heard[i];
	}
	return only ? &only->about : NULL;
}

int mesh_asked_shared(const struct mesh_asking *asking, int index,
		      const struct mesh_neighbour **about)
{
	int i;

	*about = only_neighbour(asking, index);
	for (i = 0; *about && i < asking->num_links; i++) {
		if (i != index && is_heard(&asking->asked[i], (*about)->node_id, (*about)->netdev))
			return i;
	}
	return -1;
}

/* ---- words --------------------------------------------------------------------------------- */

struct words {
	char *text;
	size_t size, used;
};

__attribute__((format(printf, 2, 3))) static void words_add(struct words *words, const char *format,
							    ...)
{
	va_list args;
	int n;

	if (words->used >= words->size)
		return;
	va_start(args, format);
	n = vsnprintf(words->text + words->used, words->size - words->used, format, args);
	va_end(args);
	if (n > 0)
		words->used += (size_t)n;
}

static void clause_begin(struct words *words)
{
	words_add(words, "%s", words->used ? "; " : "Neighbours: ");
}

static void neighbour_add(struct words *words, const struct mesh_neighbour *ours,
			  const struct mesh_heard *heard)
{
	const struct mesh_neighbour *theirs = &heard->about;

	clause_begin(words);
	words_add(words, "%s leads to node %s", ours->netdev, theirs->node);
	if (!heard->error)
		words_add(words, " (%s)", theirs->netdev);
	if (heard->error || theirs->protocol != ours->protocol) {
		words_add(words, ", which has another version, nccl-net-mesh %s", theirs->product);
		return;
	}
	if (theirs->mtu && ours->mtu && theirs->mtu != ours->mtu)
		words_add(words, ", whose MTU is %u, that of %s is %u", theirs->mtu, ours->netdev,
			  ours->mtu);
}

/* A NIC before @index is the other end of its cable, and has heard it. */
static bool is_said(const struct mesh_asking *asking, int index, const char *netdev)
{
	int i;

	for (i = 0; i < index; i++) {
		if (!strcmp(asking->links[i].about.netdev, netdev))
			return is_heard(&asking->asked[i], asking->self->node_id,
					asking->links[index].about.netdev);
	}
	return false;
}

static void nic_add(struct words *words, const struct mesh_asking *asking, int index)
{
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_neighbour *ours = &asking->links[index].about, *about;
	int others, other, i, named = 0;
	const struct mesh_heard *own = mesh_asked_own(asking, index, &others);

	if (!asked->num_heard) {
		clause_begin(words);
		words_add(words, "%s has no answer", ours->netdev);
	} else if (own && !others && !is_said(asking, index, own->about.netdev)) {
		clause_begin(words);
		words_add(words, "both ends of one cable are on this node: %s and %s", ours->netdev,
			  own->about.netdev);
	}
	for (i = 0; i < asked->num_heard && named < NAMED_MAX; i++) {
		if (mesh_heard_is_own(asking, asked->heard[i]))
			continue;
		neighbour_add(words, ours, asked->heard[i]);
		named++;
	}
	if (others > named)
		words_add(words, " and %d more", others - named);
	other = mesh_asked_shared(asking, index, &about);
	if (other > index)
		words_add(words, ", and so does %s: two cables lead to one NIC",
			  asking->links[other].about.netdev);
}

const char *mesh_asking_words(const struct mesh_asking *asking, char *text, size_t size)
{
	struct words words = {text, size, 0};
	int i;

	*text = '\0';
	for (i = 0; i < asking->num_links; i++)
		nic_add(&words, asking, i);
	return text;
}
