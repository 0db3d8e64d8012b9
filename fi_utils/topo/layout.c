/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - the whole layout: tries sizes until everything has a place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/geometry.h"
#include "topo/graph.h"
#include "topo/layout.h"
#include "topo/layout_circle.h"
#include "topo/layout_grid.h"
#include "topo/layout_labels.h"

/* A circle grows by this factor, at most this many times, until labels and cables have room. */
#define CIRCLE_GROWTH 1.07
#define CIRCLE_TRIES 14

/* The number of cables that pass under a box at which they do not end. */
static int cables_hidden(const struct layout_graph *graph, const struct layout *layout)
{
	int i, k, hidden = 0;

	for (i = 0; i < graph->num_edges; i++) {
		const struct layout_cable *cable = &layout->cables[i];

		for (k = 0; k < graph->num_vertices && cable->kind == LAYOUT_EDGE_LINE; k++)
			hidden += k != graph->edges[i].ends[0] && k != graph->edges[i].ends[1] &&
				  layout_line_crosses(cable->dots[0], cable->dots[1],
						      &layout->boxes[k]);
	}
	return hidden;
}

static int circle_make(const struct layout_graph *graph, struct layout *layout)
{
	double radius = layout_circle_radius(graph);
	int i, ret;

	for (i = 0; i < CIRCLE_TRIES; i++) {
		ret = layout_circle_place(graph, radius, layout);
		if (ret)
			return ret;
		if (graph->num_edges > LAYOUT_LABELLED_EDGES_MAX)
			break;
		if (!layout_labels_place(graph, layout) && !cables_hidden(graph, layout))
			break;
		radius *= CIRCLE_GROWTH;
	}
	return 0;
}

static void extent_include(struct layout_rect *extent, const struct layout_rect *rect)
{
	double right = fmax(extent->x + extent->width, rect->x + rect->width);
	double bottom = fmax(extent->y + extent->height, rect->y + rect->height);

	extent->x = fmin(extent->x, rect->x);
	extent->y = fmin(extent->y, rect->y);
	extent->width = right - extent->x;
	extent->height = bottom - extent->y;
}

static void rect_move(struct layout_rect *rect, double x, double y)
{
	rect->x += x;
	rect->y += y;
}

/* Moves everything so that it begins at the margin, and sets the size of the drawing. */
static void layout_fit(const struct layout_graph *graph, struct layout *layout)
{
	struct layout_rect extent = layout->boxes[0];
	double x, y;
	int i, end;

	for (i = 0; i < graph->num_vertices; i++)
		extent_include(&extent, &layout->boxes[i]);
	for (i = 0; i < graph->num_edges; i++)
		for (end = 0; end < 2 && layout->cables[i].kind == LAYOUT_EDGE_TAGS; end++)
			extent_include(&extent, &layout->cables[i].tags[end]);
	x = LAYOUT_MARGIN - extent.x;
	y = LAYOUT_MARGIN - extent.y;
	for (i = 0; i < graph->num_vertices; i++)
		rect_move(&layout->boxes[i], x, y);
	for (i = 0; i < graph->num_edges; i++) {
		struct layout_cable *cable = &layout->cables[i];

		rect_move(&cable->label, x, y);
		for (end = 0; end < 2; end++) {
			cable->dots[end].x += x;
			cable->dots[end].y += y;
			rect_move(&cable->tags[end], x, y);
		}
	}
	layout->width = extent.width + 2 * LAYOUT_MARGIN;
	layout->height = extent.height + 2 * LAYOUT_MARGIN;
}

int layout_make(const struct layout_graph *graph, struct layout *layout)
{
	struct layout result = {
		.boxes = calloc((size_t)graph->num_vertices + 1, sizeof(*result.boxes)),
		.cables = calloc((size_t)graph->num_edges + 1, sizeof(*result.cables)),
	};
	int ret = -ENOMEM;

	if (result.boxes && result.cables)
		ret = graph->grid ? layout_grid_place(graph, &result) : circle_make(graph, &result);
	if (ret) {
		layout_free(&result);
		return ret;
	}
	if (graph->grid)
		layout_labels_place(graph, &result);
	layout_fit(graph, &result);
	*layout = result;
	return 0;
}

void layout_free(struct layout *layout)
{
	free(layout->boxes);
	free(layout->cables);
	memset(layout, 0, sizeof(*layout));
}
