/* SPDX-License-Identifier: Apache-2.0 */
/* carriers.c - what follows when a NIC has lost its carrier, or has it again. */
#include "base/clock.h"
#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "relay/circuits.h"
#include "setup/carriers.h"
#include "setup/connecting.h"
#include "setup/reroutes.h"
#include "system/nic_table.h"
#include "transport/rejoin.h"

/* A link is dead half a second after its limit at the latest. */
#define SLACK_MS 2000

MESH_HOLDS(process)
static bool link_is_resumed(const struct mesh_link *link)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (mesh_peer_is_resumed(peer))
			return true;
	}
	return false;
}

/* The next link of the NIC whose comms go on over other paths. */
MESH_HOLDS(process)
static struct mesh_link *resumed_find(const struct mesh_process *process,
				      const struct mesh_domain *domain)
{
	struct mesh_link *link;

	LIST_FOREACH(link, &process->links, entry) {
		if (link->domain == domain && link_is_resumed(link))
			break;
	}
	return link;
}

/*
 * Loses the links whose comms go on over other paths. The others are watched for longer than the
 * verdict takes: while nothing waits for them, the kernel alone would detect later that they are
 * dead.
 */
MESH_HOLDS(process)
static void links_lose(struct mesh_process *process, const struct mesh_domain *domain)
{
	uint64_t until_ms = mesh_clock_ms() + process->config.dead_peer_timeout_s * 1000 + SLACK_MS;
	struct mesh_link *link;

	/* From the start each time: to report one may end others, whose peers do not read. */
	while ((link = resumed_find(process, domain)))
		mesh_link_lose(LIST_FIRST(&link->peers), "the NIC here has no carrier",
			       MESH_REFUSAL_BROKEN);
	mesh_circuits_carrier_lost(process, domain);
	mesh_links_want(process, domain, until_ms);
}

void mesh_carriers_check(struct mesh_process *process)
{
	const struct mesh_domain *domain;
	int dev, i;

	mesh_process_assert_locked(process);
	for (dev = 0; dev < process->num_devs; dev++)
		mesh_process_carrier_look(process, dev);
	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = process->domains[i];
		if (!domain)
			continue;
		if (mesh_carrier_is_up(domain->nic)) {
			mesh_rejoins_hasten(process, domain);
			mesh_reroutes_hasten(process, domain);
		} else {
			links_lose(process, domain);
		}
	}
	mesh_connects_hasten(process);
}
