/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c - cuts off a remote that did not stop in time, in its provider's way. */
#include <errno.h>
#include <string.h>

#include <mesh/base/log.h>
#include <mesh/fabric/domain.h>

#include "fabric_internal.h"

/* How many connections ended, or a negative errno. */
static int connections_cut(struct mesh_domain *domain, struct mesh_remote *remote)
{
	int ret;

	if (domain->provider != MESH_PROVIDER_VERBS_RXM)
		return mesh_sockets_fence(domain, remote);
	ret = mesh_verbs_fence(domain, remote);
	if (ret == -ENOTCONN)
		return 0;
	return ret ? ret : 1;
}

void mesh_remote_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	int count = connections_cut(domain, remote);
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr theirs;

	if (mesh_addr_from_sockaddr((const struct sockaddr *)remote->name, remote->name_len,
				    &theirs, NULL))
		return;
	if (count < 0)
		mesh_warn("cannot cut the connection with %s: %s; a late message may reach memory "
			  "that is in use again",
			  mesh_addr_text(&theirs, text), strerror(-count));
	else
		mesh_info("cut %d connection%s with %s, which did not stop in time", count,
			  count == 1 ? "" : "s", mesh_addr_text(&theirs, text));
}
