/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - what all connections of the process share. */
#include <stdio.h>

#include "control/process.h"
#include "fabric/poll.h"
#include "nic/addr.h"
#include "system/stats_file.h"
#include "system/nic_table.h"

/*
 * The largest eager message on ofi_rxm: that copies messages by itself, cuts those above 16 KiB,
 * and pins the buffers. Writes cost nothing more there: docs/protocol/data.md.
 */
#define RXM_EAGER_MAX 8192

const char *mesh_endpoints_text(const struct mesh_endpoint_addr *endpoints, int num_endpoints,
				const struct mesh_process *process, char *text, size_t size)
{
	char address[MESH_ADDR_TEXT_MAX];
	size_t used = 0;
	int i, n;

	snprintf(text, size, "no NIC");
	for (i = 0; i < num_endpoints && used < size; i++) {
		mesh_addr_text_prefix(&endpoints[i].addr, address);
		n = snprintf(text + used, size - used, "%s%s", used ? ", " : "", address);
		if (process && n > 0 && used + (size_t)n < size)
			n += snprintf(text + used + n, size - used - (size_t)n, " (%s)",
				      process->nics[endpoints[i].nic]->netdev);
		used += (size_t)n;
	}
	return text;
}

int mesh_process_offers(const struct mesh_process *process, struct mesh_endpoint_addr *endpoints)
{
	const struct mesh_domain *domain;
	int dev, count = 0;

	for (dev = 0; dev < process->num_devs; dev++) {
		if (process->controls[dev].watch.fd < 0)
			continue;
		domain = process->domains[dev];
		endpoints[count++] = (struct mesh_endpoint_addr){
			.addr = process->nics[dev]->source,
			.port = domain ? domain->port : 0,
			.nic = (uint8_t)dev,
			.provider = process->providers[dev],
			.also_tcp = process->also_tcp[dev],
			.reserve = process->dev_reserves[dev],
			.speed_mbps = process->nics[dev]->speed_mbps,
		};
	}
	return count;
}

void mesh_process_provider_set(struct mesh_process *process, int dev, enum mesh_provider_id id)
{
	const char *setting = process->config.provider;

	process->providers[dev] = id;
	process->also_tcp[dev] = id == MESH_PROVIDER_VERBS_RXM &&
				 (!*setting || mesh_provider_list_falls_back(setting));
}

int mesh_process_domain_index(const struct mesh_process *process, int dev,
			      enum mesh_provider_id provider)
{
	if (provider == process->providers[dev])
		return dev;
	return provider == MESH_PROVIDER_TCP && process->also_tcp[dev] ? mesh_second_domain(dev)
								       : -1;
}

int mesh_process_lane_index(const struct mesh_process *process, int dev,
			    enum mesh_provider_id provider, int lane)
{
	int index = mesh_process_domain_index(process, dev, provider);

	if (!lane || index < 0)
		return index;
	return provider == MESH_PROVIDER_TCP ? MESH_MAIN_DOMAINS + (lane - 1) * MESH_NICS_MAX + dev
					     : -1;
}

int mesh_process_index_of(const struct mesh_process *process, const struct mesh_domain *domain)
{
	int i = 0;

	while (process->domains[i] != domain)
		i++;
	return i;
}

bool mesh_process_carrier_look(struct mesh_process *process, int dev)
{
	bool up = mesh_carrier_is_up(process->nics[dev]);

	mesh_process_assert_locked(process);
	if (up)
		process->nics_away &= ~(1u << dev);
	else
		process->nics_away |= 1u << dev;
	return up;
}

bool mesh_process_is_drained(const struct mesh_process *process, int dev)
{
	mesh_process_assert_locked(process);
	return process->drain_marks &&
	       mesh_drain_marks_have(process->drain_marks, process->nics[dev]->netdev);
}

size_t mesh_process_eager_limit(const struct mesh_process *process, enum mesh_provider_id provider)
{
	size_t limit = process->config.eager_limit_bytes;

	return provider != MESH_PROVIDER_TCP && limit > RXM_EAGER_MAX ? RXM_EAGER_MAX : limit;
}

void mesh_process_poll(struct mesh_process *process)
{
	struct mesh_domain *domain;
	int i;

	if (!atomic_load(&process->started))
		return;
	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = atomic_load(&process->domains[i]);
		if (domain)
			mesh_domain_poll(domain);
	}
}
