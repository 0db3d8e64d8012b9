/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carrier.c - loses the links of NICs without carrier, where comms go on over other paths, and
 * hastens the return of those that have it again.
 */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/link.h"
#include "control/link_watch.h"
#include "control/peer_end.h"
#include "setup/carrier.h"
#include "transport/rejoin.h"

/* False only if the kernel says that the NIC is down, has no carrier, or is gone. */
static bool nic_runs(int fd, const struct mesh_nic *nic)
{
	struct ifreq request;

	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", nic->netdev);
	if (ioctl(fd, SIOCGIFFLAGS, &request))
		return errno != ENODEV;
	return request.ifr_flags & IFF_RUNNING;
}

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

MESH_HOLDS(process)
static void links_lose(struct mesh_process *process, const struct mesh_domain *domain)
{
	struct mesh_link *link, *next;

	for (link = LIST_FIRST(&process->links); link; link = next) {
		next = LIST_NEXT(link, entry); /* losing one frees that one only */
		if (link->domain == domain && link_is_resumed(link))
			mesh_link_lose(LIST_FIRST(&link->peers), "the NIC here has no carrier",
				       MESH_REFUSAL_BROKEN);
	}
}

void mesh_carriers_check(struct mesh_process *process)
{
	const struct mesh_domain *domain;
	int dev, fd;

	mesh_process_assert_locked(process);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return; /* silence is noticed later */
	for (dev = 0; dev < process->num_devs; dev++) {
		domain = process->domains[dev];
		if (!domain)
			continue;
		if (nic_runs(fd, domain->nic))
			mesh_rejoins_hasten(process, domain);
		else
			links_lose(process, domain);
	}
	close(fd);
}
