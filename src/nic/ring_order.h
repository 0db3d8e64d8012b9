/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_order.h - an order of nodes in which each shares a link with the next, and the last with the
 * first, as NCCL's rings want it. Pure.
 *
 * It serves a hint in the log while NCCL's thread waits, so it is limited; `fi_mesh plan` searches
 * longer.
 */
#ifndef MESH_NIC_RING_ORDER_H
#define MESH_NIC_RING_ORDER_H

#include <stdint.h>

#define MESH_RING_NODES_MAX 64

/* Which nodes share a link: bit k of joined[i], and bit i of joined[k]. */
struct mesh_ring {
	int num;
	uint64_t joined[MESH_RING_NODES_MAX];
};

/** Notes that two nodes share a link. */
void mesh_ring_join(struct mesh_ring *ring, int a, int b);

/**
 * How many nodes share no link with the one after them in @order, the last with the first.
 *
 * @first: the place of the first of them, if there is one; may be NULL
 */
int mesh_ring_gaps(const struct mesh_ring *ring, const int *order, int *first);

/**
 * Finds an order without a gap, else one with a single gap, within some milliseconds. Node 0 comes
 * first in an order without a gap.
 *
 * @order: receives ring->num nodes
 *
 * Returns the number of its gaps, 0 or 1; -1: none was found.
 */
int mesh_ring_order_find(const struct mesh_ring *ring, int *order);

#endif
