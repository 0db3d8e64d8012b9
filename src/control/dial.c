/* SPDX-License-Identifier: Apache-2.0 */
/* dial.c - makes a way to another process real. */
#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "control/dial.h"
#include "control/peer_life.h"

/* ---- ways ---------------------------------------------------------------------------------- */

void mesh_way_listener_set(struct mesh_way *way, const struct mesh_handle *handle)
{
	way->control_port = handle->control_port;
	way->listen_id = handle->listen_id;
	way->cookie = handle->cookie;
}

bool mesh_way_of_pair(const struct mesh_process *process, const struct mesh_handle *handle,
		      const struct mesh_path_candidate *pair, struct mesh_way *way)
{
	int nic = process->endpoints[pair->local].nic;

	mesh_process_assert_locked(process);
	*way = (struct mesh_way){
		.index = mesh_process_domain_index(process, nic, pair->provider),
		.address = handle->endpoints[pair->remote],
		.routed = mesh_path_class_is_routed(pair->class),
		.needs_carrier = handle->node_id != process->node_id,
	};
	way->address.provider = pair->provider;
	mesh_way_listener_set(way, handle);
	return way->index >= 0;
}

/* ---- dials --------------------------------------------------------------------------------- */

static const uint8_t may_follow[MESH_DIAL_STATES] = {
	[MESH_DIAL_OPENING] = 1 << MESH_DIAL_REST,
	[MESH_DIAL_TRYING] = 1 << MESH_DIAL_OPENING,
	[MESH_DIAL_UP] = 1 << MESH_DIAL_TRYING,
	[MESH_DIAL_DEAD] = 1 << MESH_DIAL_OPENING | 1 << MESH_DIAL_TRYING | 1 << MESH_DIAL_UP,
};

static void state_set(struct mesh_dial *dial, enum mesh_dial_state state, uint64_t now_ms)
{
	bool legal = may_follow[state] & 1 << dial->state;

	assert(legal);
	(void)legal;
	dial->state = state;
	dial->since_ms = now_ms;
}

static void dead_set(struct mesh_dial *dial, int error, uint64_t now_ms)
{
	dial->error = error;
	state_set(dial, MESH_DIAL_DEAD, now_ms);
}

MESH_HOLDS(process)
static bool lacks_carrier(const struct mesh_dial *dial)
{
	return dial->way.needs_carrier &&
	       !mesh_process_carrier_look(dial->process, mesh_way_dev(&dial->way));
}

/* Why our domain, which is not open and no longer waited for, cannot be used. */
MESH_HOLDS(process)
static int domain_error(const struct mesh_dial *dial)
{
	if (dial->process->dev_states[dial->way.index] == MESH_DEV_OPENING)
		return -EBUSY;
	return dial->process->dev_away[dial->way.index] || lacks_carrier(dial) ? -ENETDOWN
									       : -ENODEV;
}

/* Connects once our domain is open. */
MESH_HOLDS(process)
static void domain_look(struct mesh_dial *dial, bool again, uint64_t now_ms)
{
	struct mesh_process *process = dial->process;
	const struct mesh_way *way = &dial->way;
	int ret;

	if (!process->domains[way->index] && process->events->opens(process, way->index, again))
		return;
	ret = process->domains[way->index] ? mesh_peer_get(process, way, &dial->peer)
					   : domain_error(dial);
	if (ret) {
		dial->peer = NULL;
		dead_set(dial, ret, now_ms);
		return;
	}
	state_set(dial, MESH_DIAL_TRYING, now_ms);
}

int mesh_dial_begin(struct mesh_dial *dial, struct mesh_process *process,
		    const struct mesh_way *way, bool again, uint64_t now_ms)
{
	int ret = -ENETDOWN;

	mesh_process_assert_locked(process);
	dial->process = process;
	dial->way = *way;
	state_set(dial, MESH_DIAL_OPENING, now_ms);
	if (!lacks_carrier(dial)) {
		domain_look(dial, again, now_ms);
		ret = dial->error;
	}
	if (ret)
		mesh_dial_end(dial);
	return ret;
}

enum mesh_dial_state mesh_dial_look(struct mesh_dial *dial, uint64_t now_ms)
{
	const struct mesh_peer *peer;

	if (dial->state == MESH_DIAL_OPENING)
		domain_look(dial, false, now_ms);
	peer = dial->peer;
	if (!peer || dial->state == MESH_DIAL_DEAD)
		return dial->state;
	if (peer->state == MESH_PEER_LOST || peer->refusal)
		dead_set(dial, 0, now_ms);
	else if (dial->state == MESH_DIAL_TRYING && peer->state == MESH_PEER_UP)
		state_set(dial, MESH_DIAL_UP, now_ms);
	return dial->state;
}

bool mesh_dial_is_vain(const struct mesh_dial *dial, uint64_t now_ms)
{
	if (dial->state != MESH_DIAL_TRYING)
		return dial->state == MESH_DIAL_DEAD;
	return dial->peer->first_refused_ms ||
	       mesh_clock_elapsed_ms(dial->since_ms, now_ms) >= MESH_DIAL_MS;
}

void mesh_dial_end(struct mesh_dial *dial)
{
	if (dial->peer)
		mesh_peer_put(dial->peer);
	*dial = (struct mesh_dial){0};
}
