/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - the regular meshes that people cable: their names, needs and cables. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "common/output.h"
#include "plan/shape.h"
#include "plan/topology.h"

#define TORUS "torus"

static const char *const shape_names[] = {
	[MESH_SHAPE_TRIANGLE] = "triangle", [MESH_SHAPE_FULL] = "full", [MESH_SHAPE_RING] = "ring",
	[MESH_SHAPE_LINE] = "line",	    [MESH_SHAPE_STAR] = "star", [MESH_SHAPE_TORUS] = TORUS,
	[MESH_SHAPE_CABLES] = "cables",
};

/* Reads "3x4". */
static int sizes_parse(const char *text, struct mesh_shape *shape)
{
	char *end;
	long size;

	do {
		if (shape->num_sizes == MESH_TORUS_DIMENSIONS_MAX || *text < '0' || *text > '9')
			return -EINVAL;
		errno = 0;
		size = strtol(text, &end, 10);
		if (errno || size < 1 || size > MESH_TOPOLOGY_NODES_MAX)
			return -EINVAL;
		shape->sizes[shape->num_sizes++] = (int)size;
		text = end + 1;
	} while (*end == 'x');
	return *end ? -EINVAL : 0;
}

int mesh_shape_parse(const char *text, struct mesh_shape *shape)
{
	struct mesh_shape result = {.parallel = 1};
	int kind;

	for (kind = MESH_SHAPE_TRIANGLE; kind < MESH_SHAPE_TORUS; kind++) {
		if (strcmp(text, shape_names[kind]))
			continue;
		result.kind = (enum mesh_shape_kind)kind;
		*shape = result;
		return 0;
	}
	result.kind = MESH_SHAPE_TORUS;
	if (!strncmp(text, TORUS ":", strlen(TORUS ":")) &&
	    !sizes_parse(text + strlen(TORUS ":"), &result)) {
		*shape = result;
		return 0;
	}
	mesh_warn("unknown shape \"%.60s\": triangle, full, ring, line, star, or torus:3x4 (up to "
		  "%d sizes)",
		  text, MESH_TORUS_DIMENSIONS_MAX);
	return -EINVAL;
}

const char *mesh_shape_text(const struct mesh_shape *shape, char *text)
{
	int i;

	snprintf(text, MESH_SHAPE_TEXT_MAX, "%s", shape_names[shape->kind]);
	for (i = 0; i < shape->num_sizes; i++)
		output_add(text, MESH_SHAPE_TEXT_MAX, "%c%d", i ? 'x' : ':', shape->sizes[i]);
	return text;
}

/* The number of neighbours of a node in a ring of @size nodes; two nodes have one cable. */
static int ring_neighbours(int size)
{
	return size > 2 ? 2 : size - 1;
}

int mesh_shape_num_ports(const struct mesh_shape *shape, int num_nodes)
{
	int i, neighbours = 0;

	switch (shape->kind) {
	case MESH_SHAPE_FULL:
	case MESH_SHAPE_STAR:
		neighbours = num_nodes - 1;
		break;
	case MESH_SHAPE_TORUS:
		for (i = 0; i < shape->num_sizes; i++)
			neighbours += ring_neighbours(shape->sizes[i]);
		break;
	case MESH_SHAPE_TRIANGLE:
	case MESH_SHAPE_RING:
	case MESH_SHAPE_LINE:
		neighbours = ring_neighbours(num_nodes);
		break;
	case MESH_SHAPE_CABLES:
		break;
	}
	return neighbours * shape->parallel;
}

int64_t mesh_shape_num_cables(const struct mesh_shape *shape, int num_nodes)
{
	if (shape->kind == MESH_SHAPE_CABLES)
		return -1;
	if (shape->kind == MESH_SHAPE_LINE || shape->kind == MESH_SHAPE_STAR)
		return (int64_t)(num_nodes - 1) * shape->parallel;
	return (int64_t)num_nodes * mesh_shape_num_ports(shape, num_nodes) / 2;
}

/* True if the shape can have this many nodes; else logs why not. */
static int shape_check(const struct mesh_shape *shape, int num_nodes)
{
	char text[MESH_SHAPE_TEXT_MAX];
	int64_t product = 1;
	int i;

	if (shape->kind == MESH_SHAPE_CABLES || shape->parallel < 1 ||
	    shape->parallel > MESH_PARALLEL_MAX) {
		mesh_warn("1 to %d cables join two neighbours", MESH_PARALLEL_MAX);
		return -EINVAL;
	}
	for (i = 0; i < shape->num_sizes && product <= MESH_TOPOLOGY_NODES_MAX; i++)
		product *= shape->sizes[i];
	if (shape->kind == MESH_SHAPE_TORUS && product != num_nodes) {
		mesh_warn("%s has %s%lld nodes, not %d", mesh_shape_text(shape, text),
			  product > MESH_TOPOLOGY_NODES_MAX ? "more than " : "",
			  (long long)(product > MESH_TOPOLOGY_NODES_MAX ? MESH_TOPOLOGY_NODES_MAX
									: product),
			  num_nodes);
		return -EINVAL;
	}
	if (num_nodes < 2 || num_nodes > MESH_TOPOLOGY_NODES_MAX) {
		mesh_warn("a mesh has 2 to %d nodes, not %d", MESH_TOPOLOGY_NODES_MAX, num_nodes);
		return -EINVAL;
	}
	if (shape->kind == MESH_SHAPE_TRIANGLE && num_nodes != 3) {
		mesh_warn("a triangle has 3 nodes, not %d; full, ring and line take any number",
			  num_nodes);
		return -EINVAL;
	}
	if (mesh_shape_num_cables(shape, num_nodes) > MESH_TOPOLOGY_CABLES_MAX) {
		mesh_warn("%s of %d nodes has %lld cables; the limit is %d",
			  mesh_shape_text(shape, text), num_nodes,
			  (long long)mesh_shape_num_cables(shape, num_nodes),
			  MESH_TOPOLOGY_CABLES_MAX);
		return -E2BIG;
	}
	return 0;
}

/* Adds the cables between two neighbours; their ports come in the order of the keys. */
static int neighbours_join(const struct mesh_shape *shape, struct mesh_topology *topology, int a,
			   int key_a, int b, int key_b)
{
	int i, ret = 0;

	for (i = 0; i < shape->parallel && !ret; i++)
		ret = mesh_topology_add(topology, (struct mesh_cable_end){a, key_a},
					(struct mesh_cable_end){b, key_b});
	return ret;
}

/* Port 0 is cabled to the previous node, port 1 to the next one. */
static int ring_build(const struct mesh_shape *shape, struct mesh_topology *topology, bool closed)
{
	int i, ret = 0, num = topology->num_nodes;

	if (closed && num > 2)
		ret = neighbours_join(shape, topology, num - 1, 1, 0, 0);
	for (i = 1; i < num && !ret; i++)
		ret = neighbours_join(shape, topology, i - 1, 1, i, 0);
	return ret;
}

/* Ports of the first @hubs nodes are cabled to all others in their order. */
static int full_build(const struct mesh_shape *shape, struct mesh_topology *topology, int hubs)
{
	int a, b, ret = 0;

	for (a = 0; a < hubs; a++)
		for (b = a + 1; b < topology->num_nodes && !ret; b++)
			ret = neighbours_join(shape, topology, a, b, b, a);
	return ret;
}

/* Ports: previous and next in the dimension that varies fastest, then in the next dimension. */
static int torus_build(const struct mesh_shape *shape, struct mesh_topology *topology)
{
	int node, d, ret = 0;

	for (node = 0; node < topology->num_nodes; node++) {
		int stride = 1;

		for (d = shape->num_sizes - 1; d >= 0 && !ret; d--) {
			int size = shape->sizes[d], at = node / stride % size;
			int next = node + (at + 1 < size ? stride : -at * stride);
			int key = 2 * (shape->num_sizes - 1 - d);

			if (size > 2 || (size == 2 && at == 0))
				ret = neighbours_join(shape, topology, node, key + 1, next, key);
			stride *= size;
		}
	}
	return ret;
}

int mesh_shape_build(const struct mesh_shape *shape, int num_nodes, struct mesh_topology *topology)
{
	int ret = shape_check(shape, num_nodes);

	if (!ret)
		ret = mesh_topology_init(topology, num_nodes);
	if (ret)
		return ret;
	switch (shape->kind) {
	case MESH_SHAPE_TRIANGLE:
	case MESH_SHAPE_RING:
		ret = ring_build(shape, topology, true);
		break;
	case MESH_SHAPE_LINE:
		ret = ring_build(shape, topology, false);
		break;
	case MESH_SHAPE_FULL:
		ret = full_build(shape, topology, num_nodes);
		break;
	case MESH_SHAPE_STAR:
		ret = full_build(shape, topology, 1);
		break;
	case MESH_SHAPE_TORUS:
		ret = torus_build(shape, topology);
		break;
	case MESH_SHAPE_CABLES:
		break;
	}
	if (!ret)
		ret = mesh_topology_number_ports(topology);
	if (ret)
		mesh_topology_free(topology);
	return ret;
}

/* Appends one shape if it fits; returns the new length. */
static size_t fitting_append(const struct mesh_shape *shape, int num_nodes, int num_ports,
			     char *text, size_t size, size_t len)
{
	char name[MESH_SHAPE_TEXT_MAX];
	int needed = mesh_shape_num_ports(shape, num_nodes);

	if (needed > num_ports || len + MESH_SHAPE_TEXT_MAX + 24 > size)
		return len;
	return len + (size_t)snprintf(text + len, size - len, "%s%s (%d port%s)", len ? ", " : "",
				      mesh_shape_text(shape, name), needed, needed > 1 ? "s" : "");
}

const char *mesh_shapes_fitting(int num_nodes, int num_ports, int parallel, char *text, size_t size)
{
	struct mesh_shape shape = {.kind = MESH_SHAPE_FULL, .parallel = parallel};
	size_t len;
	int rows;

	snprintf(text, size, "%s", "");
	len = fitting_append(&shape, num_nodes, num_ports, text, size, 0);
	for (rows = 2; rows * rows <= num_nodes; rows++) {
		shape = (struct mesh_shape){.kind = MESH_SHAPE_TORUS,
					    .sizes = {rows, num_nodes / rows},
					    .num_sizes = 2,
					    .parallel = parallel};
		if (num_nodes % rows == 0 && num_nodes > 4)
			len = fitting_append(&shape, num_nodes, num_ports, text, size, len);
	}
	shape = (struct mesh_shape){.kind = MESH_SHAPE_RING, .parallel = parallel};
	len = fitting_append(&shape, num_nodes, num_ports, text, size, len);
	shape.kind = MESH_SHAPE_LINE;
	fitting_append(&shape, num_nodes, num_ports, text, size, len);
	if (!*text)
		snprintf(text, size, "none");
	return text;
}

/* ---- ranks along a shape ---------------------------------------------------------------- */

/*
 * A grid of rows * columns whose rows and columns are rings, walked row by row: each row from its
 * first column all round, which ends one column further left (or right, when the row is
 * walked backward), where the next row starts. The walk closes if the shifts add up to a
 * multiple of the number of columns: rows - 2 * backward = 0 or columns.
 *
 * Returns how many rows have to be walked backward, or -1 if no number does.
 */
static int backward_rows(int rows, int columns)
{
	if (rows % 2 == 0)
		return rows / 2;
	if (columns % 2 == 1 && rows >= columns)
		return (rows - columns) / 2;
	return -1;
}

/*
 * Walks the grid. @transposed: element (row, column) is column * rows + row, not
 * row * columns + column.
 */
static void grid_walk(int rows, int columns, int backward, bool transposed, int *walk)
{
	int row, i, column = 0, count = 0;

	for (row = 0; row < rows; row++) {
		int step = row < backward ? columns - 1 : 1;

		for (i = 0; i < columns; i++) {
			if (i)
				column = (column + step) % columns;
			walk[count++] = transposed ? column * rows + row : row * columns + column;
		}
	}
}

/*
 * A closed walk through the product of two rings. One of the three cases always holds: an even
 * side as rows; both odd, the longer as rows.
 */
static void product_walk(int rows, int columns, int *walk)
{
	int backward = backward_rows(rows, columns);

	if (backward >= 0)
		grid_walk(rows, columns, backward, false, walk);
	else
		grid_walk(columns, rows, backward_rows(columns, rows), true, walk);
}

/*
 * Dimension by dimension: the walk through the first ones is a ring in itself, and the product of
 * that ring with the next dimension is walked in turn.
 */
static int torus_order(const struct mesh_shape *shape, int num_nodes, int *order)
{
	int *walk = calloc((size_t)num_nodes, sizeof(*walk));
	int *outer = calloc((size_t)num_nodes, sizeof(*outer));
	int d, i, done = 1;

	if (!walk || !outer) {
		free(walk);
		free(outer);
		return -ENOMEM;
	}
	order[0] = 0;
	for (d = 0; d < shape->num_sizes; d++) {
		int size = shape->sizes[d];

		memcpy(outer, order, (size_t)done * sizeof(*outer));
		if (done == 1 || size == 1)
			for (i = 0; i < done * size; i++)
				walk[i] = i;
		else
			product_walk(done, size, walk);
		for (i = 0; i < done * size; i++)
			order[i] = outer[walk[i] / size] * size + walk[i] % size;
		done *= size;
	}
	free(walk);
	free(outer);
	return 0;
}

int mesh_shape_order(const struct mesh_shape *shape, int num_nodes, int *order)
{
	int i;

	if (shape->kind == MESH_SHAPE_CABLES)
		return -EINVAL;
	if (shape->kind == MESH_SHAPE_TORUS)
		return torus_order(shape, num_nodes, order);
	for (i = 0; i < num_nodes; i++)
		order[i] = i;
	return 0;
}
