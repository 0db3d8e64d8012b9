/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_try.c - finds a route to a node without a common link, and connects to its first relay.
 *
 * One search of the whole mesh serves all connections that wait for one. Routes with RDMA on each
 * hop come first, then those of the fewest relays. If the search finds no route, each neighbour
 * that runs a process of our job is asked whether it leads to the node. Ranks start at different
 * times, so a relay that refuses is asked again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/retry.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "setup/connecting.h"
#include "setup/relay_try.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "transport/comm_life.h"

/* What is remembered of this node; NULL: nothing. */
static const struct mesh_relay_tried *tried_find(const struct mesh_relays_tried *tried,
						 uint64_t node_id)
{
	int i = 0;

	while (i < tried->num && tried->all[i].node_id != node_id)
		i++;
	return i < tried->num ? &tried->all[i] : NULL;
}

/* The same; a new entry replaces the one to be asked first. */
static struct mesh_relay_tried *tried_get(struct mesh_relays_tried *tried,
					  const struct mesh_next *next)
{
	const struct mesh_relay_tried *found = tried_find(tried, next->node_id);
	struct mesh_relay_tried *oldest = &tried->all[0];
	int i;

	if (found)
		return &tried->all[found - tried->all];
	for (i = 0; i < tried->num; i++) {
		if (tried->all[i].not_before_ms < oldest->not_before_ms)
			oldest = &tried->all[i];
	}
	if (tried->num < MESH_RELAYS_TRIED)
		oldest = &tried->all[tried->num++];
	memset(oldest, 0, sizeof(*oldest));
	oldest->node_id = next->node_id;
	memcpy(oldest->node, next->node, sizeof(oldest->node));
	return oldest;
}

/* When the route's first relay may be asked again, after it has refused; 0: now. */
static uint64_t refused_ms(const struct mesh_relays_tried *tried, const struct mesh_route *route)
{
	const struct mesh_relay_tried *found = tried_find(tried, route->hops[0]);

	return found ? found->not_before_ms : 0;
}

int mesh_relay_try_open(struct mesh_process *process, const struct mesh_handle *handle,
			struct mesh_relay_try **relay)
{
	mesh_process_assert_locked(process);
	if (!process->relay || !mesh_relay_serves(process, process->relay->job) ||
	    !process->relay->neighbours || handle->node_id == process->node_id)
		return -ENETUNREACH;
	*relay = calloc(1, sizeof(**relay));
	if (!*relay)
		return -ENOMEM;
	(*relay)->process = process;
	(*relay)->handle = handle;
	return 0;
}

void mesh_relay_try_again(struct mesh_relay_try *relay)
{
	mesh_dial_end(&relay->dial);
	relay->asked = false;
	relay->better = MESH_BETTER_NONE;
	relay->vain = false;
	relay->found_ms = 0;
}

void mesh_relay_try_close(struct mesh_relay_try *relay)
{
	if (!relay)
		return;
	mesh_dial_end(&relay->dial);
	free(relay);
}

/* ---- searches ------------------------------------------------------------------------------- */

/* Searches the mesh, unless that was done a moment ago. */
MESH_HOLDS(process)
static void search(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_setup *setup = mesh_setup_of(process);

	if (mesh_clock_elapsed_ms(setup->searched_ms, now_ms) < MESH_SEARCH_AGAIN_MS)
		return;
	setup->searched_ms = now_ms;
	mesh_neighbours_search(setup->neighbours);
}

/* ---- routes -------------------------------------------------------------------------------- */

/* True if what is wanted most had no time yet: the ranks that it needs may be starting. */
static bool is_early(const struct mesh_relay_try *relay, uint64_t now_ms)
{
	return mesh_clock_elapsed_ms(relay->found_ms, now_ms) < MESH_DIAL_MS;
}

static bool lacks_rdma(const struct mesh_route *route, const struct mesh_next *next)
{
	return route->rdma && next->way.address.provider != MESH_PROVIDER_VERBS_RXM;
}

/*
 * Dials a process of the route's first relay, if that may be asked now: a node may have several,
 * and one that refuses, or does not answer, is followed by the others. Links over a drained NIC,
 * and those without RDMA where the route has it on each hop, come last until the others had time.
 */
MESH_HOLDS(process)
static void first_hop_dial(struct mesh_relay_try *relay, const struct mesh_route *route,
			   uint64_t now_ms)
{
	const struct mesh_relay_tried *tried = tried_find(&relay->tried, route->hops[0]);
	bool early = is_early(relay, now_ms), last;
	bool only = relay->rdma_only || relay->better == MESH_BETTER_RDMA;
	struct mesh_process *process = relay->process;
	struct mesh_next nexts[MESH_NEXTS_MAX], *next;
	int i, num;

	if (now_ms < refused_ms(&relay->tried, route))
		return; /* a moment ago: other nodes come first */
	num = mesh_nexts_of_node(process, process->relay->neighbours, route->hops[0],
				 process->relay->job, relay->handle->listen_id, nexts,
				 MESH_NEXTS_MAX);
	for (i = 0; i < (early ? 2 : 1) * num; i++) {
		next = &nexts[((tried ? tried->turn : 0) + (uint32_t)i) % (uint32_t)num];
		last = next->drained || lacks_rdma(route, next);
		if ((early && last != (i >= num)) || (only && lacks_rdma(route, next)))
			continue;
		tried_get(&relay->tried, next); /* it is known: the connection has hope */
		if (!mesh_dial_begin(&relay->dial, process, &next->way, now_ms)) {
			relay->next = *next;
			relay->route = *route;
			return;
		}
	}
}

/* Which routes may be used beside those that are wanted most. */
struct allowance {
	bool tcp;   /* with a hop without RDMA */
	bool leave; /* over another site */
};

static bool is_allowed(const struct mesh_relay_try *relay, const struct mesh_route *route,
		       const struct allowance *allowance)
{
	if (!route->num_relays || (relay->beside.goes_on && route->drained) ||
	    (relay->rdma_only && !route->rdma))
		return false;
	return (route->rdma || allowance->tcp) && (!route->leaves || allowance->leave);
}

/*
 * The best kind of these routes comes first. Others are used if that could not be for a while, or
 * each of its routes is over a hop that is drained.
 */
static struct allowance allowance_of(const struct mesh_relay_try *relay,
				     const struct mesh_route *routes, int num, uint64_t now_ms)
{
	struct allowance allowance = {true, true};
	int i;

	for (i = 0; i < num && is_early(relay, now_ms); i++) {
		if (routes[i].drained || !is_allowed(relay, &routes[i], &allowance))
			continue;
		return (struct allowance){.tcp = !routes[i].rdma, .leave = routes[i].leaves};
	}
	return allowance;
}

/*
 * What the routes of one comm have in common, those that it goes on over have as well. What is
 * better stays inside the site, unless it is better than all other ways.
 */
static struct allowance allowance_beside(const struct mesh_relay_try *relay)
{
	const struct mesh_beside *beside = &relay->beside;
	bool any = relay->better == MESH_BETTER_ANY;

	return (struct allowance){
		.tcp = any || (relay->better != MESH_BETTER_RDMA && !beside->rdma),
		.leave = any || (relay->better != MESH_BETTER_RDMA && beside->leaves),
	};
}

static bool is_dialling(const struct mesh_relay_try *relay)
{
	return relay->dial.state != MESH_DIAL_REST;
}

/* Dials the first relay of the first of these routes that may be asked now. */
MESH_HOLDS(process)
static void routes_take(struct mesh_relay_try *relay, const struct mesh_route *routes, int num,
			uint64_t now_ms)
{
	struct allowance allowance;
	int i;

	if (!relay->found_ms)
		relay->found_ms = now_ms;
	allowance = relay->beside.goes_on ? allowance_beside(relay)
					  : allowance_of(relay, routes, num, now_ms);
	for (i = 0; i < num && !is_dialling(relay); i++) {
		if (is_allowed(relay, &routes[i], &allowance))
			first_hop_dial(relay, &routes[i], now_ms);
	}
}

/* The routes to the listener's node over at most so many relays, and over none of @avoided. */
MESH_HOLDS(process)
static int routes_find(const struct mesh_relay_try *relay, int relays_max, const uint64_t *avoided,
		       int num_avoided, struct mesh_route *routes)
{
	return mesh_neighbours_routes(relay->process->relay->neighbours, relay->handle->node_id,
				      relays_max, avoided, num_avoided, routes, MESH_ROUTES_MAX);
}

/* Each neighbour of our job but the target, as a route with one relay. */
MESH_HOLDS(process)
static int neighbours_list(const struct mesh_relay_try *relay, struct mesh_route *routes, int max)
{
	struct mesh_process *process = relay->process;
	uint64_t target = relay->handle->node_id;
	struct mesh_next nexts[MESH_NEXTS_MAX];
	int i, num, listed = 0;

	num = mesh_nexts_of_node(process, process->relay->neighbours, 0, process->relay->job, 0,
				 nexts, MESH_NEXTS_MAX);
	for (i = 0; i < num && listed < max; i++) {
		if (nexts[i].node_id != target)
			routes[listed++] = (struct mesh_route){
				.num_relays = 1,
				.hops = {nexts[i].node_id, target},
			};
	}
	return listed;
}

/* Those over a relay that has refused come behind the others, in the order of that. */
static void refused_last(const struct mesh_relay_try *relay, struct mesh_route *routes, int num)
{
	struct mesh_route route;
	int i, k;

	for (i = 1; i < num; i++) {
		route = routes[i];
		for (k = i; k && refused_ms(&relay->tried, &routes[k - 1]) >
					 refused_ms(&relay->tried, &route);
		     k--)
			routes[k] = routes[k - 1];
		routes[k] = route;
	}
}

/* Dials the first relay of the best route over at most so many, if it is better. */
MESH_HOLDS(process)
static void better_take(struct mesh_relay_try *relay, enum mesh_better better, int relays_max,
			uint64_t now_ms)
{
	const struct mesh_beside *beside = &relay->beside;
	struct mesh_route routes[MESH_ROUTES_MAX];
	int num = 0;

	relay->better = better;
	if (better)
		num = routes_find(relay, relays_max, beside->relays + beside->num, beside->num_lost,
				  routes);
	routes_take(relay, routes, num, now_ms);
	if (!is_dialling(relay))
		relay->better = MESH_BETTER_NONE;
}

/*
 * A comm that goes on over other paths needs none at once: it looks again when it likes, and asks
 * no neighbour without a route. What is better than its paths comes before what is beside its
 * routes. Those are found first, so one beside them is missing only when the search is over.
 */
MESH_HOLDS(process)
static void beside_begin(struct mesh_relay_try *relay, uint64_t now_ms)
{
	const struct mesh_neighbours *neighbours = relay->process->relay->neighbours;
	const struct mesh_beside *beside = &relay->beside;
	struct mesh_route routes[MESH_ROUTES_MAX];
	int num;

	better_take(relay, beside->better, MESH_RELAYS_MAX, now_ms);
	if (!is_dialling(relay) && beside->longest > 1)
		better_take(relay, MESH_BETTER_SHORTER, beside->longest - 1, now_ms);
	if (!is_dialling(relay) && beside->num) {
		num = routes_find(relay, beside->longest, beside->relays,
				  beside->num + beside->num_lost, routes);
		refused_last(relay, routes, num);
		routes_take(relay, routes, num, now_ms);
	}
	relay->vain = !is_dialling(relay) && !mesh_neighbours_searches(neighbours, 0);
}

/*
 * None of these routes can be asked now, and they had their time. Those that share a relay with one
 * of them are not among them, such as a shorter one without RDMA: takes what begins with other
 * relays.
 */
MESH_HOLDS(process)
static void others_take(struct mesh_relay_try *relay, const struct mesh_route *routes, int num,
			uint64_t now_ms)
{
	struct mesh_route others[MESH_ROUTES_MAX];
	uint64_t firsts[MESH_ROUTES_MAX];
	int i;

	for (i = 0; i < num; i++)
		firsts[i] = routes[i].hops[0];
	num = routes_find(relay, MESH_RELAYS_MAX, firsts, num, others);
	routes_take(relay, others, num, now_ms);
}

/*
 * Dials the first relay of the best route, of those over none that was lost a moment ago if that is
 * possible.
 */
MESH_HOLDS(process)
static void best_take(struct mesh_relay_try *relay, uint64_t now_ms)
{
	const struct mesh_beside *beside = &relay->beside;
	struct mesh_route routes[MESH_ROUTES_MAX];
	int num;

	if (beside->num_lost) {
		num = routes_find(relay, MESH_RELAYS_MAX, beside->relays + beside->num,
				  beside->num_lost, routes);
		routes_take(relay, routes, num, now_ms);
	}
	if (is_dialling(relay))
		return;
	num = routes_find(relay, MESH_RELAYS_MAX, NULL, 0, routes);
	if (num > 0) {
		routes_take(relay, routes, num, now_ms);
		if (!is_dialling(relay) && !is_early(relay, now_ms))
			others_take(relay, routes, num, now_ms);
	} else {
		num = neighbours_list(relay, routes, MESH_ROUTES_MAX);
		routes_take(relay, routes, num, now_ms);
	}
}

MESH_HOLDS(process)
static void routes_begin(struct mesh_relay_try *relay, uint64_t now_ms)
{
	/* The mesh may have grown since the last search; what one misses is found later. */
	if (!relay->asked)
		search(relay->process, now_ms);
	relay->asked = true;
	if (mesh_neighbours_searches(relay->process->relay->neighbours, relay->handle->node_id))
		return;
	if (relay->beside.goes_on) {
		beside_begin(relay, now_ms);
		return;
	}
	best_take(relay, now_ms);
	if (!is_dialling(relay))
		search(relay->process, now_ms);
}

/* ---- its first relay ----------------------------------------------------------------------- */

bool mesh_relay_try_is_ready(struct mesh_relay_try *relay, uint64_t now_ms)
{
	const struct mesh_peer *peer;

	mesh_process_assert_locked(relay->process);
	if (!is_dialling(relay))
		routes_begin(relay, now_ms);
	mesh_dial_look(&relay->dial, now_ms);
	peer = relay->dial.peer;
	if (mesh_dial_is_vain(&relay->dial, now_ms)) {
		mesh_relay_try_refused(relay, peer && peer->refusal ? peer->refusal
								    : MESH_REFUSAL_NO_ANSWER);
		mesh_dial_end(&relay->dial);
	}
	return relay->dial.state == MESH_DIAL_UP;
}

void mesh_relay_try_request(struct mesh_relay_try *relay, struct mesh_path *path, uint64_t now_ms)
{
	const struct mesh_route *route = &relay->route;
	struct mesh_process *process = relay->process;
	const struct mesh_comm *comm = path->comm;
	struct mesh_frame frame;

	mesh_process_assert_locked(process);
	memset(&frame, 0, sizeof(frame));
	mesh_handle_encode(relay->handle, frame.open.handle);
	frame.open.comm_key = comm->key;
	frame.open.comm = path->sink.id;
	frame.open.token = path->sink.token;
	frame.open.path = (uint8_t)(path - comm->paths);
	frame.open.num_paths = (uint8_t)comm->wanted_paths;
	frame.open.num_relays = (uint8_t)route->num_relays;
	frame.open.epoch = path->epoch;
	frame.open.job = process->relay->job;
	memcpy(frame.open.route, route->hops,
	       (size_t)route->num_relays * sizeof(frame.open.route[0]));
	memcpy(frame.open.origin, process->name, sizeof(frame.open.origin));
	path->relayed->route = *route;
	path->rdma_hops = route->rdma &&
			  relay->next.way.address.provider == MESH_PROVIDER_VERBS_RXM;
	mesh_peer_send(path->peer, &frame, MESH_FRAME_OPEN);
	relay->open_ms = now_ms;
	mesh_rank_ring_judge(process, relay->handle->node_id);
}

void mesh_relay_try_refused(struct mesh_relay_try *relay, enum mesh_refusal refusal)
{
	struct mesh_relay_tried *tried = tried_get(&relay->tried, &relay->next);

	tried->turn++;
	tried->not_before_ms = mesh_clock_ms() + MESH_RETRY_MIN_MS;
	tried->refusal = refusal;
}
