/* SPDX-License-Identifier: Apache-2.0 */
/* openings.c - opens the NICs' domains, each in a thread of its own, without process->lock. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/threads.h"
#include "control/peer_life.h"
#include "fabric/domain.h"
#include "fabric/provider.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "setup/connecting.h"
#include "setup/nics.h"
#include "system/nic_table.h"
#include "transport/data.h"
#include "wire/message.h"

/* A domain that could not be opened is tried again after this time. */
#define AGAIN_MS 1000

/*
 * NICs that are opened at init: most processes with so many use all of them. One that never
 * connects has paid 3 MB for them, or 17 where endpoints are large.
 */
#define EARLY_SMALL 4
#define EARLY_LARGE 1

struct opening {
	struct mesh_process *process;
	int index; /* of the domain */
	struct mesh_domain_options options;
};

/* ---- the result -------------------------------------------------------------------------- */

/* The first domain of a NIC is open. */
MESH_HOLDS(process)
static void first_finish(struct mesh_process *process, int dev, const struct mesh_domain *domain)
{
	mesh_process_provider_set(process, dev, domain->provider);
	if (dev >= process->num_lasting && atomic_load(&process->started))
		mesh_peers_nics_changed(process);
}

MESH_HOLDS(process)
static void opening_finish(struct mesh_process *process, int index, struct mesh_domain *domain)
{
	mesh_process_assert_locked(process);
	process->dev_states[index] = domain ? MESH_DEV_OPEN : MESH_DEV_FAILED;
	process->opening_ms[index] = mesh_clock_ms();
	if (domain || !mesh_carrier_is_up(process->nics[index % MESH_NICS_MAX]))
		process->dev_away[index] = !domain;
	if (domain) {
		process->failures[index].text[0] = '\0';
		atomic_store(&process->domains[index], domain);
		atomic_store(&process->late_nics, true); /* comms may have waited for it */
		if (!domain->lane)
			mesh_info("NIC %d: %s uses %s%s", domain->dev, domain->nic->netdev,
				  mesh_provider_id_text(domain->provider),
				  index == domain->dev ? "" : " as well");
	}
	if (index < MESH_NICS_MAX && domain)
		first_finish(process, index, domain);
	if (!atomic_load(&process->started))
		return;
	mesh_peers_hello_resume(process);
	mesh_connects_hasten(process);
	mesh_engine_wake(&process->engine);
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
	opening_finish(process, opening->index, domain);
	mesh_process_unlock(process);
	free(opening);
}

_Static_assert(MESH_UNFLAGGED_BYTES >=
		       MESH_GRANTS_PER_MESSAGE * (offsetof(struct mesh_grant, targets) +
						  MESH_PATHS_MAX * sizeof(struct mesh_target)),
	       "GRANT is the largest message that is no data");

MESH_HOLDS(process)
static void opening_start(struct mesh_process *process, int index)
{
	struct opening *opening = calloc(1, sizeof(*opening));
	const size_t least = MESH_UNFLAGGED_BYTES;
	int ret = -ENOMEM, dev = index % MESH_NICS_MAX;

	if (opening) {
		opening->process = process;
		opening->index = index;
		opening->options.nic = process->nics[dev];
		opening->options.dev = dev;
		opening->options.lane = mesh_domain_lane(index);
		opening->options.provider = index == dev ? process->providers[dev]
							 : MESH_PROVIDER_TCP;
		opening->options.payload_max =
			mesh_process_eager_limit(process, opening->options.provider);
		opening->options.failure = &process->failures[index];
		mesh_port_range_parse(process->config.ports, &opening->options.ports);
		if (opening->options.payload_max < least)
			opening->options.payload_max = least;
		ret = mesh_thread_start(opening_main, opening);
	}
	if (!ret)
		return;
	mesh_warn_new(&process->failures[index], "%s: cannot start a thread to open it: %s",
		      process->nics[dev]->netdev, strerror(-ret));
	free(opening);
	opening_finish(process, index, NULL);
}

MESH_HOLDS(process)
static void opening_begin(struct mesh_process *process, int index)
{
	process->dev_states[index] = MESH_DEV_OPENING;
	process->opening_ms[index] = mesh_clock_ms();
	process->dev_away[index] = !mesh_carrier_is_up(process->nics[index % MESH_NICS_MAX]);
	opening_start(process, index);
}

bool mesh_opening_need(struct mesh_process *process, int index)
{
	enum mesh_dev_state state = process->dev_states[index];
	uint64_t since_ms = process->opening_ms[index];

	mesh_process_assert_locked(process);
	if (state == MESH_DEV_CLOSED ||
	    (state == MESH_DEV_FAILED &&
	     mesh_clock_elapsed_ms(since_ms, mesh_clock_ms()) >= AGAIN_MS))
		opening_begin(process, index);
	return process->dev_states[index] == MESH_DEV_OPENING;
}

/*
 * Which of the peer's NICs a link-local address reaches is for neighbours to say: those that have
 * started a moment ago have said it by the time that a connection has opened its NICs.
 */
MESH_HOLDS(process)
static bool all_are_routable(const struct mesh_process *process)
{
	int dev;

	for (dev = 0; dev < process->num_nics; dev++) {
		if (mesh_addr_is_link_local(&process->nics[dev]->source))
			return false;
	}
	return true;
}

/*
 * True if connections of this process may use all of its NICs, and these cost little. Where they
 * may use those near the NIC that NCCL chooses only, nobody knows yet which these are.
 */
MESH_HOLDS(process)
static bool nics_are_few(const struct mesh_process *process)
{
	int num = process->num_nics;
	uint32_t all = (1u << num) - 1;

	return num <= (mesh_tcp_endpoints_are_small() ? EARLY_SMALL : EARLY_LARGE) &&
	       num <= (int)process->config.max_paths && (num == 1 || all_are_routable(process)) &&
	       mesh_nics_near(process->nics, num, 0) == all;
}

void mesh_openings_early(struct mesh_process *process)
{
	int dev;

	mesh_process_assert_locked(process);
	if (!nics_are_few(process))
		return;
	for (dev = 0; dev < process->num_nics; dev++) {
		if (process->providers[dev] != MESH_PROVIDER_TCP ||
		    process->dev_states[dev] != MESH_DEV_CLOSED ||
		    !mesh_carrier_is_up(process->nics[dev]))
			continue;
		opening_begin(process, dev);
	}
}

/* Lets connections choose the NIC. The endpoints only grow: a connect keeps indices into them. */
MESH_HOLDS(process)
static void endpoint_enter(struct mesh_process *process, int dev)
{
	mesh_process_assert_locked(process);
	process->endpoints[process->num_endpoints++] = (struct mesh_endpoint_addr){
		.addr = process->nics[dev]->source,
		.nic = (uint8_t)dev,
		.provider = process->providers[dev],
		.also_tcp = process->also_tcp[dev],
		.speed_mbps = process->nics[dev]->speed_mbps,
	};
}

int mesh_opening_join(struct mesh_process *process, int dev)
{
	int ret;

	mesh_process_assert_locked(process);
	if (process->controls[dev].watch.fd < 0) {
		ret = mesh_control_open(process, dev);
		if (ret)
			return ret;
	}
	while (process->num_endpoints <= dev)
		endpoint_enter(process, process->num_endpoints);
	opening_begin(process, dev);
	return 0;
}

void mesh_openings_start(struct mesh_process *process)
{
	int dev;

	mesh_process_assert_locked(process);
	process->num_endpoints = 0; /* no connection exists yet */
	for (dev = 0; dev < process->num_devs; dev++)
		endpoint_enter(process, dev);
}
