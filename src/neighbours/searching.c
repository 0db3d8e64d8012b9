/* SPDX-License-Identifier: Apache-2.0 */
/* searching.c - explores the mesh over UDP. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/random.h"
#include "base/version.h"
#include "neighbours/searching.h"

/* Datagrams taken in one call, and in one search: then they are noise. */
#define TAKE_MAX 64
#define SEARCH_MAX 16384

static void search_end(struct mesh_searching *searching)
{
	mesh_asking_sockets_close(searching->asking, searching->sockets);
	if (searching->asking->engine)
		mesh_engine_timer_cancel(searching->asking->engine, &searching->timer);
	searching->until_ms = 0;
}

void mesh_searching_finish(struct mesh_searching *searching)
{
	search_end(searching);
	mesh_explore_finish(&searching->explore);
}

/* ---- our own links ------------------------------------------------------------------------- */

/* Enters our own links if there are more than before. */
static void own_links_enter(struct mesh_searching *searching)
{
	const struct mesh_asking *asking = searching->asking;
	struct mesh_graph_link links[MESH_GRAPH_LINKS_MAX];
	const struct mesh_heard *heard;
	const struct mesh_neighbour *ours;
	struct mesh_heard_at at = {0};
	int num = 0;

	while (num < MESH_GRAPH_LINKS_MAX &&
	       (heard = mesh_asking_heard_next(asking, 0, searching->began_ms, &at))) {
		ours = &asking->links[at.link].about;
		links[num++] = (struct mesh_graph_link){
			.node_id = heard->about.node_id,
			.speed_mbps = heard->about.speed_mbps,
			.nic = ours->nic,
			.peer_nic = heard->about.nic,
			.rdma = mesh_providers_have_rdma(ours->providers),
			.drained = ours->flags & MESH_NEIGHBOUR_DRAINED,
		};
	}
	if (num == searching->num_own)
		return;
	if (!mesh_explore_links_set(&searching->explore, links, num))
		searching->num_own = num;
}

static bool neighbours_are_heard(const struct mesh_searching *searching, uint64_t now_ms)
{
	return now_ms >= searching->began_ms + MESH_ASKING_SETTLE_MS ||
	       mesh_asking_all_answered(searching->asking);
}

/* ---- questions ----------------------------------------------------------------------------- */

/* Over the first of our NICs on which this neighbour has answered. */
static void question_send(struct mesh_searching *searching, struct mesh_links_question *question)
{
	const struct mesh_asking *asking = searching->asking;
	const struct mesh_neighbour_link *link;
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};
	struct mesh_addr to;

	memcpy(question->head.product, mesh_version(), strlen(mesh_version()));
	memcpy(question->head.node, asking->self->node, sizeof(question->head.node));
	mesh_links_question_finish(question);
	while ((heard = mesh_asking_heard_next(asking, question->route[0], searching->began_ms,
					       &at))) {
		link = &asking->links[at.link];
		if (heard->from.family != link->ask_from.family)
			continue;
		to = mesh_addr_same_subnet(&link->ask_from, &heard->from)
			     ? heard->from
			     : mesh_datagram_group(heard->from.family);
		mesh_datagram_send(mesh_asking_socket_of(asking, searching->sockets, to.family),
				   link->ifindex, &link->ask_from, &to, MESH_NEIGHBOUR_PORT,
				   question, question->head.length);
		return;
	}
}

static void timer_set(struct mesh_searching *searching, uint64_t now_ms)
{
	if (searching->asking->engine)
		mesh_engine_timer_set(searching->asking->engine, &searching->timer,
				      mesh_searching_due_ms(searching, now_ms));
}

int mesh_searching_begin(struct mesh_searching *searching, uint64_t target, uint64_t limit_ms,
			 uint64_t now_ms)
{
	const struct mesh_graph_doubts doubts = searching->explore.graph.doubts;
	uint64_t token;
	int ret = mesh_random(&token, sizeof(token));

	mesh_searching_finish(searching);
	if (!ret)
		ret = mesh_explore_begin(&searching->explore, searching->asking->self->node_id,
					 token, searching->asking->self->job);
	if (ret) {
		mesh_explore_finish(&searching->explore);
		return ret;
	}
	searching->explore.graph.doubts = doubts;
	searching->explore.target = target;
	searching->explore.site = mesh_neighbour_site_number(searching->asking->self->site);
	searching->began_ms = now_ms;
	searching->until_ms = now_ms + limit_ms;
	searching->num_own = searching->taken = 0;
	timer_set(searching, now_ms);
	return 0;
}

void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms)
{
	struct mesh_links_question question;

	if (!searching->until_ms)
		return;
	own_links_enter(searching);
	while (mesh_explore_next(&searching->explore, now_ms, &question))
		question_send(searching, &question);
	if (now_ms >= searching->until_ms ||
	    (mesh_explore_is_over(&searching->explore) && neighbours_are_heard(searching, now_ms)))
		search_end(searching);
	else
		timer_set(searching, now_ms);
}

MESH_HOLDS(process)
static void search_due(struct mesh_timer *timer, uint64_t now_ms)
{
	mesh_searching_advance(mesh_container_of(timer, struct mesh_searching, timer), now_ms);
}

void mesh_searching_take(struct mesh_searching *searching, int fd, uint64_t now_ms)
{
	struct mesh_datagram datagram;
	int i, ret;

	for (i = 0; i < TAKE_MAX && searching->until_ms; i++) {
		ret = mesh_datagram_receive(fd, &datagram);
		if (ret == -EAGAIN)
			break;
		if (ret && datagram.is_links && datagram.links.head.type == MESH_LINKS_ANSWER)
			mesh_explore_answer(&searching->explore, &datagram.links.answer);
		if (++searching->taken > SEARCH_MAX)
			search_end(searching);
	}
	mesh_searching_advance(searching, now_ms);
}

uint64_t mesh_searching_due_ms(const struct mesh_searching *searching, uint64_t now_ms)
{
	uint64_t due_ms = mesh_explore_due_ms(&searching->explore);

	if (!searching->until_ms)
		return UINT64_MAX;
	if (now_ms < searching->began_ms + MESH_ASKING_SETTLE_MS &&
	    due_ms > searching->began_ms + MESH_ASKING_SETTLE_MS)
		due_ms = searching->began_ms + MESH_ASKING_SETTLE_MS;
	return due_ms < searching->until_ms ? due_ms : searching->until_ms;
}

MESH_HOLDS(process)
static void answers_ready(struct mesh_watch *watch, uint32_t events)
{
	struct mesh_searching *searching =
		mesh_container_of(watch, struct mesh_asking_socket, watch)->owner;

	(void)events;
	mesh_searching_take(searching, watch->fd, mesh_clock_ms());
}

void mesh_searching_init(struct mesh_searching *searching, const struct mesh_asking *asking)
{
	memset(searching, 0, sizeof(*searching));
	searching->asking = asking;
	searching->timer.expired = search_due;
	mesh_asking_sockets_init(searching->sockets, answers_ready, searching);
}
