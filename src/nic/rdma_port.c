/* SPDX-License-Identifier: Apache-2.0 */
/* rdma_port.c - what an RDMA port's state, link layer and GIDs mean for the mesh. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "nic/gid.h"
#include "nic/rdma_port.h"

const char *mesh_rdma_protocol_text(const struct mesh_nic *nic, char *text)
{
	const struct mesh_gid *gid = mesh_gid_find(&nic->rdma, &nic->source);
	char address[MESH_ADDR_TEXT_MAX];

	if (nic->rdma.link_layer == MESH_LINK_LAYER_INFINIBAND)
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "InfiniBand");
	else if (nic->rdma.iwarp)
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "iWARP");
	else if (!gid)
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "RoCE, no GID of %s",
			 mesh_addr_text(&nic->source, address));
	else if (gid->type == MESH_GID_ROCE_V2)
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "RoCE v2, GID %d", gid->index);
	else if (gid->type == MESH_GID_ROCE_V1)
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX,
			 "RoCE v1, GID %d (no RoCE v2: the peer must have v1, too)", gid->index);
	else
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "RoCE of unknown version, GID %d",
			 gid->index);
	return text;
}

/* The port's GUID is the lower half of its first GID; 0 where it is not known. */
static uint64_t port_guid(const struct mesh_rdma_port *port)
{
	uint64_t guid = 0;
	int i;

	for (i = 8; i < 16 && port->num_gids; i++)
		guid = guid << 8 | port->gids[0].bytes[i];
	return guid;
}

const char *mesh_rdma_state_explain(const struct mesh_rdma_port *port, char *text)
{
	bool infiniband = port->link_layer == MESH_LINK_LAYER_INFINIBAND;
	uint64_t guid = port_guid(port);
	char option[32] = "";

	/* Each cable needs its own subnet manager, so the command names the port. */
	if (guid)
		snprintf(option, sizeof(option), " -g 0x%016" PRIx64, guid);
	/* The digit is the kernel's enum ib_port_state. */
	if (infiniband && port->state[0] == '2')
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX,
			 "no subnet manager on this link (%s); start one on one end: opensm%s",
			 port->state, option);
	else if (infiniband && port->state[0] == '3')
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX,
			 "the subnet manager has not activated this link yet (%s)", port->state);
	else if (port->state[0] == '1')
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "no link (%s): cable or peer down",
			 port->state);
	else
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "the port is in state \"%s\"", port->state);
	return text;
}
