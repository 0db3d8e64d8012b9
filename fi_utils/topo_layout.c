/* SPDX-License-Identifier: Apache-2.0 */
/* topo_layout.c - the drawing as a whole: tries sizes until everything has a place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo_layout.h"

/* A circle grows by this factor, so many times, to find room for labels and free cables. */
#define CIRCLE_GROWTH 1.07
#define CIRCLE_TRIES 14
/* Between a label and a dot: a piece of the cable has to be seen. */
#define DOT_AIR 8.0
/* Larger drawings are not searched for label places: too many pairs to look at. */
#define LABELLED_EDGES_MAX 600

bool layout_rects_overlap(const struct layout_rect *a, const struct layout_rect *b, double margin)
{
	return a->x < b->x + b->width + margin && b->x < a->x + a->width + margin &&
	       a->y < b->y + b->height + margin && b->y < a->y + a->height + margin;
}

/* Narrows [*from, *to], the part of the line that lies on the inner side of one border. */
static bool line_clip(double start, double delta, double low, double high, double *from, double *to)
{
	double first, last, swap;

	if (fabs(delta) < 1e-9)
		return start > low && start < high;
	first = (low - start) / delta;
	last = (high - start) / delta;
	if (first > last) {
		swap = first;
		first = last;
		last = swap;
	}
	*from = fmax(*from, first);
	*to = fmin(*to, last);
	return *from < *to;
}

bool layout_line_crosses(struct layout_point a, struct layout_point b,
			 const struct layout_rect *rect)
{
	double from = 0, to = 1;

	return line_clip(a.x, b.x - a.x, rect->x, rect->x + rect->width, &from, &to) &&
	       line_clip(a.y, b.y - a.y, rect->y, rect->y + rect->height, &from, &to);
}

struct layout_point layout_centre(const struct layout_rect *rect)
{
	return (struct layout_point){rect->x + rect->width / 2, rect->y + rect->height / 2};
}

/* ---- labels ----------------------------------------------------------------------------- */

static struct layout_rect dot_rect(struct layout_point dot)
{
	return (struct layout_rect){dot.x - LAYOUT_DOT_RADIUS, dot.y - LAYOUT_DOT_RADIUS,
				    2 * LAYOUT_DOT_RADIUS, 2 * LAYOUT_DOT_RADIUS};
}

/* Whether a label in @rect would hide something; with @strict a cable counts as something. */
static bool label_hides(const struct layout_graph *graph, const struct layout *layout, int edge,
			const struct layout_rect *rect, bool strict)
{
	int i, end;

	for (i = 0; i < graph->num_vertices; i++)
		if (layout_rects_overlap(rect, &layout->boxes[i], 4))
			return true;
	for (i = 0; i < graph->num_edges; i++) {
		const struct layout_cable *cable = &layout->cables[i];

		if (i != edge && cable->labelled && layout_rects_overlap(rect, &cable->label, 4))
			return true;
		for (end = 0; end < 2 && cable->kind != LAYOUT_EDGE_NONE; end++) {
			struct layout_rect dot = dot_rect(cable->dots[end]);

			if (layout_rects_overlap(rect, &dot, DOT_AIR))
				return true;
			if (cable->kind == LAYOUT_EDGE_TAGS &&
			    layout_rects_overlap(rect, &cable->tags[end], 2))
				return true;
		}
		if (strict && graph->edges[i].bundle != edge && cable->kind == LAYOUT_EDGE_LINE &&
		    layout_line_crosses(cable->dots[0], cable->dots[1], rect))
			return true;
	}
	return false;
}

/* The middle line of parallel cables. */
static void bundle_line(const struct layout_graph *graph, const struct layout *layout, int bundle,
			struct layout_point *line)
{
	int i, end, num = 0;

	line[0] = line[1] = (struct layout_point){0, 0};
	for (i = bundle; i < graph->num_edges; i++) {
		if (graph->edges[i].bundle != bundle || layout->cables[i].kind != LAYOUT_EDGE_LINE)
			continue;
		num++;
		for (end = 0; end < 2; end++) {
			line[end].x += (layout->cables[i].dots[end].x - line[end].x) / num;
			line[end].y += (layout->cables[i].dots[end].y - line[end].y) / num;
		}
	}
}

static bool label_place(const struct layout_graph *graph, struct layout *layout, int edge,
			bool strict)
{
	/* Parts of the way along the cable, the middle first. */
	static const double places[] = {0.5, 0.45, 0.55, 0.4,  0.6,  0.35, 0.65,
					0.3, 0.7,  0.26, 0.74, 0.22, 0.78};
	const struct layout_edge *at = &graph->edges[edge];
	struct layout_cable *cable = &layout->cables[edge];
	struct layout_point line[2];
	size_t i;

	bundle_line(graph, layout, edge, line);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		double x = line[0].x + places[i] * (line[1].x - line[0].x);
		double y = line[0].y + places[i] * (line[1].y - line[0].y);

		cable->label = (struct layout_rect){x - at->label_width / 2,
						    y - at->label_height / 2, at->label_width,
						    at->label_height};
		if (!label_hides(graph, layout, edge, &cable->label, strict))
			return true;
	}
	return false;
}

int layout_labels_place(const struct layout_graph *graph, struct layout *layout)
{
	int i, missing = 0;

	for (i = 0; i < graph->num_edges; i++)
		layout->cables[i].labelled = false;
	if (graph->num_edges > LABELLED_EDGES_MAX)
		return graph->num_edges;
	for (i = 0; i < graph->num_edges; i++) {
		if (layout->cables[i].kind != LAYOUT_EDGE_LINE || graph->edges[i].label_width <= 0)
			continue;
		layout->cables[i].labelled = label_place(graph, layout, i, true) ||
					     label_place(graph, layout, i, false);
		missing += !layout->cables[i].labelled;
	}
	return missing;
}

/* ---- the whole -------------------------------------------------------------------------- */

/* Cables that run under a box which they do not end at. */
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
		if (graph->num_edges > LABELLED_EDGES_MAX)
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
