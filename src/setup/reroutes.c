/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reroutes.c - looks for other routes for comms that send and have lost their last one.
 *
 * Each of them has a search of its own, as a connection has, until a circuit is open, or the comm
 * has ended. The comm itself waits (transport/reroute.c), and may be freed meanwhile.
 *
 * A comm whose relay is stopped keeps its circuit until a trial has shown that another route leads
 * there: OPEN passes along that one, and REFUSE (tried) comes back. Then the comm leaves its paths,
 * and the same route is asked for a circuit. Trials that fail follow each other ever more seldom.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "base/random.h"
#include "fabric/sink.h"
#include "setup/relay_try.h"
#include "setup/reroutes.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"
#include "transport/stopped.h"

/* Between two looks. */
#define LOOK_MS 20
/* A relay answers OPEN within this: opening.c has limits of its own for what lies behind it. */
#define ANSWER_MS 15000
/* A trial: the search, the connection to the relay and its answer; then the pause before another */
#define TRIAL_MS 3000
#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 30000

struct mesh_reroute {
	LIST_ENTRY(mesh_reroute) entry; /* setup->reroutes; all under process->lock */
	struct mesh_timer timer;
	struct mesh_process *process;
	struct mesh_comm *comm; /* if one with this key is still there */
	uint64_t key;
	struct mesh_handle handle;
	struct mesh_relay_try *relay; /* owned */
	uint64_t asked_ms;	      /* when OPEN was sent; 0: a relay is looked for */
	enum mesh_refusal refusal;    /* the answer */
	/* A trial: since when it goes on, or 0; how long the last pause was; when that is over. */
	uint64_t trial_ms, pause_ms, not_before_ms;
	struct mesh_domain *domain; /* where @sink has an id, while REFUSE is waited for; or NULL */
	struct mesh_sink sink;
};

/* No message comes for a trial. */
MESH_HOLDS(domain)
static void trial_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			  const void *payload)
{
	(void)sink;
	(void)header;
	(void)payload;
}

/* REFUSE for the trial finds nothing from now on. */
MESH_HOLDS(process)
static void trial_sink_remove(struct mesh_reroute *reroute)
{
	if (!reroute->domain)
		return;
	mesh_domain_lock(reroute->domain);
	mesh_sink_remove(reroute->domain, &reroute->sink);
	mesh_domain_unlock(reroute->domain);
	reroute->domain = NULL;
}

MESH_HOLDS(process)
static void reroute_free(struct mesh_reroute *reroute)
{
	trial_sink_remove(reroute);
	mesh_engine_timer_cancel(&reroute->process->engine, &reroute->timer);
	LIST_REMOVE(reroute, entry);
	mesh_relay_try_close(reroute->relay);
	free(reroute);
}

MESH_HOLDS(process)
static bool wants_route(const struct mesh_comm *comm, uint64_t now_ms)
{
	return mesh_comm_lacks_route(comm) || mesh_stopped_wants_route(comm, now_ms);
}

/* The comm, if it is there, and still wants a route; else NULL. */
MESH_HOLDS(process)
static struct mesh_comm *comm_waiting(const struct mesh_reroute *reroute, uint64_t now_ms)
{
	struct mesh_process *process = reroute->process;
	struct mesh_comm *comm;

	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (comm == reroute->comm && comm->key == reroute->key)
			return wants_route(comm, now_ms) ? comm : NULL;
	}
	return NULL;
}

/* The relay has no way there, or is lost: another one may have. */
MESH_HOLDS(process)
static void attempt_end(struct mesh_reroute *reroute, enum mesh_refusal refusal)
{
	mesh_relay_try_refused(reroute->relay, 0, refusal);
	mesh_relay_try_end(reroute->relay);
	reroute->asked_ms = 0;
	reroute->refusal = 0;
}

MESH_HOLDS(process)
static void attempt_begin(struct mesh_reroute *reroute, struct mesh_comm *comm, uint64_t now_ms)
{
	int ret;

	if (!mesh_relay_try_is_ready(reroute->relay, now_ms))
		return;
	ret = mesh_reroute_begin(&comm->paths[0], reroute->relay->peers[0]);
	if (!ret) {
		mesh_relay_try_request(reroute->relay, 0, &comm->paths[0]);
		reroute->asked_ms = now_ms;
	} else if (ret != -EAGAIN) {
		attempt_end(reroute, MESH_REFUSAL_RESOURCES);
	}
}

/* A comm that waits for a relay that is stopped waits for as long as that takes. */
MESH_HOLDS(process)
static void wait_extend(const struct mesh_reroute *reroute, struct mesh_comm *comm)
{
	if (comm->routeless_ms && comm->routeless_ms < reroute->relay->stopped_ms)
		comm->routeless_ms = reroute->relay->stopped_ms;
}

MESH_HOLDS(process)
static void attempt_look(struct mesh_reroute *reroute, struct mesh_path *path, uint64_t now_ms)
{
	if (!mesh_reroute_is_asked(path)) {
		attempt_end(reroute, reroute->refusal ? reroute->refusal : MESH_REFUSAL_BROKEN);
	} else if (mesh_clock_elapsed_ms(reroute->asked_ms, now_ms) >= ANSWER_MS) {
		mesh_reroute_end(path);
		attempt_end(reroute, MESH_REFUSAL_NO_ANSWER);
	}
}

/* ---- trials -------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void trial_ask(struct mesh_reroute *reroute, const struct mesh_comm *comm, uint64_t now_ms)
{
	struct mesh_peer *relay = reroute->relay->peers[0];

	reroute->sink.message = trial_message;
	reroute->refusal = 0;
	if (mesh_random(&reroute->sink.token, sizeof(reroute->sink.token)) ||
	    mesh_sink_add(relay->domain, &reroute->sink))
		return; /* the next look tries it again */
	reroute->domain = relay->domain;
	reroute->asked_ms = now_ms;
	mesh_relay_try_trial(reroute->relay, 0, &comm->paths[0], reroute->sink.id);
}

MESH_HOLDS(process)
static void trial_end(struct mesh_reroute *reroute, uint64_t now_ms)
{
	trial_sink_remove(reroute);
	if (reroute->relay->num_peers)
		attempt_end(reroute, MESH_REFUSAL_NO_ANSWER);
	reroute->asked_ms = 0;
	reroute->refusal = 0;
	reroute->trial_ms = 0;
	reroute->pause_ms = reroute->pause_ms ? 2 * reroute->pause_ms : PAUSE_MIN_MS;
	if (reroute->pause_ms > PAUSE_MAX_MS)
		reroute->pause_ms = PAUSE_MAX_MS;
	reroute->not_before_ms = now_ms + reroute->pause_ms;
}

/* Looks whether another route leads there. Returns true if it does: the comm has lost its own. */
MESH_HOLDS(process)
static bool trial_look(struct mesh_reroute *reroute, struct mesh_comm *comm, uint64_t now_ms)
{
	if (now_ms < reroute->not_before_ms)
		return false;
	if (!reroute->trial_ms)
		reroute->trial_ms = now_ms;
	reroute->relay->sure = true;
	if (reroute->refusal == MESH_REFUSAL_RELAY_TRIED) {
		trial_sink_remove(reroute);
		reroute->asked_ms = 0;
		reroute->refusal = 0;
		mesh_stopped_leave(comm, now_ms);
		return mesh_comm_lacks_route(comm);
	}
	if (reroute->refusal || mesh_clock_elapsed_ms(reroute->trial_ms, now_ms) >= TRIAL_MS)
		trial_end(reroute, now_ms);
	else if (!reroute->asked_ms && mesh_relay_try_is_ready(reroute->relay, now_ms))
		trial_ask(reroute, comm, now_ms);
	return false;
}

/* ---- looks --------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static void reroute_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_reroute *reroute = mesh_container_of(timer, struct mesh_reroute, timer);
	struct mesh_comm *comm = comm_waiting(reroute, now_ms);
	uint64_t next_ms = now_ms + LOOK_MS;

	if (!comm) {
		reroute_free(reroute);
		return;
	}
	if (mesh_comm_lacks_route(comm) || trial_look(reroute, comm, now_ms)) {
		trial_sink_remove(reroute);
		reroute->relay->sure = false;
		wait_extend(reroute, comm);
		if (reroute->asked_ms)
			attempt_look(reroute, &comm->paths[0], now_ms);
		if (!reroute->asked_ms)
			attempt_begin(reroute, comm, now_ms);
	} else if (next_ms < reroute->not_before_ms) {
		next_ms = reroute->not_before_ms;
	}
	mesh_engine_timer_set(&reroute->process->engine, timer, next_ms);
}

MESH_HOLDS(process)
static struct mesh_reroute *reroute_find(struct mesh_setup *setup, const struct mesh_comm *comm)
{
	struct mesh_reroute *reroute;

	LIST_FOREACH(reroute, &setup->reroutes, entry) {
		if (reroute->comm == comm && reroute->key == comm->key)
			break;
	}
	return reroute;
}

/* Without memory for it the comm ends with its wait. */
MESH_HOLDS(process)
static void reroute_make(struct mesh_setup *setup, struct mesh_comm *comm)
{
	struct mesh_reroute *reroute = calloc(1, sizeof(*reroute));

	if (!reroute)
		return;
	reroute->process = comm->process;
	reroute->comm = comm;
	reroute->key = comm->key;
	reroute->handle = *comm->handle;
	if (mesh_relay_try_open(comm->process, &reroute->handle, 1, &reroute->relay)) {
		free(reroute);
		return;
	}
	reroute->timer.expired = reroute_expired;
	LIST_INSERT_HEAD(&setup->reroutes, reroute, entry);
	mesh_engine_timer_set(&comm->process->engine, &reroute->timer, mesh_clock_ms());
}

void mesh_reroutes_tick(struct mesh_process *process)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	uint64_t now_ms = mesh_clock_ms();
	struct mesh_reroute *reroute;
	struct mesh_comm *comm;

	mesh_process_assert_locked(process);
	if (!atomic_load_explicit(&process->routeless, memory_order_relaxed) ||
	    !atomic_exchange(&process->routeless, false))
		return;
	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (!wants_route(comm, now_ms))
			continue;
		reroute = reroute_find(setup, comm);
		if (!reroute)
			reroute_make(setup, comm);
		else if (mesh_comm_lacks_route(comm))
			mesh_engine_timer_set(&process->engine, &reroute->timer, now_ms);
	}
}

/* ---- frames -------------------------------------------------------------------------------- */

bool mesh_reroutes_opened(struct mesh_peer *peer, const struct mesh_frame_opened *opened)
{
	struct mesh_path *path = mesh_reroute_find(peer, opened->to_comm);

	/* Else the circuit is given back, as one that comes too late. */
	return path && mesh_reroute_opened(path, opened);
}

/* True for the answer to a trial. */
MESH_HOLDS(process)
static bool trial_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_reroute *reroute;

	LIST_FOREACH(reroute, &mesh_setup_of(peer->process)->reroutes, entry) {
		if (reroute->domain == peer->domain && reroute->sink.id == refuse->comm &&
		    reroute->relay->num_peers && reroute->relay->peers[0] == peer) {
			reroute->refusal = (enum mesh_refusal)refuse->refusal;
			mesh_engine_timer_set(&peer->process->engine, &reroute->timer, 0);
			return true;
		}
	}
	return false;
}

bool mesh_reroutes_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_path *path = mesh_reroute_find(peer, refuse->comm);
	struct mesh_reroute *reroute;

	if (!path)
		return trial_refused(peer, refuse);
	reroute = reroute_find(mesh_setup_of(peer->process), path->comm);
	if (reroute)
		reroute->refusal = (enum mesh_refusal)refuse->refusal;
	mesh_reroute_refused(path, (enum mesh_refusal)refuse->refusal);
	return true;
}

void mesh_reroutes_close(struct mesh_process *process)
{
	struct mesh_reroute *reroute;

	mesh_process_assert_locked(process);
	while ((reroute = LIST_FIRST(&mesh_setup_of(process)->reroutes)))
		reroute_free(reroute);
}
