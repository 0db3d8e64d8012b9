/* SPDX-License-Identifier: Apache-2.0 */
/* relay_search.c - searches of the mesh for relays. */
#include "base/clock.h"
#include "neighbours/neighbours.h"
#include "setup/relay_search.h"
#include "setup/setup.h"

/* The mesh is searched again while no route leads there, and what one search may take. */
#define SEARCH_AGAIN_MS 500
#define SEARCH_MS 1000
/*
 * What a search has found that begins sooner after the start of this process is not enough: another
 * one follows.
 */
#define YOUNG_MS 1200

void mesh_relay_search(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_setup *setup = mesh_setup_of(process);

	mesh_process_assert_locked(process);
	if (mesh_clock_elapsed_ms(setup->searched_ms, now_ms) < SEARCH_AGAIN_MS)
		return;
	setup->searched_ms = now_ms;
	mesh_neighbours_search(setup->neighbours, 0, SEARCH_MS);
}

bool mesh_relay_search_counts(struct mesh_process *process, uint64_t target, uint64_t now_ms)
{
	struct mesh_setup *setup = mesh_setup_of(process);
	uint64_t due_ms = setup->opened_ms + YOUNG_MS;

	mesh_process_assert_locked(process);
	if (mesh_neighbours_searches(setup->neighbours, target))
		return false;
	if (setup->searched_ms >= due_ms)
		return true;
	if (now_ms >= due_ms)
		mesh_relay_search(process, now_ms);
	return false;
}
