/* SPDX-License-Identifier: Apache-2.0 */
/* comm_inside.c - where the fields of a comm are that tests look at. */
#include "comm_inside.h"

struct comm_inside comm_inside(struct mesh_comm *comm)
{
	struct comm_inside inside = {
		.lock = &comm->lock,
		.error = &comm->error,
		.closing = &comm->closing,
		.peer_end = &comm->peer_end,
		.peer_end_ms = &comm->peer_end_ms,
		.peer_name = comm->peer_name,
		.eager_limit = &comm->eager_limit,
		.num_paths = &comm->num_paths,
		.segment_max = &comm->segment_max,
	};

	if (comm->sending) {
		inside.peer_posted = &comm->send.peer_posted;
		inside.writes_started = &comm->send.writes;
	} else {
		inside.granted = &comm->receive.granted;
		inside.eager_run = &comm->receive.eager_run;
		inside.writes_arrived = &comm->receive.writes;
	}
	return inside;
}

struct path_inside comm_path(struct mesh_comm *comm, int path)
{
	struct mesh_path *of = &comm->paths[path];

	return (struct path_inside){
		.counters = of->counters,
		.domain = of->domain,
		.flow = of->flow,
		.sink = &of->sink,
		.remote_id = &of->remote_id,
		.remote_token = &of->remote_token,
		.state = of->state,
	};
}
