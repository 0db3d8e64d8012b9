/* SPDX-License-Identifier: Apache-2.0 */
/* silence.c - whether the process of the next relay of a circuit runs. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/link.h"
#include "control/peer_send.h"
#include "control/process.h"
#include "relay/silence.h"

void mesh_silence_clear(struct mesh_silence *silence)
{
	free(silence->behind);
	memset(silence, 0, sizeof(*silence));
}

void mesh_silence_look(struct mesh_silence *silence, uint64_t gap_ms, uint64_t since_ms,
		       uint64_t now_ms)
{
	if (silence->asked_ms && mesh_clock_elapsed_ms(silence->looked_ms, now_ms) > gap_ms)
		silence->asked_ms = now_ms;
	silence->looked_ms = now_ms;
	if (silence->behind_ms < since_ms)
		silence->behind_ms = 0;
}

void mesh_silence_ask(struct mesh_silence *silence, struct mesh_peer *relay, uint32_t to,
		      uint64_t pause_ms, uint64_t now_ms)
{
	struct mesh_frame frame;

	mesh_process_assert_locked(relay->process);
	if (silence->asked_ms ||
	    (silence->sent_ms && mesh_clock_elapsed_ms(silence->sent_ms, now_ms) < pause_ms))
		return;
	silence->sent_ms = silence->asked_ms = now_ms;
	memset(&frame, 0, sizeof(frame));
	frame.circuit.to_comm = to;
	frame.circuit.event = MESH_CIRCUIT_ASK;
	mesh_peer_send(relay, &frame, MESH_FRAME_CIRCUIT);
}

void mesh_silence_answered(struct mesh_silence *silence, const struct mesh_frame_circuit *answer,
			   uint64_t now_ms)
{
	silence->asked_ms = 0;
	silence->behind_ms = 0;
	if (!*answer->lost)
		return;
	if (!silence->behind)
		silence->behind = malloc(sizeof(*silence->behind));
	if (!silence->behind)
		return;
	*silence->behind = *answer;
	silence->behind_ms = now_ms;
}

bool mesh_silence_is_long(const struct mesh_silence *silence, const struct mesh_peer *relay,
			  uint64_t now_ms, struct mesh_frame_circuit *found)
{
	const struct mesh_process *process = relay->process;
	struct mesh_frame_circuit own = {.event = MESH_CIRCUIT_ANSWER};
	bool is_long, behind;

	mesh_process_assert_locked(process);
	behind = silence->behind_ms &&
		 mesh_clock_elapsed_ms(silence->behind_ms, now_ms) < MESH_SILENCE_FRESH_MS;
	is_long = silence->asked_ms && mesh_clock_elapsed_ms(silence->asked_ms, now_ms) >=
					       mesh_link_resumed_limit_ms(process);
	if (!is_long && !behind)
		return false;
	memcpy(own.lost, relay->name, sizeof(own.lost));
	memcpy(own.by, process->name, sizeof(own.by));
	own.lost_node = relay->node_id;
	own.by_node = process->node_id;
	if (found)
		*found = is_long ? own : *silence->behind;
	return true;
}

bool mesh_silence_is_next(const struct mesh_silence *silence, const struct mesh_peer *relay,
			  uint64_t now_ms)
{
	struct mesh_frame_circuit found;

	return mesh_silence_is_long(silence, relay, now_ms, &found) &&
	       found.lost_node == relay->node_id;
}
