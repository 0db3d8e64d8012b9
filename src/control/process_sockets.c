/* SPDX-License-Identifier: Apache-2.0 */
/* process_sockets.c - the list of this process's sockets, kept for a while. */
#include "base/clock.h"
#include "control/process_sockets.h"

/* Lists that are older than this are made again. */
#define MAX_AGE_MS 1000

const struct mesh_socket_table *mesh_process_sockets(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_socket_table *sockets = &process->ports.sockets;

	mesh_process_assert_locked(process);
	if (!sockets->taken_ms || mesh_clock_elapsed_ms(sockets->taken_ms, now_ms) >= MAX_AGE_MS)
		mesh_socket_table_take(sockets, now_ms);
	return sockets;
}

void mesh_process_sockets_free(struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	mesh_socket_table_free(&process->ports.sockets);
	/* The process may start again, with an engine that knows no timer. */
	mesh_engine_timer_cancel(&process->engine, &process->ports.timer);
}
