/* SPDX-License-Identifier: Apache-2.0 */
/* searching.c - explores the mesh over UDP. */
#include <errno.h>
#include <string.h>

#include "base/descriptors.h"
#include "base/random.h"
#include "base/version.h"
#include "neighbours/searching.h"

/* Our own neighbours are waited for so long before "nothing is left to ask" means the end. */
#define NEIGHBOURS_MS 100
/* Datagrams taken in one call, and in one search: then they are noise. */
#define TAKE_MAX 64
#define SEARCH_MAX 16384

void mesh_searching_init(struct mesh_searching *searching, const struct mesh_asking *asking)
{
	int i;

	memset(searching, 0, sizeof(*searching));
	searching->asking = asking;
	for (i = 0; i < MESH_ASKING_SOCKETS; i++)
		searching->fds[i] = -1;
}

static void search_end(struct mesh_searching *searching)
{
	int i;

	for (i = 0; i < MESH_ASKING_SOCKETS; i++) {
		if (searching->close)
			searching->close(searching, i);
		else
			mesh_descriptor_close(searching->fds[i]);
		searching->fds[i] = -1;
	}
	searching->searches = false;
}

void mesh_searching_finish(struct mesh_searching *searching)
{
	search_end(searching);
	mesh_explore_finish(&searching->explore);
}

/* ---- our own links ------------------------------------------------------------------------- */

static bool is_current(const struct mesh_searching *searching, const struct mesh_heard *heard)
{
	return !heard->error && heard->heard_ms >= searching->began_ms &&
	       heard->about.node_id != searching->asking->self->node_id;
}

/* Enters our own links if there are more than before. */
static void own_links_enter(struct mesh_searching *searching)
{
	const struct mesh_asking *asking = searching->asking;
	struct mesh_graph_link links[MESH_GRAPH_LINKS_MAX];
	const struct mesh_heard *heard;
	int i, k, num = 0;

	for (i = 0; i < asking->num_links; i++) {
		for (k = 0; k < asking->asked[i].num_heard && num < MESH_GRAPH_LINKS_MAX; k++) {
			heard = asking->asked[i].heard[k];
			if (is_current(searching, heard))
				links[num++] = (struct mesh_graph_link){
					.node_id = heard->about.node_id,
					.speed_mbps = heard->about.speed_mbps,
					.nic = asking->links[i].about.nic,
					.peer_nic = heard->about.nic,
					.rdma = mesh_providers_have_rdma(
						asking->links[i].about.providers),
					.drained = asking->links[i].about.flags &
						   MESH_NEIGHBOUR_DRAINED,
				};
		}
	}
	if (num == searching->num_own)
		return;
	if (!mesh_explore_links_set(&searching->explore, links, num))
		searching->num_own = num;
}

static bool neighbours_are_heard(const struct mesh_searching *searching, uint64_t now_ms)
{
	const struct mesh_asking *asking = searching->asking;
	int i;

	if (now_ms >= searching->began_ms + NEIGHBOURS_MS)
		return true;
	for (i = 0; i < asking->num_links; i++) {
		if (!asking->asked[i].answered && !asking->asked[i].error)
			return false;
	}
	return true;
}

/* ---- questions ----------------------------------------------------------------------------- */

static int socket_of(const struct mesh_searching *searching, enum mesh_family family)
{
	return searching->fds[family == MESH_FAMILY_IPV6 ? 0 : 1];
}

/* Over the first of our NICs on which this neighbour has answered. */
static void question_send(struct mesh_searching *searching, struct mesh_links_question *question)
{
	const struct mesh_asking *asking = searching->asking;
	const struct mesh_neighbour_link *link;
	const struct mesh_heard *heard;
	struct mesh_addr to;
	int i, k;

	memcpy(question->head.product, mesh_version(), strlen(mesh_version()));
	memcpy(question->head.node, asking->self->node, sizeof(question->head.node));
	mesh_links_question_finish(question);
	for (i = 0; i < asking->num_links; i++) {
		link = &asking->links[i];
		for (k = 0; k < asking->asked[i].num_heard; k++) {
			heard = asking->asked[i].heard[k];
			if (!is_current(searching, heard) ||
			    heard->about.node_id != question->route[0] ||
			    heard->from.family != link->ask_from.family)
				continue;
			to = question->tries ||
					     !mesh_addr_same_subnet(&link->ask_from, &heard->from)
				     ? mesh_datagram_group(heard->from.family)
				     : heard->from;
			mesh_datagram_links_send(socket_of(searching, to.family), link->ifindex,
						 &link->ask_from, &to, MESH_NEIGHBOUR_PORT,
						 &question->head);
			return;
		}
	}
}

int mesh_searching_begin(struct mesh_searching *searching, uint64_t target, uint64_t limit_ms,
			 uint64_t now_ms)
{
	struct mesh_graph_doubt doubts[MESH_GRAPH_DOUBTS_MAX];
	bool any_doubt = searching->explore.graph.any_doubt;
	uint64_t token;
	int ret = mesh_random(&token, sizeof(token));

	memcpy(doubts, searching->explore.graph.doubts, sizeof(doubts));
	mesh_searching_finish(searching);
	if (!ret)
		ret = mesh_explore_begin(&searching->explore, searching->asking->self->node_id,
					 token, searching->asking->self->job);
	if (ret)
		return ret;
	memcpy(searching->explore.graph.doubts, doubts, sizeof(doubts));
	searching->explore.graph.any_doubt = any_doubt;
	searching->explore.target = target;
	searching->explore.site = mesh_neighbour_site_number(searching->asking->self->site);
	searching->fds[0] = mesh_datagram_open(MESH_FAMILY_IPV6, 0);
	searching->fds[1] = mesh_datagram_open(MESH_FAMILY_IPV4, 0);
	if (searching->fds[0] < 0 && searching->fds[1] < 0)
		return searching->fds[1];
	searching->began_ms = now_ms;
	searching->until_ms = now_ms + limit_ms;
	searching->num_own = searching->taken = 0;
	searching->searches = true;
	return 0;
}

void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms)
{
	struct mesh_links_question question;

	if (!searching->searches)
		return;
	own_links_enter(searching);
	while (mesh_explore_next(&searching->explore, now_ms, &question))
		question_send(searching, &question);
	if (now_ms >= searching->until_ms ||
	    (mesh_explore_is_over(&searching->explore) && neighbours_are_heard(searching, now_ms)))
		search_end(searching);
}

void mesh_searching_take(struct mesh_searching *searching, int fd, uint64_t now_ms)
{
	struct mesh_datagram datagram;
	int i, ret;

	for (i = 0; i < TAKE_MAX && searching->searches; i++) {
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

	if (!searching->searches)
		return UINT64_MAX;
	if (now_ms < searching->began_ms + NEIGHBOURS_MS &&
	    due_ms > searching->began_ms + NEIGHBOURS_MS)
		due_ms = searching->began_ms + NEIGHBOURS_MS;
	return due_ms < searching->until_ms ? due_ms : searching->until_ms;
}
