/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - what all connections of the process share. */
#include <stdio.h>

#include "control/process.h"
#include "fabric/poll.h"
#include "nic/provider_id.h"

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
		if (process->dev_states[dev] == MESH_DEV_FAILED)
			continue;
		domain = process->domains[dev];
		endpoints[count++] = (struct mesh_endpoint_addr){
			.addr = process->nics[dev]->source,
			.port = domain ? domain->port : 0,
			.nic = (uint8_t)dev,
			.provider = process->providers[dev],
			.speed_mbps = process->nics[dev]->speed_mbps,
		};
	}
	return count;
}

void mesh_process_poll(struct mesh_process *process)
{
	struct mesh_domain *domain;
	int dev;

	if (!atomic_load(&process->started))
		return;
	for (dev = 0; dev < process->num_devs; dev++) {
		domain = atomic_load(&process->domains[dev]);
		if (domain)
			mesh_domain_poll(domain);
	}
}
