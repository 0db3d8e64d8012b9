/* SPDX-License-Identifier: Apache-2.0 */
/* comm_inside.h - the internal state of a comm that tests check. */
#ifndef MESH_TESTS_COMM_INSIDE_H
#define MESH_TESTS_COMM_INSIDE_H

#include "transport/comm.h"

/*
 * What tests look at, or change, inside a comm: only comm_inside.c knows where it is. Nothing is
 * locked: the test does that, if another thread works on the comm.
 */
struct comm_inside {
	struct mesh_lock *lock;
	const _Atomic(int) *error;
	bool *closing;
	enum mesh_end *peer_end;
	uint64_t *peer_end_ms;
	const char *peer_name;
	const size_t *eager_limit; /* bytes */
	const _Atomic(int) *num_paths;
	const size_t *segment_max;
	/* Send. */
	const uint32_t *peer_posted;
	uint32_t *writes_started;
	/* Receive. */
	const uint32_t *granted;
	const uint32_t *eager_run;
	const uint32_t *writes_arrived;
};
struct comm_inside comm_inside(struct mesh_comm *comm);

/* The same for one of its paths. */
struct path_inside {
	struct mesh_counters *counters;
	struct mesh_domain *domain;
	struct mesh_flow *flow;
	const struct mesh_sink *sink;
	const uint32_t *remote_id, *remote_token;
	enum mesh_path_state state;
};
struct path_inside comm_path(struct mesh_comm *comm, int path);

#endif
