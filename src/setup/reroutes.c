/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reroutes.c - looks for other routes for comms that send and have lost their last one.
 *
 * Each of them has a search of its own, as a connection has, until a circuit is open, or the comm
 * has ended. The comm itself waits (transport/reroute.c), and may be freed meanwhile.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/container.h"
#include "setup/relay_try.h"
#include "setup/reroutes.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "transport/reroute.h"
#include "transport/route_wait.h"

/* Between two looks. */
#define LOOK_MS 20
/* A relay answers OPEN within this: opening.c has limits of its own for what lies behind it. */
#define ANSWER_MS 15000

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
};

MESH_HOLDS(process)
static void reroute_free(struct mesh_reroute *reroute)
{
	mesh_engine_timer_cancel(&reroute->process->engine, &reroute->timer);
	LIST_REMOVE(reroute, entry);
	mesh_relay_try_close(reroute->relay);
	free(reroute);
}

/* The comm, if it is there, and still waits for a route; else NULL. */
MESH_HOLDS(process)
static struct mesh_comm *comm_waiting(const struct mesh_reroute *reroute)
{
	struct mesh_process *process = reroute->process;
	struct mesh_comm *comm;

	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (comm == reroute->comm && comm->key == reroute->key)
			return mesh_comm_lacks_route(comm) ? comm : NULL;
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
	ret = mesh_reroute_begin(comm, reroute->relay->peers[0]);
	if (!ret) {
		mesh_relay_try_request(reroute->relay, 0, &comm->paths[0]);
		reroute->asked_ms = now_ms;
	} else if (ret != -EAGAIN) {
		attempt_end(reroute, MESH_REFUSAL_RESOURCES);
	}
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

MESH_HOLDS(process)
static void reroute_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_reroute *reroute = mesh_container_of(timer, struct mesh_reroute, timer);
	struct mesh_comm *comm = comm_waiting(reroute);

	if (!comm) {
		reroute_free(reroute);
		return;
	}
	if (reroute->asked_ms)
		attempt_look(reroute, &comm->paths[0], now_ms);
	if (!reroute->asked_ms)
		attempt_begin(reroute, comm, now_ms);
	mesh_engine_timer_set(&reroute->process->engine, timer, now_ms + LOOK_MS);
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
	struct mesh_comm *comm;

	mesh_process_assert_locked(process);
	if (!atomic_load_explicit(&process->routeless, memory_order_relaxed) ||
	    !atomic_exchange(&process->routeless, false))
		return;
	for (comm = mesh_comm_next(process, NULL); comm; comm = mesh_comm_next(process, comm)) {
		if (mesh_comm_lacks_route(comm) && !reroute_find(setup, comm))
			reroute_make(setup, comm);
	}
}

/* ---- frames -------------------------------------------------------------------------------- */

bool mesh_reroutes_opened(struct mesh_peer *peer, const struct mesh_frame_opened *opened)
{
	struct mesh_path *path = mesh_reroute_find(peer, opened->to_comm);

	/* Else the circuit is given back, as one that comes too late. */
	return path && mesh_reroute_opened(path, opened);
}

bool mesh_reroutes_refused(struct mesh_peer *peer, const struct mesh_frame_refuse *refuse)
{
	struct mesh_path *path = mesh_reroute_find(peer, refuse->comm);
	struct mesh_reroute *reroute;

	if (!path)
		return false;
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
