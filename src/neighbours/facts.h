/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - what the neighbours' answers say about our cables, also in words for errors. */
#ifndef MESH_NEIGHBOURS_FACTS_H
#define MESH_NEIGHBOURS_FACTS_H

#include <stdbool.h>
#include <stddef.h>

#include "neighbours/asking.h"

/** True if the answer is one of this node: a cable, or a switch, leads back. */
bool mesh_heard_is_own(const struct mesh_asking *asking, const struct mesh_heard *heard);

/**
 * Both ends of the cable of our NIC @index are on this node: another of our NICs has answered, and
 * no other node.
 *
 * @others: receives the number of other nodes' NICs that have answered
 *
 * Returns what our other NIC has answered, or NULL. If *@others is not 0, the two NICs share a wire
 * with other nodes.
 */
const struct mesh_heard *mesh_asked_own(const struct mesh_asking *asking, int index, int *others);

/**
 * Two of our cables lead to one NIC, because their far ends are in one bridge, or on one switch.
 *
 * @about: receives that NIC
 *
 * Returns the index of our other NIC that hears it, or -1.
 */
int mesh_asked_shared(const struct mesh_asking *asking, int index,
		      const struct mesh_neighbour **about);

/**
 * Writes where our cables lead, and what is wrong there, into @text of @size bytes: "Neighbours: ab
 * leads to node c (ca); ac has no answer". "" if there are no NICs. Returns @text.
 */
const char *mesh_asking_words(const struct mesh_asking *asking, char *text, size_t size);

#endif
