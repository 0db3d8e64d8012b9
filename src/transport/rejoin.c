/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rejoin.c - a path that was lost joins its comms again when its link works again.
 *
 * One end of each comm connects: the sending one. It tries the links that its comms have lost, one
 * attempt after the other, until one succeeds. When the new peer is up, it is asked for each comm's
 * path (attach.c). How nothing of the path's earlier life is on the way: control/peer_life.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/random.h"
#include "base/retry.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "control/process.h"
#include "fabric/flow.h"
#include "transport/comm_life.h"

/*
 * Between two looks at an attempt: this part of the time that the link is away, within bounds; and
 * several within the time that a comm waits, because they find that the process is stopped.
 */
#define LOOK_PART 64
#define LOOKS 4
/* An attempt that got no answer for so many looks is ended: the kernel would wait ever longer. */
#define ATTEMPT_LOOKS 2
/* A link over which no large write has arrived in so many lives is not tried at once. */
#define FUTILE_LIVES 3

/* A link that a comm has lost; it is remembered until it has held for some time. */
struct mesh_rejoin {
	LIST_ENTRY(mesh_rejoin) entry; /* process->rejoins */
	struct mesh_timer timer;
	struct mesh_process *process;
	uint64_t process_id; /* of the process there */
	struct mesh_way way;
	bool is_new;	       /* comms that never had a path over it may get one */
	struct mesh_dial dial; /* the attempt, or the link that works again */
	int speed_mbps;	       /* as the latest attempt found; 0: unknown */
	uint64_t lost_ms;      /* when it was lost last */
	uint32_t losses;
	struct mesh_retry retry; /* of the first attempt after a loss */
	uint32_t futile_lives;	 /* its last lives: large writes were posted, and none arrived */
};

/* ---- the links ----------------------------------------------------------------------------- */

/* Ours on this link; NULL: it is not open. */
static const struct mesh_domain *domain_of(const struct mesh_rejoin *rejoin)
{
	return rejoin->process->domains[rejoin->way.index];
}

/* True if the peer is at the other end of this link. */
MESH_HOLDS(process)
static bool peer_is_links(const struct mesh_peer *peer, const struct mesh_rejoin *rejoin)
{
	return peer->process_id == rejoin->process_id &&
	       mesh_peer_is_at(peer, domain_of(rejoin), &rejoin->way.address.addr);
}

static void rejoin_expired(struct mesh_timer *timer, uint64_t now_ms);

/* The one of the link to this process. NULL if memory is short. */
MESH_HOLDS(process)
static struct mesh_rejoin *rejoin_get(struct mesh_process *process, uint64_t process_id,
				      const struct mesh_way *way)
{
	struct mesh_rejoin *rejoin;

	LIST_FOREACH(rejoin, &process->rejoins, entry) {
		if (rejoin->process_id == process_id && rejoin->way.index == way->index &&
		    mesh_addr_equal(&rejoin->way.address.addr, &way->address.addr))
			return rejoin;
	}
	rejoin = calloc(1, sizeof(*rejoin));
	if (!rejoin)
		return NULL;
	rejoin->timer.expired = rejoin_expired;
	rejoin->process = process;
	rejoin->process_id = process_id;
	rejoin->lost_ms = mesh_clock_ms();
	rejoin->way = *way;
	rejoin->way.listen_id = 0;
	rejoin->way.needs_carrier = false; /* the kernel may say late that a cable is back */
	LIST_INSERT_HEAD(&process->rejoins, rejoin, entry);
	return rejoin;
}

MESH_HOLDS(process)
static void rejoin_free(struct mesh_rejoin *rejoin)
{
	mesh_dial_end(&rejoin->dial);
	mesh_engine_timer_cancel(&rejoin->process->engine, &rejoin->timer);
	LIST_REMOVE(rejoin, entry);
	free(rejoin);
}

void mesh_rejoins_close(struct mesh_process *process)
{
	struct mesh_rejoin *rejoin;

	mesh_process_assert_locked(process);
	while ((rejoin = LIST_FIRST(&process->rejoins)))
		rejoin_free(rejoin);
}

/* A comm without any path does not wait for a link to be steady, unless it is of no use. */
MESH_HOLDS(process)
static bool may_wait(const struct mesh_rejoin *rejoin, const struct mesh_comm *comm)
{
	return !mesh_comm_is_cut(comm) || rejoin->futile_lives >= FUTILE_LIVES;
}

/*
 * All comms of a link lose it at the same time. The first attempt comes after a pause from the
 * second loss on: a link that keeps failing only disturbs the others.
 */
MESH_HOLDS(process)
static void loss_note(struct mesh_rejoin *rejoin, const struct mesh_path *path)
{
	uint64_t lost_ms = path->peer->state_ms;

	if (rejoin->losses && rejoin->lost_ms == lost_ms)
		return;
	if (mesh_path_is_futile(path))
		rejoin->futile_lives++;
	else if (mesh_flow_has_carried(path->flow))
		rejoin->futile_lives = 0;
	mesh_retry_lost(&rejoin->retry, !rejoin->futile_lives, lost_ms);
	rejoin->losses++;
	rejoin->lost_ms = lost_ms;
}

void mesh_rejoin_want(struct mesh_path *path)
{
	struct mesh_process *process = path->comm->process;
	const struct mesh_peer *peer = path->peer;
	const struct mesh_way way = {
		.index = mesh_process_index_of(process, peer->domain),
		.address = peer->address,
		.control_port = peer->control_port,
		.cookie = peer->process_id,
		.routed = peer->routed,
	};
	struct mesh_rejoin *rejoin = rejoin_get(process, peer->process_id, &way);

	mesh_process_assert_locked(process);
	if (!rejoin)
		return; /* without memory for it the path stays down */
	loss_note(rejoin, path);
	mesh_engine_timer_set(&process->engine, &rejoin->timer, rejoin->retry.not_before_ms);
	/* The comm's other links may wait to be steady, and it has had no path since just now. */
	LIST_FOREACH(rejoin, &process->rejoins, entry) {
		if (rejoin->process_id == peer->process_id && !may_wait(rejoin, path->comm))
			mesh_engine_timer_set(&process->engine, &rejoin->timer, 0);
	}
}

/* ---- attempts ------------------------------------------------------------------------------ */

/*
 * True for one that is down, or on its way; at a receiving end, and of a comm that ends, only if
 * the comm has no other.
 */
MESH_HOLDS(process)
static bool path_waits(const struct mesh_path *path)
{
	struct mesh_comm *comm = path->comm;
	bool waits;

	mesh_comm_lock(comm);
	waits = path->state == MESH_PATH_DOWN || path->state == MESH_PATH_JOINING;
	if (!comm->sending)
		waits |= path->state == MESH_PATH_SUSPECT;
	if (!comm->sending || comm->closing || comm->peer_end != MESH_END_OPEN)
		waits &= !comm->num_up;
	mesh_comm_unlock(comm);
	return waits;
}

/* The next path that waits for the link; @previous: the last one, or NULL. */
MESH_HOLDS(process)
static struct mesh_path *path_next(const struct mesh_rejoin *rejoin,
				   const struct mesh_path *previous)
{
	const struct mesh_process *process = rejoin->process;
	struct mesh_comm *comm = previous ? previous->comm : mesh_comm_next(process, NULL);
	int i = previous ? (int)(previous - comm->paths) + 1 : 0;

	for (; comm; comm = mesh_comm_next(process, comm), i = 0) {
		if (comm->error || comm->opener)
			continue; /* one that NCCL does not have yet may be withdrawn */
		for (; i < comm->num_paths; i++) {
			if (!mesh_path_has_relay(&comm->paths[i]) &&
			    peer_is_links(comm->paths[i].peer, rejoin) &&
			    path_waits(&comm->paths[i]))
				return &comm->paths[i];
		}
	}
	return NULL;
}

/* Of a path over the link. */
MESH_HOLDS(process)
static enum mesh_path_tier tier_of(const struct mesh_rejoin *rejoin)
{
	return mesh_link_tier(rejoin->process, mesh_way_dev(&rejoin->way), &rejoin->way.address,
			      rejoin->way.routed);
}

/* True if it sends to the link's process, and its paths, and what else it needs, allow the link. */
MESH_HOLDS(process)
static bool link_serves(const struct mesh_rejoin *rejoin, struct mesh_comm *comm)
{
	const struct mesh_way *way = &rejoin->way;
	enum mesh_path_tier tier = tier_of(rejoin);

	return comm->sending && mesh_process_id_of(comm->cookie) == rejoin->process_id &&
	       tier <= mesh_comm_tier(comm) &&
	       (way->address.provider != MESH_PROVIDER_TCP || comm->reorders) &&
	       comm->eager_limit <= mesh_process_eager_limit(comm->process, way->address.provider);
}

/*
 * True if the comm has no other link on the NICs of this one, and may have one more. A lost path
 * does not count: the address of one of its ends may have changed.
 */
MESH_HOLDS(process)
static bool link_is_apart(const struct mesh_rejoin *rejoin, const struct mesh_comm *comm)
{
	int i, num = (int)rejoin->process->config.max_paths;
	enum mesh_path_tier tier = tier_of(rejoin);
	const struct mesh_path *path;
	const struct mesh_peer *peer;

	for (i = 0; i < comm->num_paths; i++) {
		path = &comm->paths[i];
		peer = path->peer;
		if (mesh_path_has_relay(path))
			continue; /* it is left, or rests, beside the link */
		if (mesh_peer_is_at(peer, domain_of(rejoin), &rejoin->way.address.addr))
			return false;
		if (peer->state == MESH_PEER_LOST ||
		    (path->tier > tier && path->tier != MESH_TIER_DRAINED))
			continue; /* the latter rests beside the link */
		if (!--num || peer->domain == domain_of(rejoin) ||
		    mesh_addr_equal(&peer->address.addr, &rejoin->way.address.addr))
			return false;
		if (rejoin->speed_mbps &&
		    rejoin->speed_mbps < mesh_peer_speed_mbps(peer) / MESH_PATH_SPEED_RATIO_MAX)
			return false;
	}
	return true;
}

/* True if the comm may get a path over the link that it never had. */
MESH_HOLDS(process)
static bool may_grow(const struct mesh_rejoin *rejoin, struct mesh_comm *comm)
{
	bool closing;

	mesh_comm_lock(comm);
	closing = comm->closing || comm->error;
	mesh_comm_unlock(comm);
	return !closing && !comm->opener && comm->num_paths >= comm->wanted_paths &&
	       mesh_attach_has_room(comm) && link_serves(rejoin, comm) &&
	       link_is_apart(rejoin, comm);
}

/* The next of these comms; @previous: as path_next(). */
MESH_HOLDS(process)
static struct mesh_comm *grower_next(const struct mesh_rejoin *rejoin, struct mesh_comm *previous)
{
	struct mesh_comm *comm = previous ? LIST_NEXT(previous, entry)
					  : LIST_FIRST(&rejoin->process->comms);

	while (rejoin->is_new && comm && !may_grow(rejoin, comm))
		comm = LIST_NEXT(comm, entry);
	return rejoin->is_new ? comm : NULL;
}

void mesh_rejoin_new(struct mesh_process *process, uint64_t process_id, const struct mesh_way *way,
		     struct mesh_comm *comm)
{
	struct mesh_rejoin *rejoin,
		probe = {.process = process, .process_id = process_id, .way = *way, .is_new = true};

	mesh_process_assert_locked(process);
	if (comm ? !may_grow(&probe, comm) : !grower_next(&probe, NULL))
		return;
	rejoin = rejoin_get(process, process_id, way);
	if (!rejoin)
		return; /* the comms do without it */
	if (way->cookie != process_id)
		rejoin->way.cookie = way->cookie; /* it needs no connection that we have */
	rejoin->is_new = true;
	mesh_engine_timer_set(&process->engine, &rejoin->timer, 0);
}

/* True if nothing that waits for the link is in need of it now. */
MESH_HOLDS(process)
static bool all_may_wait(const struct mesh_rejoin *rejoin)
{
	const struct mesh_path *path = NULL;

	while ((path = path_next(rejoin, path)) && may_wait(rejoin, path->comm))
		continue;
	return !path;
}

MESH_HOLDS(process)
static void paths_attach(const struct mesh_rejoin *rejoin)
{
	struct mesh_path *path = NULL, *late;
	struct mesh_comm *comm = NULL;

	while ((path = path_next(rejoin, path))) {
		if (path->comm->sending)
			mesh_attach_begin(path, rejoin->dial.peer, false);
		else
			mesh_attach_ask(path, rejoin->dial.peer);
	}
	while ((comm = grower_next(rejoin, comm)))
		mesh_attach_late(comm, rejoin->dial.peer, false, &late);
}

MESH_HOLDS(process)
static void attempt_look(struct mesh_rejoin *rejoin, uint64_t look_ms, uint64_t now_ms)
{
	struct mesh_dial *dial = &rejoin->dial;
	struct mesh_peer *peer = dial->peer;

	if (mesh_dial_look(dial, now_ms) == MESH_DIAL_DEAD ||
	    (peer && peer->state == MESH_PEER_CONNECTING &&
	     mesh_clock_elapsed_ms(peer->state_ms, now_ms) >= ATTEMPT_LOOKS * look_ms))
		mesh_dial_end(dial);
	if (dial->state == MESH_DIAL_REST && rejoin->way.control_port)
		mesh_dial_begin(dial, rejoin->process, &rejoin->way, now_ms);
	peer = dial->peer;
	if (!peer)
		return; /* no carrier, or no memory now */
	rejoin->speed_mbps = mesh_peer_speed_mbps(peer);
	if (mesh_dial_look(dial, now_ms) == MESH_DIAL_UP && peer->process_id == rejoin->process_id)
		paths_attach(rejoin);
	else if (peer->state == MESH_PEER_LOST && look_ms > MESH_RETRY_MIN_MS &&
		 !path_next(rejoin, NULL))
		mesh_dial_end(dial); /* nobody is in need: until the next look */
}

/* True if the attempts over this link are refused, or none is made any more, or can arrive. */
MESH_HOLDS(process)
static bool link_refuses(const struct mesh_rejoin *rejoin, uint64_t now_ms)
{
	const struct mesh_peer *peer = rejoin->dial.peer;
	uint64_t since_ms = peer ? peer->first_refused_ms : rejoin->lost_ms;

	if (rejoin->process->nics_away >> mesh_way_dev(&rejoin->way) & 1)
		return true;
	return since_ms && mesh_clock_elapsed_ms(since_ms, now_ms) >= MESH_REFUSED_MS;
}

/* True if each link to the process refuses; @lost_ms: when one of them was up last. */
MESH_HOLDS(process)
static bool process_refuses(const struct mesh_rejoin *rejoin, uint64_t lost_ms, uint64_t now_ms)
{
	const uint64_t since_ms = rejoin->dial.peer->first_refused_ms;
	const struct mesh_rejoin *one;

	if (!since_ms || mesh_clock_elapsed_ms(since_ms, now_ms) < MESH_REFUSED_MS ||
	    mesh_clock_elapsed_ms(lost_ms, now_ms) < MESH_REFUSED_MS)
		return false;
	LIST_FOREACH(one, &rejoin->process->rejoins, entry) {
		if (one->process_id == rejoin->process_id && one->losses &&
		    !link_refuses(one, now_ms))
			return false; /* one that never was up says nothing */
	}
	return true;
}

/* True if a comm with a path over @peer to its other end is not cut off. */
MESH_HOLDS(process)
static bool comms_go_on(const struct mesh_peer *peer)
{
	struct mesh_peer_user *user;
	const struct mesh_path *path;

	LIST_FOREACH(user, &peer->user_list, entry) {
		path = mesh_path_if_user(user);
		if (path && !mesh_path_has_relay(path) && !path->comm->error &&
		    !mesh_comm_is_cut(path->comm))
			return true;
	}
	return false;
}

/* True if no process, or another one, answers where the link's process was. */
MESH_HOLDS(process)
static bool process_is_gone(const struct mesh_rejoin *rejoin, const struct mesh_peer *lost,
			    uint64_t now_ms)
{
	const struct mesh_peer *peer = rejoin->dial.peer;
	struct mesh_peer *other = NULL;
	uint64_t lost_ms = 0;

	if (!peer)
		return false;
	while ((other = mesh_peer_of_process(lost, other))) {
		if (other->state == MESH_PEER_UP || comms_go_on(other))
			return false; /* a relay reports the end of the process */
		if (other->state == MESH_PEER_LOST && lost_ms < other->state_ms)
			lost_ms = other->state_ms;
	}
	/* A connection that shares the attempt may have asked for a listener that is closed. */
	if ((peer->refusal == MESH_REFUSAL_COOKIE && peer->cookie == rejoin->way.cookie) ||
	    (peer->state == MESH_PEER_UP && peer->process_id != rejoin->process_id))
		return true;
	return process_refuses(rejoin, lost_ms, now_ms);
}

/* The other end has answered: what waits for the link has waited for a path since now. */
MESH_HOLDS(process)
static void answer_note(const struct mesh_rejoin *rejoin, uint64_t now_ms)
{
	struct mesh_path *path = NULL;

	while ((path = path_next(rejoin, path))) {
		if (path->comm->routeless_ms)
			path->comm->routeless_ms = now_ms;
	}
}

MESH_HOLDS(process)
static uint64_t look_pause_ms(const struct mesh_rejoin *rejoin, uint64_t now_ms)
{
	uint64_t most_ms = rejoin->process->config.recovery_timeout_s * 1000 / LOOKS;
	uint64_t pause_ms = mesh_clock_elapsed_ms(rejoin->lost_ms, now_ms) / LOOK_PART;

	if (most_ms > MESH_RETRY_MAX_MS)
		most_ms = MESH_RETRY_MAX_MS;
	if (pause_ms > most_ms)
		pause_ms = most_ms;
	return pause_ms > MESH_RETRY_MIN_MS ? pause_ms : MESH_RETRY_MIN_MS;
}

MESH_HOLDS(process)
static void rejoin_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_rejoin *rejoin = mesh_container_of(timer, struct mesh_rejoin, timer);
	struct mesh_path *path;
	const struct mesh_peer *peer;
	struct mesh_engine *engine = &rejoin->process->engine;
	uint64_t look_ms = look_pause_ms(rejoin, now_ms);

	/*
	 * Its kernel has taken the connection, and no HELLO has come: the process is stopped.
	 * Nothing fails because of that, however long it takes.
	 */
	if (rejoin->dial.peer && rejoin->dial.peer->state == MESH_PEER_HELLO)
		answer_note(rejoin, now_ms);
	path = path_next(rejoin, NULL);
	if (now_ms < rejoin->retry.not_before_ms && path && all_may_wait(rejoin)) {
		mesh_engine_timer_set(engine, timer, rejoin->retry.not_before_ms);
		return;
	}
	if (path && process_is_gone(rejoin, path->peer, now_ms)) {
		mesh_peer_process_ended(path->peer,
					"its process has ended, or all of its connections with "
					"this one have");
		path = NULL;
	}
	if (!path && !grower_next(rejoin, NULL)) {
		mesh_dial_end(&rejoin->dial);
		if (mesh_clock_elapsed_ms(rejoin->lost_ms, now_ms) >= MESH_RETRY_STEADY_MS &&
		    !mesh_process_is_known(rejoin->process, rejoin->process_id))
			rejoin_free(rejoin);
		else
			mesh_engine_timer_set(engine, timer, now_ms + MESH_RETRY_MAX_MS);
		return;
	}
	attempt_look(rejoin, look_ms, now_ms);
	peer = rejoin->dial.peer;
	if (peer && peer->state == MESH_PEER_LOST && !peer->refusal && peer->retry_ms > now_ms)
		look_ms = peer->retry_ms - now_ms; /* the dial tries again then */
	mesh_engine_timer_set(engine, timer, now_ms + look_ms);
}

void mesh_rejoins_go_on(struct mesh_process *process)
{
	struct mesh_rejoin *rejoin;

	mesh_process_assert_locked(process);
	LIST_FOREACH(rejoin, &process->rejoins, entry) {
		if (rejoin->dial.state == MESH_DIAL_UP)
			mesh_engine_timer_set(&process->engine, &rejoin->timer, 0);
	}
}

/* Has the next look begin another attempt, if this one waits, or does not come forward. */
MESH_HOLDS(process)
static void attempt_renew(struct mesh_rejoin *rejoin)
{
	const struct mesh_peer *peer = rejoin->dial.peer;

	if (peer &&
	    (peer->state == MESH_PEER_CONNECTING || peer->state == MESH_PEER_LOST ||
	     (peer->state < MESH_PEER_UP &&
	      mesh_clock_elapsed_ms(peer->state_ms, mesh_clock_ms()) >= MESH_LINK_QUIET_MS)))
		mesh_dial_end(&rejoin->dial);
}

void mesh_rejoins_hasten(struct mesh_process *process, const struct mesh_domain *domain)
{
	struct mesh_rejoin *rejoin;

	mesh_process_assert_locked(process);
	LIST_FOREACH(rejoin, &process->rejoins, entry) {
		if (domain_of(rejoin) != domain || rejoin->retry.up_ms)
			continue;
		attempt_renew(rejoin);
		mesh_engine_timer_set(&process->engine, &rejoin->timer, 0);
	}
}

/* ---- the link works again ------------------------------------------------------------------ */

void mesh_rejoin_peer_up(struct mesh_peer *peer)
{
	char text[MESH_PEER_TEXT_MAX], local[MESH_ADDR_TEXT_MAX];
	struct mesh_rejoin *rejoin;
	bool logged;

	mesh_process_assert_locked(peer->process);
	if (mesh_link_was_lost(peer, &logged)) {
		if (logged)
			mesh_warn("%s is reached from %s (%s) again: its messages go over this "
				  "path, too",
				  mesh_peer_text(peer, text), peer->domain->nic->netdev,
				  mesh_addr_text(&peer->domain->nic->source, local));
		mesh_domain_lock(peer->domain);
		if (!mesh_peer_flow_other(peer))
			mesh_flow_restart(peer->domain, peer->remote->flow);
		mesh_domain_unlock(peer->domain);
	}
	LIST_FOREACH(rejoin, &peer->process->rejoins, entry) {
		if (!peer_is_links(peer, rejoin))
			continue;
		rejoin->retry.up_ms = mesh_clock_ms();
		answer_note(rejoin, rejoin->retry.up_ms);
		attempt_renew(rejoin); /* the other direction works already, or this one */
		mesh_engine_timer_set(&peer->process->engine, &rejoin->timer, 0);
	}
}
