/* SPDX-License-Identifier: Apache-2.0 */
/* peer_port.c - reports to peers which TCP port our provider connected from. */
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "control/peer_port.h"
#include "control/peer_send.h"
#include "fabric/provider_sockets.h"

/*
 * Between two lists for reports; the first report of a while does not wait. If a list takes long,
 * the pause is longer, so that lists take at most a fortieth of the engine's time.
 */
#define PAUSE_MS 100
#define PAUSE_RATIO 40

MESH_HOLDS(process)
static void port_send(struct mesh_peer *peer)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.port.port =
		mesh_remote_dialled_port(&peer->process->ports.sockets, peer->domain, peer->remote);
	if (frame.port.port)
		mesh_peer_send(peer, &frame, MESH_FRAME_PORT);
}

/* The engine's thread, without process->lock. */
static void ports_find(void *owner)
{
	struct mesh_process *process = owner;
	struct mesh_socket_table sockets = {.entries = NULL};
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_peer *peer;

	mesh_socket_table_take(&sockets, begin_ms);
	mesh_process_lock(process);
	process->ports.pause_ms = PAUSE_RATIO * mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms());
	if (process->ports.pause_ms < PAUSE_MS)
		process->ports.pause_ms = PAUSE_MS;
	mesh_socket_table_free(&process->ports.sockets);
	process->ports.sockets = sockets;
	while ((peer = LIST_FIRST(&process->ports.due))) {
		mesh_peer_port_cancel(peer);
		port_send(peer);
	}
	mesh_process_unlock(process);
}

MESH_HOLDS(process)
static void ports_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_process_ports *ports =
		mesh_container_of(timer, struct mesh_process_ports, timer);
	struct mesh_process *process = mesh_container_of(ports, struct mesh_process, ports);

	(void)now_ms;
	mesh_engine_errand(&process->engine, ports_find);
}

void mesh_peer_port_report(struct mesh_peer *peer)
{
	struct mesh_process_ports *ports = &peer->process->ports;

	mesh_process_assert_locked(peer->process);
	/* verbs has no sockets. */
	if (peer->port_due || peer->domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	peer->port_due = true;
	LIST_INSERT_HEAD(&ports->due, peer, port_entry);
	ports->timer.expired = ports_expired;
	mesh_engine_timer_advance(&peer->process->engine, &ports->timer,
				  ports->sockets.taken_ms + ports->pause_ms);
}
