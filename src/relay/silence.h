/* SPDX-License-Identifier: Apache-2.0 */
/*
 * silence.h - whether the process of the next relay of a circuit runs. Its kernel answers also
 * while it is stopped, so its engine is asked, over the control connection.
 *
 * Each relay answers for itself at once, and for the relay behind it by what that has answered. So
 * the end that asks learns which relay is stopped, wherever it is. The node at the other end of the
 * circuit is not asked: nothing fails because that one is stopped.
 */
#ifndef MESH_RELAY_SILENCE_H
#define MESH_RELAY_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "control/peer.h"
#include "wire/frame.h"

/* What an answer says of those behind the relay holds for so long: longer than any pause. */
#define MESH_SILENCE_FRESH_MS 4000

/* Of one direction of a circuit; process->lock covers it. Zeros: nothing was asked. */
struct mesh_silence {
	uint64_t sent_ms;   /* when the latest question was sent */
	uint64_t asked_ms;  /* since when that has had no answer; 0: it has one */
	uint64_t looked_ms; /* of the last mesh_silence_look() */
	/* When the latest answer came, if it names a relay that does not answer; else 0. */
	uint64_t behind_ms;
	struct mesh_frame_circuit *behind; /* that one; owned: few paths ever have it */
};

/** Nothing was asked; frees what was answered. */
void mesh_silence_clear(struct mesh_silence *silence);

/**
 * The caller looks at it, and expects to do so again within @gap_ms: if that was not so, this
 * process itself may have been stopped, and the time until now does not count. What was known
 * before @since_ms is forgotten.
 */
void mesh_silence_look(struct mesh_silence *silence, uint64_t gap_ms, uint64_t since_ms,
		       uint64_t now_ms);

/**
 * Asks the relay, unless it still owes an answer, or was asked less than @pause_ms ago.
 * process->lock held.
 *
 * @to: the relay's id of the circuit
 */
MESH_HOLDS(process)
void mesh_silence_ask(struct mesh_silence *silence, struct mesh_peer *relay, uint32_t to,
		      uint64_t pause_ms, uint64_t now_ms);

/** ANSWER came. Without memory for it, it names none. */
void mesh_silence_answered(struct mesh_silence *silence, const struct mesh_frame_circuit *answer,
			   uint64_t now_ms);

/**
 * Returns true if the relay, or one behind it, is stopped: @found, if not NULL, receives which one
 * and who says so.
 */
MESH_HOLDS(process)
bool mesh_silence_is_long(const struct mesh_silence *silence, const struct mesh_peer *relay,
			  uint64_t now_ms, struct mesh_frame_circuit *found);

/** The same for the relay itself. */
MESH_HOLDS(process)
bool mesh_silence_is_next(const struct mesh_silence *silence, const struct mesh_peer *relay,
			  uint64_t now_ms);

#endif
