/* SPDX-License-Identifier: Apache-2.0 */
/* connect_handle.c - reads the handle that NCCL has brought from the listener. */
#include <errno.h>

#include "base/log.h"
#include "base/version.h"
#include "control/peer.h"
#include "setup/connect_handle.h"
#include "wire/protocol.h"

int mesh_connect_handle_read(const struct mesh_process *process, const void *bytes,
			     struct mesh_handle *handle)
{
	int ret = mesh_handle_decode(bytes, handle);
	char node[MESH_NODE_NAME_MAX];
	bool foreign = ret == -EPROTONOSUPPORT;

	if (foreign)
		ret = mesh_handle_decode_foreign(bytes, handle) ? -EPROTONOSUPPORT : 0;
	if (foreign && (ret || !handle->connect_id)) {
		mesh_handle_node(bytes, node);
		mesh_warn("node %s got a handle of another version of this plugin from %s%s: it "
			  "has protocol %u, and nccl-net-mesh %s here has protocol %d. Install the "
			  "same version on all nodes",
			  process->name, *node ? "node " : "a node whose version has no name in it",
			  node, mesh_handle_protocol(bytes), mesh_version(), MESH_PROTOCOL_VERSION);
	} else if (ret) {
		mesh_warn("node %s got a handle that is not this plugin's: does every rank load "
			  "libnccl-net-mesh.so? NCCL falls back to another network silently if "
			  "the plugin cannot be loaded (NCCL_DEBUG=INFO on each rank shows it)",
			  process->name);
	}
	return ret;
}

bool mesh_connect_handle_learn(struct mesh_connect *connect)
{
	const struct mesh_peer *peer;
	bool any = false;
	int i, k;

	mesh_process_assert_locked(connect->net->process);
	for (i = 0; mesh_handle_lacks_nics(&connect->handle) && i < connect->num_dials; i++) {
		peer = connect->dials[i].peer;
		for (k = 0; peer && peer->state == MESH_PEER_UP && k < peer->num_nics; k++)
			any |= mesh_handle_nic_add(&connect->handle, &peer->nics[k]);
	}
	return any;
}
