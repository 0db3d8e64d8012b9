/* SPDX-License-Identifier: Apache-2.0 */
/* arrange.c - chooses circle or grid, and the places of the vertices. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/topology.h"
#include "topo/arrange.h"
#include "topo/graph.h"
#include "topo/map.h"

/* With more boxes than this, a circle is mostly empty. */
#define CIRCLE_VERTICES_MAX 12
/* With more cables at a node than this, a grid has no places left for their tags. */
#define GRID_DEGREE_MAX 8
/* Nodes of a line that stand in one row. */
#define ROW_MAX 5

/* What is arranged. */
struct arrangement {
	struct layout_graph *graph;
	struct layout_vertex *vertices; /* of the graph */
	int *order;			/* owned by the caller */
};

/* The boxes and lines as a topology, to find an order along the cables. */
static int topology_load(const struct arrangement *made, struct mesh_topology *topology)
{
	int i, ret = mesh_topology_init(topology, made->graph->num_vertices);

	for (i = 0; i < made->graph->num_edges && !ret; i++) {
		const int *ends = made->graph->edges[i].ends;

		ret = mesh_topology_add(topology, (struct mesh_cable_end){ends[0], 0},
					(struct mesh_cable_end){ends[1], 0});
		if (ret)
			mesh_topology_free(topology);
	}
	return ret;
}

static void cell_set(struct arrangement *made, int vertex, int row, int column)
{
	made->vertices[vertex].row = row;
	made->vertices[vertex].column = column;
}

/*
 * The last two sizes of a torus are rows and columns of a sheet; sheets of further dimensions lie
 * beside and below each other.
 */
static void torus_arrange(const struct topo_map *map, struct arrangement *made)
{
	const struct mesh_shape *shape = &map->shape;
	int columns = shape->sizes[shape->num_sizes - 1], node;
	int rows = shape->num_sizes > 1 ? shape->sizes[shape->num_sizes - 2] : 1;
	int sheets = map->num_nodes / (rows * columns);
	int beside = (int)ceil(sqrt((double)sheets));

	for (node = 0; node < map->num_nodes; node++) {
		int sheet = node / (rows * columns), at = node % (rows * columns);

		cell_set(made, node, sheet / beside * rows + at / columns,
			 sheet % beside * columns + at % columns);
	}
}

/* Rows from left to right and back, so that vertices that follow each other are adjacent. */
static void snake_arrange(struct arrangement *made, int columns)
{
	int i;

	for (i = 0; i < made->graph->num_vertices; i++) {
		int row = i / columns, column = i % columns;

		cell_set(made, made->order[i], row, row % 2 ? columns - 1 - column : column);
	}
}

/* A snake whose first column leads back, so that the last vertex is also adjacent to the first. */
static void comb_arrange(struct arrangement *made, int rows, int columns)
{
	int i, inner = (rows - 1) * (columns - 1);

	for (i = 0; i < rows * columns; i++) {
		int k = i - columns, row = k < 0 ? 0 : 1 + k / (columns - 1);

		if (k < 0)
			cell_set(made, made->order[i], 0, i);
		else if (k < inner && row % 2)
			cell_set(made, made->order[i], row, columns - 1 - k % (columns - 1));
		else if (k < inner)
			cell_set(made, made->order[i], row, 1 + k % (columns - 1));
		else
			cell_set(made, made->order[i], rows - 1 - (k - inner), 0);
	}
}

/* An even number of rows that divides @num and does not make a long strip; 0 if there is none. */
static int comb_rows(int num)
{
	int rows = (int)sqrt((double)num) & ~1;

	for (; rows >= 2 && num / rows <= 3 * rows; rows -= 2)
		if (num % rows == 0)
			return rows;
	return 0;
}

static void grid_arrange(struct arrangement *made, enum mesh_rank_order_kind kind)
{
	int num = made->graph->num_vertices, rows = comb_rows(num);

	if (num <= ROW_MAX)
		snake_arrange(made, num);
	else if (num <= CIRCLE_VERTICES_MAX)
		snake_arrange(made, (num + 1) / 2);
	else if (kind == MESH_ORDER_RING && rows)
		comb_arrange(made, rows, num / rows);
	else
		snake_arrange(made, (int)ceil(sqrt((double)num) * 1.25));
}

static int order_load(struct arrangement *made, const struct mesh_topology *topology,
		      enum mesh_rank_order_kind *kind)
{
	int num = topology->num_nodes, i, ret;
	struct mesh_rank_order found;
	int *natural = calloc((size_t)num, sizeof(*natural));

	if (!natural)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		natural[i] = i;
	ret = mesh_rank_order_find(topology, natural, &found);
	free(natural);
	if (ret)
		return ret;
	*kind = found.kind;
	made->order = found.nodes;
	return 0;
}

int topo_arrange(const struct topo_map *map, struct layout_graph *graph,
		 struct layout_vertex *vertices, int **order)
{
	struct arrangement made = {graph, vertices, NULL};
	bool torus = map->shape.kind == MESH_SHAPE_TORUS && map->shape.num_sizes > 1;
	enum mesh_rank_order_kind kind;
	struct mesh_topology topology;
	int degree, num, ret;

	ret = topology_load(&made, &topology);
	if (ret)
		return ret;
	ret = order_load(&made, &topology, &kind);
	degree = mesh_topology_max_degree(&topology);
	num = graph->num_vertices;
	if (!ret && torus && num == map->num_nodes) {
		graph->grid = true;
		torus_arrange(map, &made);
	} else if (!ret) {
		bool line = degree <= 2 && kind != MESH_ORDER_RING;

		graph->grid = line || (num > CIRCLE_VERTICES_MAX && degree <= GRID_DEGREE_MAX);
		grid_arrange(&made, kind);
	}
	*order = made.order;
	graph->order = made.order;
	mesh_topology_free(&topology);
	return ret;
}
