/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - `fi_mesh serve --relay`: relays for jobs on a node that runs no rank of theirs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "serve/relay.h"

static const char *reason_text(int error)
{
	if (error == -EPERM)
		return "NCCL_MESH_RELAY=off or NCCL_MESH_NEIGHBOURS=off is set";
	if (error == -ENODEV)
		return "no NIC of this node can carry the mesh; `fi_mesh nics` says why";
	return strerror(-error);
}

int serve_relay_open(struct mesh_net **relay)
{
	int ret = mesh_net_relay_open(relay);

	if (ret)
		fprintf(stderr, "fi_mesh serve: cannot relay: %s\n", reason_text(ret));
	else
		printf("relaying for %s\n",
		       mesh_net_relays_all(*relay)
			       ? "all jobs"
			       : "the job that the environment names, and for no other");
	return ret;
}
