/* SPDX-License-Identifier: Apache-2.0 */
/* relay_search.c - searches of the mesh for relays, and how long what is missing is hoped for. */
#include "base/clock.h"
#include "neighbours/neighbours.h"
#include "relay/relay.h"
#include "setup/connect_judge.h"
#include "setup/dead_routes.h"
#include "setup/relay_search.h"
#include "setup/setup.h"

/* The mesh is searched again while no route leads there, and what one search may take. */
#define SEARCH_AGAIN_MS 500
#define SEARCH_MS 1000
/* What a search has found counts for so long where routed tcp waits for it. */
#define FRESH_MS 10000
/* And it searches for so long while a link may be confirmed that is missing from a route. */
#define HOPE_MS MESH_DIAL_MS
/*
 * What a search has found that begins sooner after the start of this process is not enough: another
 * one follows, and more of them for a while if what they have found may be improved by RDMA.
 */
#define YOUNG_MS 1200
#define YOUNG_RDMA_MS 4000

void mesh_relay_search(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_setup *setup = mesh_setup_of(process);

	mesh_process_assert_locked(process);
	if (mesh_clock_elapsed_ms(setup->searched_ms, now_ms) < SEARCH_AGAIN_MS)
		return;
	setup->searched_ms = now_ms;
	mesh_neighbours_search(setup->neighbours, 0, SEARCH_MS);
}

/* Not 0 if a later search may find a route with RDMA on each hop, though this one has not. */
MESH_HOLDS(process)
static uint64_t rdma_hope(struct mesh_process *process, uint64_t target, uint64_t now_ms)
{
	const struct mesh_setup *setup = mesh_setup_of(process);

	return mesh_neighbours_rdma_hope(setup->neighbours, target,
					 now_ms < setup->opened_ms + YOUNG_RDMA_MS);
}

bool mesh_relay_search_is_fresh(struct mesh_process *process, uint64_t now_ms)
{
	const struct mesh_setup *setup = mesh_setup_of(process);

	mesh_process_assert_locked(process);
	return setup->searched_ms && mesh_clock_elapsed_ms(setup->searched_ms, now_ms) < FRESH_MS;
}

bool mesh_relay_search_counts(struct mesh_process *process, uint64_t target, bool before_tcp,
			      uint64_t now_ms)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	uint64_t due_ms = setup->opened_ms + YOUNG_MS;

	mesh_process_assert_locked(process);
	if (mesh_neighbours_searches(setup->neighbours, target))
		return false;
	if (before_tcp && !rdma_hope(process, target, now_ms))
		return true; /* nor would a later one */
	if (setup->searched_ms >= due_ms) {
		if (now_ms >= setup->opened_ms + YOUNG_RDMA_MS ||
		    !mesh_neighbours_miss_rdma(setup->neighbours, target))
			return true;
		due_ms = setup->searched_ms + YOUNG_MS;
	}
	if (now_ms >= due_ms)
		mesh_relay_search(process, now_ms);
	return false;
}

bool mesh_relay_hope_is_vain(struct mesh_process *process, uint64_t target, uint64_t found_ms,
			     uint64_t now_ms)
{
	uint64_t hope = rdma_hope(process, target, now_ms);
	uint64_t age_ms = mesh_clock_elapsed_ms(found_ms, now_ms);

	mesh_process_assert_locked(process);
	if (!hope)
		return true;
	if (mesh_neighbours_searches(process->relay->neighbours, 0)) /* this is not all of it */
		return age_ms >= HOPE_MS + SEARCH_MS;
	if (mesh_dead_routes_have_hope(process, target, hope))
		return true;
	if (age_ms < HOPE_MS)
		return false;
	mesh_dead_routes_hope_add(process, target, hope);
	return true;
}

void mesh_relay_hope_search(struct mesh_process *process, uint64_t now_ms)
{
	if (!mesh_neighbours_searches(process->relay->neighbours, 0))
		mesh_relay_search(process, now_ms);
}
