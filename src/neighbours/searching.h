/* SPDX-License-Identifier: Apache-2.0 */
/*
 * searching.h - explores the mesh (explore.h) over UDP, beginning with the neighbours that have
 * answered (asking.h), in the engine of these. Without one, the caller waits on the sockets and
 * until it is due.
 */
#ifndef MESH_NEIGHBOURS_SEARCHING_H
#define MESH_NEIGHBOURS_SEARCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "neighbours/asking.h"
#include "neighbours/explore.h"

struct mesh_searching {
	const struct mesh_asking *asking;
	struct mesh_explore explore; /* zeros before the first search; its result stays */
	struct mesh_asking_socket sockets[MESH_ASKING_SOCKETS];
	struct mesh_timer timer;
	uint64_t began_ms;
	uint64_t until_ms; /* it goes on; 0: it does not */
	int num_own;	   /* of our own links that are entered */
	int taken;	   /* datagrams */
};

/** @asking: must stay as long as @searching is used */
void mesh_searching_init(struct mesh_searching *searching, const struct mesh_asking *asking);

/** Closes the sockets and frees what was found. */
void mesh_searching_finish(struct mesh_searching *searching);

/**
 * Begins a search in place of the present one; the hops that have failed stay known. The caller
 * begins a round of @asking as well, and calls mesh_searching_advance() after each of its steps.
 *
 * @target: a node id; 0: the whole mesh
 * @limit_ms: it ends after so many milliseconds at the latest
 *
 * Returns 0 or a negative errno.
 */
int mesh_searching_begin(struct mesh_searching *searching, uint64_t target, uint64_t limit_ms,
			 uint64_t now_ms);

/** Sends what is due, also after asking has heard more. Ends the search when it is over. */
void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms);

/** Takes the answers that have arrived, and advances. */
void mesh_searching_take(struct mesh_searching *searching, int fd, uint64_t now_ms);

/** When mesh_searching_advance() is to be called; UINT64_MAX: it does not search. */
uint64_t mesh_searching_due_ms(const struct mesh_searching *searching, uint64_t now_ms);

#endif
