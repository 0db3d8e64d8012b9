/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - starts and ends what runs between the first listen or connect and the last close. */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "control/controls.h"
#include "control/peer_life.h"
#include "control/process_sockets.h"
#include "fabric/domain_open.h"
#include "setup/nic_join.h"
#include "setup/nic_neighbours.h"
#include "setup/nic_watch.h"
#include "setup/openings.h"
#include "setup/setup.h"
#include "setup/start.h"
#include "setup/threads.h"
#include "transport/rejoin.h"

MESH_HOLDS(process)
static void page_open(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	/* The page is optional; if it is missing, the reason was logged. */
	mesh_stats_file_open(process->config.stats_dir, process->node_id, process->name,
			     &process->stats);
	process->counters = process->stats.page ? &process->stats.page->header.counters
						: &process->own_counters;
}

MESH_HOLDS(process)
static void page_close(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	process->counters = &process->own_counters;
	mesh_stats_file_close(&process->stats);
}

MESH_HOLDS(process)
static void domains_close(struct mesh_process *process)
{
	int dev;

	for (dev = 0; dev < process->num_devs; dev++) {
		mesh_domain_close(process->domains[dev]);
		atomic_store(&process->domains[dev], NULL);
		process->dev_states[dev] = MESH_DEV_CLOSED;
	}
	process->num_endpoints = 0;
	process->settled = false;
}

int mesh_setup_start(struct mesh_process *process)
{
	int ret;

	mesh_process_assert_locked(process);
	if (atomic_load(&process->started))
		return 0;
	ret = mesh_engine_open(&process->engine, &process->lock, mesh_setup_of(process)->work,
			       process);
	if (ret)
		return ret;
	mesh_openings_start(process, false);
	ret = mesh_controls_open(process);
	if (ret)
		goto close_engine;
	/* The thread is last, because it cannot be stopped while we hold the lock. */
	ret = mesh_engine_start(&process->engine);
	if (ret)
		goto close_controls;
	page_open(process);
	mesh_nic_watch_start(process);
	mesh_nic_neighbours_open(process);
	atomic_store(&process->started, true);
	return 0;
close_controls:
	mesh_controls_close(process);
close_engine:
	mesh_engine_close(&process->engine);
	return ret;
}

int mesh_setup_retry(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	if (!atomic_load(&process->started) ||
	    mesh_openings_result(process, mesh_clock_ms()) != -ENODEV)
		return 0;
	mesh_openings_start(process, false);
	mesh_controls_close(process);
	return mesh_controls_open(process);
}

void mesh_setup_stop(struct mesh_process *process)
{
	struct mesh_peer *peer;

	mesh_engine_stop(&process->engine);
	mesh_threads_await();
	mesh_process_lock(process);
	mesh_nic_watch_close(process);
	if (atomic_load(&process->started)) {
		mesh_rejoins_close(process);
		while ((peer = LIST_FIRST(&process->peers)))
			mesh_peer_free(peer);
		mesh_process_sockets_free(process);
		mesh_nic_neighbours_close(process);
		mesh_controls_close(process);
		mesh_engine_close(&process->engine);
		atomic_store(&process->started, false);
		page_close(process);
	}
	domains_close(process); /* also those that were opened early and never used */
	mesh_nics_forget(process);
	mesh_process_unlock(process);
}
