/* SPDX-License-Identifier: Apache-2.0 */
/*
 * searching.h - asks the whole mesh for its links, while a round of questions
 * to our neighbours goes on (asking.h): from the same sockets, at the same
 * times.
 */
#ifndef MESH_NEIGHBOURS_SEARCHING_H
#define MESH_NEIGHBOURS_SEARCHING_H

#include <stdbool.h>
#include <stdint.h>

#include "neighbours/asking.h"
#include "neighbours/explore.h"

struct mesh_searching {
	struct mesh_asking *asking;
	struct mesh_explore explore; /* zeros before the first search; its result stays */
	uint64_t began_ms;	     /* of the latest search; 0: none */
	bool goes_on;
	uint8_t tries; /* questions so far */
	int num_own;   /* of our own links that are entered */
};

/** @asking: must stay as long as @searching is used */
void mesh_searching_init(struct mesh_searching *searching, struct mesh_asking *asking);

/** Frees what was found. */
void mesh_searching_finish(struct mesh_searching *searching);

/**
 * Begins a search in place of the present one, and a round of @asking; the hops
 * that have failed stay known. It ends when all nodes have answered, or with
 * the round.
 *
 * Returns 0 or a negative errno.
 */
int mesh_searching_begin(struct mesh_searching *searching, uint64_t now_ms);

/** Sends what is due; to be called after each step of @asking. */
void mesh_searching_advance(struct mesh_searching *searching, uint64_t now_ms);

/**
 * True while a node has not answered that was reported, and may still do so:
 * its answer may be under way, or wait for those of its neighbours, or the
 * question may be lost.
 */
bool mesh_searching_expects(const struct mesh_searching *searching);

#endif
