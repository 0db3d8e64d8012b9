/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - this process as a relay: for whom it relays, and what all circuits share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "relay/relay.h"
#include "wire/frame.h"

int mesh_relay_open(struct mesh_process *process, uint64_t job)
{
	struct mesh_relay *relay = calloc(1, sizeof(*relay));

	mesh_process_assert_locked(process);
	if (!relay)
		return -ENOMEM;
	relay->process = process;
	relay->job = job;
	LIST_INIT(&relay->circuits);
	mesh_relay_thread_init(&relay->thread, process);
	process->relay = relay;
	return 0;
}

/* process->relay is constant while started. */
MESH_NOT_ANALYSED
void mesh_relay_stop(struct mesh_process *process)
{
	if (process->relay)
		mesh_relay_thread_stop(&process->relay->thread);
}

void mesh_relay_close(struct mesh_process *process)
{
	struct mesh_relay *relay = process->relay;

	mesh_process_assert_locked(process);
	if (!relay)
		return;
	mesh_relay_thread_finish(&relay->thread);
	process->relay = NULL;
	free(relay);
}

void mesh_relay_wake(struct mesh_relay *relay)
{
	if (!atomic_exchange(&relay->news, true))
		mesh_engine_wake(&relay->process->engine);
}

bool mesh_relay_is_used(const struct mesh_process *process)
{
	mesh_process_assert_locked(process);
	return process->relay && !LIST_EMPTY(&process->relay->circuits);
}

bool mesh_relay_admits(const struct mesh_process *process, const struct mesh_frame_hello *hello)
{
	mesh_process_assert_locked(process);
	return process->relay && process->role != MESH_PROCESS_GUEST &&
	       strcmp(process->config.relay, "off") != 0 && hello->listen_id == MESH_LISTEN_RELAY &&
	       hello->cookie == process->process_id;
}

bool mesh_relay_serves(const struct mesh_process *process, uint64_t job)
{
	mesh_process_assert_locked(process);
	if (!process->relay || !strcmp(process->config.relay, "off"))
		return false;
	return !strcmp(process->config.relay, "any") || (job && job == process->relay->job);
}
