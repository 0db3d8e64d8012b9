/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring_order.c - finds an order of nodes that follows the cables. */
#include "nic/ring_order.h"

#include "unit.h"

static struct mesh_ring ring;
static int order[MESH_RING_NODES_MAX];

static void nodes_set(int num)
{
	int i;

	memset(&ring, 0, sizeof(ring));
	ring.num = num;
	for (i = 0; i < num; i++)
		order[i] = i;
}

/* Each node is in the order once, and it has so many gaps. */
static void order_is_found(int gaps)
{
	uint64_t seen = 0;
	int i;

	assert_int_equal(mesh_ring_order_find(&ring, order), gaps);
	for (i = 0; i < ring.num; i++)
		seen |= UINT64_C(1) << order[i];
	assert_int_equal(__builtin_popcountll(seen), ring.num);
	assert_int_equal(mesh_ring_gaps(&ring, order, NULL), gaps);
}

/* A ring of cables whose nodes have other ranks: 0, 2, 1, 3. */
TEST(ring)
{
	int first = -1;

	nodes_set(4);
	mesh_ring_join(&ring, 0, 2);
	mesh_ring_join(&ring, 2, 1);
	mesh_ring_join(&ring, 1, 3);
	mesh_ring_join(&ring, 3, 0);
	assert_int_equal(mesh_ring_gaps(&ring, order, &first), 2);
	assert_int_equal(first, 0);
	order_is_found(0);
	assert_int_equal(order[0], 0);
	assert_int_equal(order[1], 2);
	assert_int_equal(order[3], 3);
}

/* The last rank and the first: nothing better than one gap. */
TEST(line)
{
	int first = -1, i;

	nodes_set(5);
	for (i = 0; i < 4; i++)
		mesh_ring_join(&ring, i, i + 1);
	assert_int_equal(mesh_ring_gaps(&ring, order, &first), 1);
	assert_int_equal(first, 4);
	order_is_found(1);
	order[0] = 1;
	order[1] = 0;
	assert_int_equal(mesh_ring_gaps(&ring, order, &first), 2); /* 0 and 2, 4 and 1 */
	assert_int_equal(first, 1);
}

TEST(star)
{
	int i;

	nodes_set(5);
	for (i = 1; i < 5; i++)
		mesh_ring_join(&ring, 0, i);
	assert_int_equal(mesh_ring_order_find(&ring, order), -1);
}

/* The largest: a torus of 8x8 whose nodes are numbered at random. */
TEST(torus)
{
	int place[MESH_RING_NODES_MAX], i, k, swap;
	uint32_t seed = 7;

	nodes_set(MESH_RING_NODES_MAX);
	for (i = 0; i < ring.num; i++)
		place[i] = i;
	for (i = ring.num - 1; i > 0; i--) {
		seed = seed * 1664525 + 1013904223;
		k = (int)(seed >> 8) % (i + 1);
		swap = place[i];
		place[i] = place[k];
		place[k] = swap;
	}
	for (i = 0; i < ring.num; i++) {
		mesh_ring_join(&ring, place[i], place[i / 8 * 8 + (i + 1) % 8]);
		mesh_ring_join(&ring, place[i], place[(i + 8) % 64]);
	}
	assert_true(mesh_ring_gaps(&ring, order, NULL) > 8);
	order_is_found(0);
}

TEST(small)
{
	nodes_set(1);
	order_is_found(0);
	nodes_set(2);
	mesh_ring_join(&ring, 0, 1);
	order_is_found(0);
}
