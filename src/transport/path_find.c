/* SPDX-License-Identifier: Apache-2.0 */
/* path_find.c - finds the path that a frame names. */
#include "control/process.h"
#include "transport/credit.h"
#include "transport/path_find.h"
#include "transport/path_relayed.h"
#include "transport/receive.h"

struct mesh_path *mesh_comm_path_find(struct mesh_peer *peer, uint32_t id)
{
	struct mesh_sink *sink;
	struct mesh_path *path;

	mesh_process_assert_locked(peer->process);
	mesh_domain_lock(peer->domain);
	sink = mesh_sink_find(peer->domain, id);
	mesh_domain_unlock(peer->domain);
	if (!sink ||
	    (sink->message != mesh_credit_message && sink->message != mesh_receive_message &&
	     sink->message != mesh_path_relayed_message))
		return NULL;
	path = mesh_path_of_sink(sink); /* it is removed with process->lock held */
	return path->peer == peer ? path : NULL;
}
