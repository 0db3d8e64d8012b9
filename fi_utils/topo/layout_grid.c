/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout_grid.c - boxes in rows and columns: cables between neighbours in the grid are
 * straight lines, all others have a tag at each end, so that nothing runs under a box.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "topo/graph.h"
#include "topo/layout_grid.h"

/* Space between boxes if nothing is placed there. */
#define GAP_MIN 46.0
/* Length of the piece of cable at a tag. */
#define STUB 16.0
/* Where the corner slots are, as a part of the box's width. */
#define CORNER 0.18
/* Space between a tag and other elements. */
#define AIR 8.0

/* Places on a box where the end of a cable may be. */
enum slot {
	SLOT_LEFT,
	SLOT_RIGHT,
	SLOT_TOP,
	SLOT_BOTTOM,
	SLOT_TOP_LEFT,
	SLOT_TOP_RIGHT,
	SLOT_BOTTOM_LEFT,
	SLOT_BOTTOM_RIGHT,
	NUM_SLOTS
};

struct grid {
	const struct layout_graph *graph;
	struct layout *layout;
	int (*taken)[NUM_SLOTS]; /* of each vertex: cables at that slot, owned */
	int (*slots)[2];	 /* of each edge's ends, owned */
	int (*ranks)[2];	 /* which of the cables at that slot, owned */
	int last_row, last_column;
	double tag_width; /* of the widest */
	double corner;	  /* extra length of the ends at the corners, whose tags must pass others */
	double *gaps_x, *gaps_y;  /* after each column and below each row, owned */
	double *widths, *heights; /* of each column and row, owned */
};

/* The side of @a that faces @b, if they are adjacent; else NUM_SLOTS. */
static enum slot side_facing(const struct layout_vertex *a, const struct layout_vertex *b)
{
	int rows = b->row - a->row, columns = b->column - a->column;

	if (!rows && columns == 1)
		return SLOT_RIGHT;
	if (!rows && columns == -1)
		return SLOT_LEFT;
	if (!columns && rows == 1)
		return SLOT_BOTTOM;
	if (!columns && rows == -1)
		return SLOT_TOP;
	return NUM_SLOTS;
}

static void slot_take(struct grid *grid, int edge, int end, enum slot slot)
{
	int vertex = grid->graph->edges[edge].ends[end];

	grid->slots[edge][end] = slot;
	grid->ranks[edge][end] = slot < NUM_SLOTS ? grid->taken[vertex][slot]++ : 0;
}

/* Cables between neighbours in the grid take the sides that face each other. */
static void lines_assign(struct grid *grid)
{
	const struct layout_graph *graph = grid->graph;
	int i;

	for (i = 0; i < graph->num_edges; i++) {
		const struct layout_edge *edge = &graph->edges[i];
		const struct layout_vertex *a = &graph->vertices[edge->ends[0]];
		const struct layout_vertex *b = &graph->vertices[edge->ends[1]];

		grid->layout->cables[i].kind = LAYOUT_EDGE_TAGS;
		if (side_facing(a, b) == NUM_SLOTS)
			continue;
		grid->layout->cables[i].kind = LAYOUT_EDGE_LINE;
		slot_take(grid, i, 0, side_facing(a, b));
		slot_take(grid, i, 1, side_facing(b, a));
	}
}

/*
 * The sides to try for a tag; first the one away from the far vertex, because the cable went round
 * the grid.
 */
static enum slot tag_slot(const struct grid *grid, int own, int far)
{
	const struct layout_vertex *a = &grid->graph->vertices[own];
	const struct layout_vertex *b = &grid->graph->vertices[far];
	enum slot wish = SLOT_BOTTOM_LEFT;
	int slot;

	if (a->row == b->row)
		wish = a->column < b->column ? SLOT_LEFT : SLOT_RIGHT;
	else if (a->column == b->column)
		wish = a->row < b->row ? SLOT_TOP : SLOT_BOTTOM;
	if (!grid->taken[own][wish])
		return wish;
	for (slot = SLOT_TOP_LEFT; slot < NUM_SLOTS; slot++)
		if (!grid->taken[own][slot])
			return (enum slot)slot;
	for (slot = SLOT_LEFT; slot < SLOT_TOP_LEFT; slot++)
		if (!grid->taken[own][slot])
			return (enum slot)slot;
	return NUM_SLOTS;
}

static void widen(double *gap, double needed)
{
	*gap = fmax(*gap, needed);
}

/* Widens the gap that a tag is in; the border of the drawing has enough room. */
static void tag_widen(struct grid *grid, int vertex, int slot)
{
	const struct layout_vertex *at = &grid->graph->vertices[vertex];
	double beside = 2 * (STUB + grid->tag_width) + AIR;
	double above = 2 * (STUB + grid->corner + LAYOUT_TAG_HEIGHT) + AIR;

	if (slot == SLOT_LEFT && at->column > 0)
		widen(&grid->gaps_x[at->column - 1], beside);
	else if (slot == SLOT_RIGHT)
		widen(&grid->gaps_x[at->column], beside);
	else if (slot == SLOT_BOTTOM || slot >= SLOT_BOTTOM_LEFT)
		widen(&grid->gaps_y[at->row], above);
	else if (slot != SLOT_LEFT && at->row > 0)
		widen(&grid->gaps_y[at->row - 1], above);
}

/* A cable with a place at one end only is not drawn: the texts in the boxes name it. */
static void tags_assign(struct grid *grid)
{
	const struct layout_graph *graph = grid->graph;
	int i, end;

	for (i = 0; i < graph->num_edges; i++) {
		const int *ends = graph->edges[i].ends;
		enum slot slots[2];

		if (grid->layout->cables[i].kind != LAYOUT_EDGE_TAGS)
			continue;
		slots[0] = tag_slot(grid, ends[0], ends[1]);
		slots[1] = tag_slot(grid, ends[1], ends[0]);
		if (slots[0] == NUM_SLOTS || slots[1] == NUM_SLOTS) {
			grid->layout->cables[i].kind = LAYOUT_EDGE_NONE;
			continue;
		}
		for (end = 0; end < 2; end++)
			slot_take(grid, i, end, slots[end]);
	}
}

/* Three tags side by side above a box, or, where they are too wide, two further out than one. */
static void tags_measure(struct grid *grid)
{
	const struct layout_graph *graph = grid->graph;
	int i;

	for (i = 0; i < graph->num_vertices; i++)
		grid->tag_width = fmax(grid->tag_width, graph->vertices[i].tag_width);
	for (i = 0; i < graph->num_vertices; i++)
		if ((0.5 - CORNER) * graph->vertices[i].width < grid->tag_width + AIR)
			grid->corner = LAYOUT_TAG_HEIGHT + AIR;
}

/* Makes room for the label of a line. */
static void label_widen(struct grid *grid, int edge)
{
	const struct layout_edge *at = &grid->graph->edges[edge];
	const struct layout_vertex *a = &grid->graph->vertices[at->ends[0]];
	const struct layout_vertex *b = &grid->graph->vertices[at->ends[1]];
	double around = 2 * LAYOUT_DOT_RADIUS + 6 * AIR;

	if (at->label_width <= 0)
		return;
	if (a->row == b->row)
		widen(&grid->gaps_x[a->column < b->column ? a->column : b->column],
		      at->label_width + around);
	else
		widen(&grid->gaps_y[a->row < b->row ? a->row : b->row], at->label_height + around);
}

/* Makes columns and rows as wide as their boxes, and gaps as wide as their content. */
static void spaces_set(struct grid *grid)
{
	const struct layout_graph *graph = grid->graph;
	int i, end;

	for (i = 0; i <= grid->last_column; i++)
		grid->gaps_x[i] = GAP_MIN;
	for (i = 0; i <= grid->last_row; i++)
		grid->gaps_y[i] = GAP_MIN;
	for (i = 0; i < graph->num_vertices; i++) {
		const struct layout_vertex *at = &graph->vertices[i];

		widen(&grid->heights[at->row], at->height);
		widen(&grid->widths[at->column], at->width);
	}
	for (i = 0; i < graph->num_edges; i++) {
		if (grid->layout->cables[i].kind == LAYOUT_EDGE_LINE)
			label_widen(grid, i);
		for (end = 0; end < 2 && grid->layout->cables[i].kind == LAYOUT_EDGE_TAGS; end++)
			tag_widen(grid, graph->edges[i].ends[end], grid->slots[i][end]);
	}
}

static void boxes_place(struct grid *grid)
{
	const struct layout_graph *graph = grid->graph;
	int i, k;

	for (i = 0; i < graph->num_vertices; i++) {
		const struct layout_vertex *at = &graph->vertices[i];
		struct layout_rect *box = &grid->layout->boxes[i];

		*box = (struct layout_rect){(grid->widths[at->column] - at->width) / 2,
					    (grid->heights[at->row] - at->height) / 2, at->width,
					    at->height};
		for (k = 0; k < at->column; k++)
			box->x += grid->widths[k] + grid->gaps_x[k];
		for (k = 0; k < at->row; k++)
			box->y += grid->heights[k] + grid->gaps_y[k];
	}
}

/* The position of a slot on its box, and the direction away from the box. */
static struct layout_point slot_point(const struct layout_rect *box, enum slot slot,
				      struct layout_point *out)
{
	double x = slot == SLOT_RIGHT ? 1 : slot == SLOT_LEFT ? 0 : 0.5;
	double y = 0.5;

	*out = (struct layout_point){slot == SLOT_RIGHT ? 1 : slot == SLOT_LEFT ? -1 : 0, 0};
	if (slot == SLOT_TOP_LEFT || slot == SLOT_BOTTOM_LEFT)
		x = CORNER;
	if (slot == SLOT_TOP_RIGHT || slot == SLOT_BOTTOM_RIGHT)
		x = 1 - CORNER;
	if (slot == SLOT_TOP || slot == SLOT_TOP_LEFT || slot == SLOT_TOP_RIGHT)
		y = 0, out->y = -1;
	if (slot == SLOT_BOTTOM || slot == SLOT_BOTTOM_LEFT || slot == SLOT_BOTTOM_RIGHT)
		y = 1, out->y = 1;
	return (struct layout_point){box->x + x * box->width, box->y + y * box->height};
}

static void tag_place(const struct grid *grid, int edge, int end, struct layout_point out)
{
	double stub = STUB + (grid->slots[edge][end] >= SLOT_TOP_LEFT ? grid->corner : 0);
	struct layout_cable *cable = &grid->layout->cables[edge];
	int far = grid->graph->edges[edge].ends[1 - end];
	double width = grid->graph->vertices[far].tag_width;
	struct layout_rect *tag = &cable->tags[end];

	*tag = (struct layout_rect){cable->dots[end].x - width / 2,
				    cable->dots[end].y - LAYOUT_TAG_HEIGHT / 2, width,
				    LAYOUT_TAG_HEIGHT};
	tag->x += out.x * (stub + width / 2);
	tag->y += out.y * (stub + LAYOUT_TAG_HEIGHT / 2);
}

/* Parallel cables are spread around the middle of the side. */
static void ends_place(struct grid *grid)
{
	const struct layout_graph *graph = grid->graph;
	int i, end;

	for (i = 0; i < graph->num_edges; i++) {
		struct layout_cable *cable = &grid->layout->cables[i];

		for (end = 0; end < 2 && cable->kind != LAYOUT_EDGE_NONE; end++) {
			int vertex = graph->edges[i].ends[end];
			enum slot slot = (enum slot)grid->slots[i][end];
			int num = grid->taken[vertex][slot];
			double shift = (grid->ranks[i][end] - (num - 1) / 2.0);
			struct layout_point out, *dot = &cable->dots[end];

			*dot = slot_point(&grid->layout->boxes[vertex], slot, &out);
			dot->x += out.y ? shift * LAYOUT_DOT_DISTANCE : 0;
			dot->y += out.x ? shift * LAYOUT_DOT_DISTANCE : 0;
			if (cable->kind == LAYOUT_EDGE_TAGS)
				tag_place(grid, i, end, out);
		}
	}
}

static void grid_free(struct grid *grid)
{
	free(grid->taken);
	free(grid->slots);
	free(grid->ranks);
	free(grid->gaps_x);
	free(grid->gaps_y);
	free(grid->widths);
	free(grid->heights);
}

static int grid_allocate(struct grid *grid)
{
	size_t vertices = (size_t)grid->graph->num_vertices + 1;
	size_t edges = (size_t)grid->graph->num_edges + 1, rows, columns;
	int i;

	for (i = 0; i < grid->graph->num_vertices; i++) {
		const struct layout_vertex *at = &grid->graph->vertices[i];

		grid->last_row = at->row > grid->last_row ? at->row : grid->last_row;
		grid->last_column = at->column > grid->last_column ? at->column : grid->last_column;
	}
	rows = (size_t)grid->last_row + 1;
	columns = (size_t)grid->last_column + 1;
	grid->taken = calloc(vertices, sizeof(*grid->taken));
	grid->slots = calloc(edges, sizeof(*grid->slots));
	grid->ranks = calloc(edges, sizeof(*grid->ranks));
	grid->gaps_x = calloc(columns, sizeof(double));
	grid->gaps_y = calloc(rows, sizeof(double));
	grid->widths = calloc(columns, sizeof(double));
	grid->heights = calloc(rows, sizeof(double));
	return grid->taken && grid->slots && grid->ranks && grid->gaps_x && grid->gaps_y &&
			       grid->widths && grid->heights
		       ? 0
		       : -ENOMEM;
}

int layout_grid_place(const struct layout_graph *graph, struct layout *layout)
{
	struct grid grid = {.graph = graph, .layout = layout};
	int ret = grid_allocate(&grid);

	if (!ret) {
		lines_assign(&grid);
		tags_assign(&grid);
		tags_measure(&grid);
		spaces_set(&grid);
		boxes_place(&grid);
		ends_place(&grid);
	}
	grid_free(&grid);
	return ret;
}
