/* SPDX-License-Identifier: Apache-2.0 */
/* shape_order.c - a walk along the cables of a regular shape that visits each node once. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plan/shape.h"
#include "plan/shape_order.h"

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
