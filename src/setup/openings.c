/* SPDX-License-Identifier: Apache-2.0 */
/* openings.c - opens the NICs' domains, each in a thread of its own, without process->lock. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/port_range.h"
#include "control/controls.h"
#include "fabric/domain_open.h"
#include "setup/openings.h"
#include "setup/threads.h"
#include "wire/message.h"

/* Connections wait this long for the slowest domain, then use the domains that are open. */
#define OPENING_MS 10000

struct opening {
	struct mesh_process *process;
	struct mesh_domain_options options;
};

/* ---- the result -------------------------------------------------------------------------- */

static bool any_opening(const struct mesh_process *process)
{
	int dev;

	for (dev = 0; dev < process->num_devs; dev++)
		if (process->dev_states[dev] == MESH_DEV_OPENING)
			return true;
	return false;
}

/* Lets connections use the domain. The endpoints only grow: a connect keeps indices into them. */
MESH_HOLDS(process)
static void endpoint_enter(struct mesh_process *process, int dev)
{
	struct mesh_endpoint_addr *endpoint = &process->endpoints[process->num_endpoints++];
	const struct mesh_domain *domain = process->domains[dev];

	memset(endpoint, 0, sizeof(*endpoint));
	endpoint->addr = domain->nic->source;
	endpoint->port = domain->port;
	endpoint->nic = (uint8_t)dev;
	endpoint->provider = domain->provider;
	endpoint->speed_mbps = domain->nic->speed_mbps;
}

/* Allows connections; a domain that is not open yet is added later. */
MESH_HOLDS(process)
static void openings_settle(struct mesh_process *process)
{
	int dev;

	process->settled = true;
	for (dev = 0; dev < process->num_devs; dev++)
		if (process->dev_states[dev] == MESH_DEV_OPEN)
			endpoint_enter(process, dev);
}

MESH_HOLDS(process)
static void opening_finish(struct mesh_process *process, int dev, struct mesh_domain *domain)
{
	mesh_process_assert_locked(process);
	process->dev_states[dev] = domain ? MESH_DEV_OPEN : MESH_DEV_FAILED;
	if (domain) {
		process->providers[dev] = domain->provider;
		atomic_store(&process->domains[dev], domain);
		mesh_info("NIC %d: %s uses %s", dev, domain->nic->netdev,
			  mesh_provider_id_text(domain->provider));
	}
	if (atomic_load(&process->started))
		mesh_control_start(process, dev);
	if (process->settled && domain)
		endpoint_enter(process, dev);
	else if (!process->settled && !any_opening(process))
		openings_settle(process);
	if (atomic_load(&process->started))
		mesh_engine_wake(&process->engine);
}

int mesh_openings_result(struct mesh_process *process, uint64_t now_ms)
{
	mesh_process_assert_locked(process);
	if (!process->settled && mesh_clock_elapsed_ms(process->opening_ms, now_ms) < OPENING_MS)
		return -EAGAIN;
	if (!process->settled) {
		mesh_warn("libfabric has not opened every NIC within %d s; going on with those "
			  "that are open",
			  OPENING_MS / 1000);
		openings_settle(process);
	}
	return process->num_endpoints || any_opening(process) ? 0 : -ENODEV;
}

/* ---- the threads ------------------------------------------------------------------------- */

static void opening_main(void *arg)
{
	struct opening *opening = arg;
	struct mesh_domain *domain = NULL;
	struct mesh_process *process = opening->process;

	/* A NIC that fails does not affect the others; its reason is logged. */
	if (mesh_domain_open(&opening->options, &domain))
		domain = NULL;
	mesh_process_lock(process);
	opening_finish(process, opening->options.dev, domain);
	mesh_process_unlock(process);
	free(opening);
}

MESH_HOLDS(process)
static void opening_start(struct mesh_process *process, int dev)
{
	struct opening *opening = calloc(1, sizeof(*opening));
	size_t least = MESH_GRANTS_PER_MESSAGE * mesh_grant_size(MESH_PATHS_MAX);
	int ret = -ENOMEM;

	if (opening) {
		opening->process = process;
		opening->options.nic = process->nics[dev];
		opening->options.dev = dev;
		opening->options.provider = process->providers[dev];
		opening->options.payload_max = process->config.eager_limit_bytes;
		opening->options.segment_bytes = process->config.segment_bytes;
		mesh_port_range_parse(process->config.ports, &opening->options.ports);
		/* GRANT is the largest message that is not data. */
		if (opening->options.payload_max < least)
			opening->options.payload_max = least;
		ret = mesh_thread_start(opening_main, opening);
	}
	if (!ret)
		return;
	mesh_warn("%s: cannot start a thread to open it: %s", process->nics[dev]->netdev,
		  strerror(-ret));
	free(opening);
	opening_finish(process, dev, NULL);
}

int mesh_opening_join(struct mesh_process *process, int dev)
{
	int ret;

	mesh_process_assert_locked(process);
	ret = mesh_control_open(process, dev);
	if (ret)
		return ret;
	process->dev_states[dev] = MESH_DEV_OPENING;
	opening_start(process, dev);
	return 0;
}

void mesh_openings_start(struct mesh_process *process, bool cheap)
{
	enum mesh_dev_state *states = process->dev_states;
	bool chosen[MESH_NICS_MAX], any = false;
	int dev;

	mesh_process_assert_locked(process);
	for (dev = 0; dev < process->num_devs; dev++) {
		chosen[dev] = (states[dev] == MESH_DEV_CLOSED || states[dev] == MESH_DEV_FAILED) &&
			      !(cheap && process->providers[dev] != MESH_PROVIDER_TCP);
		any |= chosen[dev];
		if (chosen[dev])
			states[dev] = MESH_DEV_OPENING; /* before the first one can finish */
	}
	if (!any)
		return;
	process->opening_ms = mesh_clock_ms();
	process->settled = false;
	process->num_endpoints = 0; /* no connection exists yet */
	for (dev = 0; dev < process->num_devs; dev++)
		if (chosen[dev])
			opening_start(process, dev);
}
