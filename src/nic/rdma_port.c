/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdma_port.c - what an RDMA port's state, link layer, GIDs and errors mean for the mesh, and how
 * to fix them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "nic/rdma_port.h"

const char *mesh_rdma_protocol_text(const struct mesh_nic *nic, char *text)
{
	const struct mesh_gid *gid = mesh_gid_find(&nic->rdma, &nic->source);
	char address[MESH_ADDR_TEXT_MAX];

	if (nic->rdma.link_layer == MESH_LINK_LAYER_INFINIBAND)
		snprintf(text, MESH_RDMA_PORT_TEXT_MAX, "InfiniBand");
	else if (nic->rdma.link_layer == MESH_LINK_LAYER_IWARP)
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

bool mesh_gid_is_addr(const uint8_t gid[16], const struct mesh_addr *addr)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (addr->family == MESH_FAMILY_IPV4)
		return !memcmp(gid, mapped, 12) && !memcmp(gid + 12, addr->bytes, 4);
	return addr->family == MESH_FAMILY_IPV6 && !memcmp(gid, addr->bytes, 16);
}

const struct mesh_gid *mesh_gid_find(const struct mesh_rdma_port *rdma,
				     const struct mesh_addr *addr)
{
	const struct mesh_gid *found = NULL, *gid;

	for (gid = rdma->gids; gid < rdma->gids + rdma->num_gids; gid++) {
		if (rdma->link_layer == MESH_LINK_LAYER_INFINIBAND) {
			if (!gid->index)
				return gid;
			continue;
		}
		if (!mesh_gid_is_addr(gid->bytes, addr))
			continue;
		if (!found || (gid->type == MESH_GID_ROCE_V2 && found->type != MESH_GID_ROCE_V2))
			found = gid;
	}
	return found;
}

/* IANA's port of RoCE v2. */
#define ROCE_UDP_PORT 4791

static const struct status {
	enum mesh_rdma_status status;
	int error;
	const char *cause;
	const char *remedy; /* NULL: check the link, see link_append() */
} statuses[] = {
	{MESH_RDMA_LOCAL_PROTECTION, -EFAULT,
	 "this node's NIC may not access the memory of a message (local protection error)",
	 "was it freed or unregistered while it was still in use?"},
	{MESH_RDMA_FLUSHED, -ECONNRESET,
	 "the RDMA connection had failed before or was closed (work request flushed)",
	 "the first error, here or on the peer, gives the cause"},
	{MESH_RDMA_REMOTE_REQUEST, -EREMOTEIO,
	 "the peer's NIC did not understand the operation (remote invalid request)",
	 "an iWARP NIC cannot take writes with immediate data: for Intel E810 and X722, load irdma "
	 "with roce_ena=1"},
	{MESH_RDMA_REMOTE_ACCESS, -EREMOTEIO,
	 "the peer's NIC refused a write into its memory (remote access error)",
	 "the peer's process ended, closed the connection or unregistered the memory: its log "
	 "gives the cause"},
	{MESH_RDMA_REMOTE_OPERATION, -EREMOTEIO, "the peer's NIC failed (remote operation error)",
	 "check the kernel log there (dmesg)"},
	{MESH_RDMA_RETRIES_EXCEEDED, -ETIMEDOUT,
	 "the peer's NIC does not acknowledge (transport retry counter exceeded)", NULL},
	{MESH_RDMA_RECEIVER_NOT_READY, -ENOBUFS,
	 "the peer's process posts no receives (RNR retry counter exceeded)",
	 "is it stopped, or under a debugger?"},
};

/*
 * Appends to @used bytes of @text what to check on the link. If TCP passes, the cable and the other
 * node work.
 */
static void link_append(enum mesh_link_layer layer, bool tcp_passes, char *text, size_t used)
{
	size_t room = MESH_RDMA_ERROR_MAX - used;

	text += used;
	if (layer == MESH_LINK_LAYER_INFINIBAND) {
		snprintf(text, room, "check %sthe subnet manager of this link (opensm)%s",
			 tcp_passes ? "" : "the cable, both ports (ibstat), ",
			 tcp_passes ? ", its partitions, and the peer's log"
				    : ", and whether the peer's node still runs");
		return;
	}
	snprintf(text, room,
		 "check %sthe MTU on both ends, firewalls on UDP port %d (RoCE v2), and %s",
		 tcp_passes ? "" : "the cable, ", ROCE_UDP_PORT,
		 tcp_passes ? "the peer's log" : "whether the peer's node still runs");
}

static const struct status *status_find(int status)
{
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		if ((int)statuses[i].status == status)
			return &statuses[i];
	return NULL;
}

int mesh_rdma_status_errno(int status)
{
	const struct status *found = status_find(status);

	return found ? found->error : -EIO;
}

const char *mesh_rdma_status_explain(int status, enum mesh_link_layer layer, char *text)
{
	const struct status *found = status_find(status);

	if (!found)
		snprintf(text, MESH_RDMA_ERROR_MAX,
			 "the NIC reports status %d (enum ibv_wc_status): check the kernel log "
			 "(dmesg)",
			 status);
	else
		snprintf(text, MESH_RDMA_ERROR_MAX, "%s: %s", found->cause,
			 found->remedy ? found->remedy : "");
	if (found && !found->remedy)
		link_append(layer, false, text, strlen(text));
	return text;
}

const char *mesh_rdma_silence_explain(enum mesh_link_layer layer, char *text)
{
	static const char cause[] = "TCP reaches the peer on this link and RDMA does not: ";

	snprintf(text, MESH_RDMA_ERROR_MAX, "%s", cause);
	link_append(layer, true, text, sizeof(cause) - 1);
	return text;
}
