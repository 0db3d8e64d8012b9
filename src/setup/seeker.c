/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seeker.c - further and better paths for comms that exist: over NICs that join, here or at a peer;
 * over links and routes that let nothing through before; and over relays, for comms that send and
 * have lost a route, or may get a better one.
 *
 * A cable that is missing at init is a NIC without carrier at both of its ends, so neither process
 * uses it. When it joins, each process sends its NICs to its peers (NICS), and the sending end of
 * each comm tries the links that this makes possible.
 *
 * A comm that has lost its last one has a search of its own, as a connection has, until a circuit
 * is open, or the comm has ended. The comm itself waits (transport/attach.c), and may be freed
 * meanwhile.
 *
 * A comm that goes on over other paths has time: it looks for what is better than those, and for a
 * route that shares no relay with them in place of one that is lost, at once, and then ever more
 * seldom. Such looks are due at the same moments for all comms, so that one search serves them. A
 * circuit that breaks soon counts as a look in vain.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/random.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "relay/relay.h"
#include "setup/candidates.h"
#include "setup/relay_try.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "transport/comm_life.h"
#include "wire/handle.h"

/* ---- the links ------------------------------------------------------------------------------ */

/* True for a link that did not exist when the process, or the peer's, started. */
MESH_HOLDS(process)
static bool pair_is_late(const struct mesh_peer *peer, const struct mesh_path_candidate *pair)
{
	const struct mesh_process *process = peer->process;

	return process->endpoints[pair->local].nic >= process->num_lasting ||
	       peer->late_nics >> peer->nics[pair->remote].nic & 1;
}

/*
 * True if a way over the pair may be of use to a comm of this tier: it is better, or one more of
 * them. Unless neighbours have answered, most pairs of link-local addresses share no link.
 */
MESH_HOLDS(process)
static bool pair_is_of_use(const struct mesh_process *process, const struct mesh_handle *handle,
			   const struct mesh_path_choice *choice,
			   const struct mesh_path_candidate *pair, const struct mesh_way *way,
			   enum mesh_path_tier tier)
{
	if (tier == MESH_TIER_DRAINED)
		return true;
	if (tier == MESH_TIER_LINK && !choice->proven &&
	    mesh_addr_is_link_local(&handle->endpoints[pair->remote].addr))
		return false;
	return (pair->class == MESH_PATH_DIRECT || pair->class == MESH_PATH_ROUTED) &&
	       mesh_link_tier(process, mesh_way_dev(way), &way->address, way->routed) <= tier;
}

MESH_HOLDS(process)
static void pair_want(struct mesh_process *process, uint64_t process_id,
		      const struct mesh_handle *handle, const struct mesh_path_choice *choice,
		      int i, enum mesh_path_tier tier, struct mesh_comm *comm)
{
	const struct mesh_path_candidate *pair = &choice->candidates[i];
	struct mesh_way way;

	if (mesh_way_of_pair(process, handle, pair, &way) &&
	    pair_is_of_use(process, handle, choice, pair, &way, tier))
		mesh_rejoin_new(process, process_id, &way, comm);
}

void mesh_late_links_want(struct mesh_comm *comm, const struct mesh_handle *handle,
			  const struct mesh_path_choice *choice)
{
	enum mesh_path_tier tier = mesh_comm_tier(comm);
	int i;

	mesh_process_assert_locked(comm->process);
	if (handle->node_id == comm->process->node_id)
		return; /* between two ranks of one node every path is the same memory */
	for (i = 0; i < choice->num_candidates; i++)
		pair_want(comm->process, mesh_process_id_of(handle->cookie), handle, choice, i,
			  tier, comm);
}

/* The same over what leads there now. */
MESH_HOLDS(process)
static void links_find(struct mesh_comm *comm, struct mesh_handle *handle)
{
	int dev = comm->paths[0].peer->domain->dev;
	struct mesh_path_choice choice;

	mesh_candidates_find(comm->process, dev, handle, &choice);
	mesh_late_links_want(comm, handle, &choice);
}

/* Tries the links to the peer's process over which its comms may get a path. */
MESH_HOLDS(process)
static void links_try(const struct mesh_peer *peer)
{
	struct mesh_handle handle = {
		.num_endpoints = peer->num_nics,
		.total_nics = (uint8_t)peer->num_nics,
		.control_port = peer->control_port,
		.cookie = peer->process_id,
	};
	struct mesh_path_choice choice;
	int i;

	memcpy(handle.endpoints, peer->nics, (size_t)peer->num_nics * sizeof(*peer->nics));
	mesh_candidates_find(peer->process, peer->domain->dev, &handle, &choice);
	for (i = 0; i < choice.num_candidates; i++) {
		if (pair_is_late(peer, &choice.candidates[i]))
			pair_want(peer->process, peer->process_id, &handle, &choice, i,
				  MESH_TIER_ROUTED_RDMA, NULL);
	}
}

/* True if the peer's process, on another node, lives as far as we know, and links may be late. */
MESH_HOLDS(process)
static bool is_useful(const struct mesh_peer *peer)
{
	const struct mesh_process *process = peer->process;

	return (peer->late_nics || process->num_devs > process->num_lasting) && peer->num_nics &&
	       !peer->incoming && !peer->over && peer->node_id != process->node_id &&
	       (peer->state == MESH_PEER_UP ||
		(peer->state == MESH_PEER_LOST && !LIST_EMPTY(&peer->user_list)));
}

/* Tries links, if something has changed since the last call. */
MESH_HOLDS(process)
static void late_nics_tick(struct mesh_process *process)
{
	struct mesh_peer *peer;

	if (!atomic_exchange(&process->late_nics, false))
		return;
	LIST_FOREACH(peer, &process->peers, entry) {
		if (is_useful(peer))
			links_try(peer);
	}
}

/* ---- routes for a comm ---------------------------------------------------------------------- */

struct mesh_seeker {
	LIST_ENTRY(mesh_seeker) entry; /* setup->seekers; all under process->lock */
	struct mesh_timer timer;
	struct mesh_process *process;
	struct mesh_comm *comm; /* whose seeker this is; NULL: it was freed */
	struct mesh_handle handle;
	struct mesh_relay_try *relay; /* owned; beside.goes_on: the comm is not cut */
	/* One of the comm, while that lives, which waits for the answer to OPEN; or NULL. */
	struct mesh_path *path;
	/* It goes on: since when this look does, or 0; when the last one has ended. */
	uint64_t look_ms, looked_ms;
	/* Of looks while none of its routes is lost; cut: of those for ways without a relay. */
	struct mesh_retry better;
};

MESH_HOLDS(process)
static void seeker_free(struct mesh_seeker *seeker)
{
	if (seeker->comm)
		seeker->comm->seeker = NULL;
	mesh_engine_timer_cancel(&seeker->process->engine, &seeker->timer);
	LIST_REMOVE(seeker, entry);
	mesh_relay_try_close(seeker->relay);
	free(seeker);
}

MESH_HOLDS(process)
static bool wants_route(struct mesh_comm *comm)
{
	return mesh_comm_lacks_route(comm) || mesh_comm_lacks_path(comm);
}

/* What looks for a route of the comm, or NULL. */
MESH_HOLDS(process)
static struct mesh_seeker *seeker_of(const struct mesh_comm *comm)
{
	return comm->seeker ? mesh_container_of(comm->seeker, struct mesh_seeker, comm) : NULL;
}

/* ---- when ---------------------------------------------------------------------------------- */

/*
 * True for a path that is down and has led through relays: one that has led to the peer itself
 * waits for its link (transport/rejoin.c).
 */
MESH_HOLDS(process)
static bool may_be_rerouted(const struct mesh_path *path)
{
	return mesh_path_has_relay(path) && mesh_path_is(path, MESH_PATH_DOWN);
}

/* True if a path of the comm has lost its route, or has left it. */
MESH_HOLDS(process)
static bool one_rests(const struct mesh_comm *comm)
{
	int i = 0;

	while (i < comm->num_paths && !may_be_rerouted(&comm->paths[i]))
		i++;
	return i < comm->num_paths;
}

/* When the first of the comm's lost paths may be looked for, or, without one, what is better. */
MESH_HOLDS(process)
static uint64_t due_ms(struct mesh_seeker *seeker, uint64_t now_ms)
{
	const struct mesh_comm *comm = seeker->comm;
	uint64_t first_ms = UINT64_MAX, one_ms;
	int i;

	if (!one_rests(comm))
		return mesh_retry_due_ms(&seeker->better, now_ms);
	for (i = 0; i < comm->num_paths; i++) {
		if (!may_be_rerouted(&comm->paths[i]))
			continue;
		one_ms = mesh_retry_due_ms(&comm->paths[i].relayed->retry, now_ms);
		if (one_ms < first_ms)
			first_ms = one_ms;
	}
	return first_ms;
}

/*
 * True while the comm, which has its paths, may get further routes that are as good as its own, one
 * after the other: until looks for them have been in vain for some seconds. One place is a link's.
 */
MESH_HOLDS(process)
static bool lacks_equals(const struct mesh_seeker *seeker)
{
	const struct mesh_comm *comm = seeker->comm;
	int i, in_use = 0;

	for (i = 0; i < comm->num_paths; i++)
		in_use += mesh_path_has_relay(&comm->paths[i]);
	return seeker->relay->beside.goes_on && !one_rests(comm) &&
	       seeker->better.pause_ms < MESH_DIAL_MS && comm->num_paths + 1 < comm->max_paths &&
	       in_use < (int)comm->process->config.max_paths;
}

/* ---- attempts ------------------------------------------------------------------------------ */

/*
 * Begins with the first lost path that may be looked for, or with one that the comm did not have.
 * Returns as mesh_attach_begin() does.
 */
MESH_HOLDS(process)
static int path_begin(struct mesh_seeker *seeker, struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_peer *relay = seeker->relay->dial.peer;
	bool has_one = false, fits = seeker->relay->better || lacks_equals(seeker);
	struct mesh_path *path;
	int i, ret;

	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		has_one |= mesh_path_has_relay(path);
		if (!may_be_rerouted(path) ||
		    (seeker->relay->beside.goes_on &&
		     now_ms < mesh_retry_due_ms(&path->relayed->retry, now_ms)))
			continue;
		ret = mesh_attach_begin(path, relay, true);
		if (ret != -EAGAIN) {
			seeker->path = path;
			return ret;
		}
	}
	if (has_one && !fits)
		return -EAGAIN;
	ret = mesh_attach_late(comm, relay, true, &path);
	if (!ret)
		seeker->path = path;
	return ret;
}

MESH_HOLDS(process)
static void look_end(struct mesh_seeker *seeker, uint64_t now_ms)
{
	mesh_dial_end(&seeker->relay->dial);
	seeker->path = NULL;
	seeker->look_ms = 0;
	seeker->looked_ms = now_ms;
}

/* The attempt was in vain. A comm without any path tries again as soon as a relay may be asked. */
MESH_HOLDS(process)
static void attempt_fail(struct mesh_seeker *seeker, enum mesh_refusal refusal, uint64_t now_ms)
{
	if (!mesh_comm_lacks_route(seeker->path->comm)) {
		mesh_retry_later(&seeker->path->relayed->retry, now_ms);
		mesh_retry_later(&seeker->better, now_ms);
	}
	mesh_relay_try_refused(seeker->relay, refusal); /* another one may have a way there */
	look_end(seeker, now_ms);
}

MESH_HOLDS(process)
static void attempt_begin(struct mesh_seeker *seeker, struct mesh_comm *comm, uint64_t now_ms)
{
	int ret;

	if (!mesh_relay_try_is_ready(seeker->relay, now_ms))
		return;
	ret = path_begin(seeker, comm, now_ms);
	if (!ret)
		mesh_relay_try_request(seeker->relay, seeker->path, now_ms);
	else if (seeker->path)
		attempt_fail(seeker, MESH_REFUSAL_RESOURCES, now_ms);
	else if (ret != -EAGAIN)
		mesh_dial_end(&seeker->relay->dial); /* not now, or no room: another look may */
}

/* A comm without any path: what else may lead there is tried, too. */
MESH_HOLDS(process)
static void links_want(struct mesh_seeker *seeker, struct mesh_comm *comm, uint64_t now_ms)
{
	if (now_ms < seeker->better.not_before_ms)
		return;
	if (seeker->better.pause_ms)
		links_find(comm, &seeker->handle);
	mesh_retry_later(&seeker->better, now_ms);
}

MESH_HOLDS(process)
static void attempt_look(struct mesh_seeker *seeker, uint64_t now_ms)
{
	struct mesh_path *path = seeker->path;

	if (mesh_path_is(path, MESH_PATH_UP)) {
		path->relayed->retry.up_ms = now_ms;
		seeker->better = (struct mesh_retry){0};
		look_end(seeker, now_ms);
	} else if (!mesh_path_is(path, MESH_PATH_JOINING)) {
		attempt_fail(seeker, path->refusal ? path->refusal : MESH_REFUSAL_BROKEN, now_ms);
	} else if (mesh_clock_elapsed_ms(seeker->relay->open_ms, now_ms) >= MESH_OPEN_ANSWER_MS) {
		mesh_path_down(path, MESH_PATH_JOINING);
		attempt_fail(seeker, MESH_REFUSAL_NO_ANSWER, now_ms);
	}
}

/* ---- beside other paths -------------------------------------------------------------------- */

/* What would be better for a comm than what it has, which is of this tier. */
MESH_HOLDS(process)
static enum mesh_better better_for(const struct mesh_comm *comm, enum mesh_path_tier tier)
{
	switch (tier) {
	case MESH_TIER_ROUTED:
	case MESH_TIER_RELAYS:
		return comm->may_rdma ? MESH_BETTER_RDMA : MESH_BETTER_NONE;
	case MESH_TIER_RESERVE:
		return MESH_BETTER_ANY;
	default:
		return MESH_BETTER_NONE;
	}
}

/* Adds the relays that the comm has lost a moment ago. */
MESH_HOLDS(process)
static void lost_learn(const struct mesh_comm *comm, struct mesh_beside *beside, uint64_t now_ms)
{
	const struct mesh_path_relayed *relayed;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		relayed = comm->paths[i].relayed;
		if (relayed && relayed->lost_node &&
		    mesh_clock_elapsed_ms(relayed->lost_ms, now_ms) < MESH_DIAL_MS)
			beside->relays[beside->num + beside->num_lost++] = relayed->lost_node;
	}
}

/* What the comm goes on over, if it is not cut, and what it has lost. */
MESH_HOLDS(process)
static void beside_learn(const struct mesh_seeker *seeker, uint64_t now_ms)
{
	struct mesh_beside *beside = &seeker->relay->beside;
	const struct mesh_comm *comm = seeker->comm;
	const struct mesh_route *route;
	int i, k;

	*beside = (struct mesh_beside){.goes_on = beside->goes_on};
	for (i = 0; i < comm->num_paths; i++) {
		if (!mesh_path_num_relays(&comm->paths[i]))
			continue;
		route = &comm->paths[i].relayed->route;
		for (k = 0; k < route->num_relays; k++)
			beside->relays[beside->num++] = route->hops[k];
		if (beside->longest < route->num_relays)
			beside->longest = route->num_relays;
		beside->leaves |= route->leaves;
		beside->rdma |= comm->paths[i].rdma_hops;
	}
	if (!one_rests(comm) && !lacks_equals(seeker))
		beside->num = 0;
	lost_learn(comm, beside, now_ms);
}

/* No route is there now: the next look is later. */
MESH_HOLDS(process)
static void beside_end(struct mesh_seeker *seeker, const struct mesh_comm *comm, uint64_t now_ms)
{
	int i;

	mesh_retry_later(&seeker->better, now_ms);
	for (i = 0; i < comm->num_paths; i++) {
		if (may_be_rerouted(&comm->paths[i]) &&
		    now_ms >= mesh_retry_due_ms(&comm->paths[i].relayed->retry, now_ms))
			mesh_retry_later(&comm->paths[i].relayed->retry, now_ms);
	}
	look_end(seeker, now_ms);
}

/* Looks for what is better, or beside what the comm goes on over. Returns when to look again. */
MESH_HOLDS(process)
static uint64_t beside_look(struct mesh_seeker *seeker, struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_beside *beside = &seeker->relay->beside;
	enum mesh_path_tier tier = mesh_comm_tier(comm);
	uint64_t next_ms = due_ms(seeker, now_ms);
	bool wanted;

	if (!seeker->look_ms && now_ms < next_ms)
		return next_ms < now_ms + MESH_RETRY_MAX_MS ? next_ms : now_ms + MESH_RETRY_MAX_MS;
	if (!seeker->look_ms) {
		mesh_relay_try_again(seeker->relay);
		seeker->look_ms = now_ms;
		if (tier != MESH_TIER_DRAINED)
			links_find(comm, &seeker->handle);
	}
	beside_learn(seeker, now_ms);
	beside->better = better_for(comm, tier);
	wanted = beside->better || beside->num || beside->longest > 1;
	if (wanted)
		attempt_begin(seeker, comm, now_ms);
	if (!seeker->path && seeker->look_ms &&
	    (seeker->relay->vain || !wanted ||
	     mesh_clock_elapsed_ms(seeker->look_ms, now_ms) >= MESH_DIAL_MS))
		beside_end(seeker, comm, now_ms);
	return now_ms + MESH_ENGINE_LOOK_MS;
}

/* ---- looks --------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void search_set(struct mesh_seeker *seeker, bool goes_on)
{
	if (seeker->relay->beside.goes_on == goes_on)
		return;
	mesh_relay_try_again(seeker->relay);
	seeker->relay->beside.goes_on = goes_on;
	seeker->better = (struct mesh_retry){0};
	seeker->look_ms = 0;
}

/* Looks for what the comm wants now. Returns when to look again. */
MESH_HOLDS(process)
static uint64_t route_look(struct mesh_seeker *seeker, struct mesh_comm *comm, uint64_t now_ms)
{
	if (!mesh_comm_lacks_route(comm))
		return beside_look(seeker, comm, now_ms);
	beside_learn(seeker, now_ms);
	attempt_begin(seeker, comm, now_ms);
	return now_ms + MESH_ENGINE_LOOK_MS;
}

MESH_HOLDS(process)
static void seeker_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_seeker *seeker = mesh_container_of(timer, struct mesh_seeker, timer);
	struct mesh_comm *comm = seeker->comm;
	uint64_t next_ms = now_ms + MESH_ENGINE_LOOK_MS;

	if (comm && seeker->path)
		attempt_look(seeker, now_ms);
	if (!comm || !wants_route(comm)) {
		if (comm && seeker->path && mesh_path_is(seeker->path, MESH_PATH_JOINING))
			mesh_path_down(seeker->path, MESH_PATH_JOINING);
		seeker_free(seeker);
		return;
	}
	search_set(seeker, !mesh_comm_lacks_route(comm));
	if (mesh_comm_lacks_route(comm))
		links_want(seeker, comm, now_ms);
	if (!seeker->path)
		next_ms = route_look(seeker, comm, now_ms);
	mesh_engine_timer_set(&seeker->process->engine, timer, next_ms);
}

/* Without memory for it the comm ends with its wait, or goes on without the path. */
MESH_HOLDS(process)
static void seeker_make(struct mesh_setup *setup, struct mesh_comm *comm)
{
	struct mesh_seeker *seeker = calloc(1, sizeof(*seeker));

	if (!seeker)
		return;
	seeker->process = comm->process;
	seeker->comm = comm;
	if (mesh_handle_decode(comm->send.handle, &seeker->handle) ||
	    mesh_relay_try_open(comm->process, &seeker->handle, &seeker->relay)) {
		free(seeker);
		return;
	}
	seeker->relay->rdma_only = !comm->reorders;
	seeker->timer.expired = seeker_expired;
	comm->seeker = &seeker->comm;
	LIST_INSERT_HEAD(&setup->seekers, seeker, entry);
	mesh_engine_timer_set(&comm->process->engine, &seeker->timer, mesh_clock_ms());
}

void mesh_seekers_tick(struct mesh_process *process)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_seeker *seeker;
	struct mesh_comm *comm;

	mesh_process_assert_locked(process);
	late_nics_tick(process);
	if (!atomic_load_explicit(&process->routeless, memory_order_relaxed) ||
	    !atomic_exchange(&process->routeless, false))
		return;
	mesh_rejoins_go_on(process);
	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (!wants_route(comm))
			continue;
		seeker = seeker_of(comm);
		if (!seeker)
			seeker_make(setup, comm);
		else
			mesh_engine_timer_set(&process->engine, &seeker->timer, now_ms);
	}
}

/* True if a path that went over this NIC is lost. */
MESH_HOLDS(process)
static bool carrier_makes_due(const struct mesh_comm *comm, const struct mesh_domain *domain)
{
	bool due = false;
	int i;

	for (i = 0; i < comm->num_paths; i++) {
		if (comm->paths[i].peer->domain != domain || !may_be_rerouted(&comm->paths[i]))
			continue;
		comm->paths[i].relayed->retry.not_before_ms = 0;
		due = true;
	}
	return due;
}

void mesh_seekers_hasten(struct mesh_process *process, const struct mesh_domain *domain)
{
	struct mesh_seeker *seeker;
	struct mesh_comm *comm;
	uint64_t now_ms = mesh_clock_ms();

	mesh_process_assert_locked(process);
	LIST_FOREACH(seeker, &mesh_setup_of(process)->seekers, entry) {
		comm = seeker->comm;
		if (!comm ||
		    mesh_clock_elapsed_ms(seeker->looked_ms, now_ms) < MESH_SEARCH_AGAIN_MS ||
		    !carrier_makes_due(comm, domain))
			continue;
		mesh_engine_timer_set(&process->engine, &seeker->timer, now_ms);
	}
}

void mesh_seekers_close(struct mesh_process *process)
{
	struct mesh_seeker *seeker;

	mesh_process_assert_locked(process);
	while ((seeker = LIST_FIRST(&mesh_setup_of(process)->seekers)))
		seeker_free(seeker);
}
