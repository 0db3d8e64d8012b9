/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - the whole layout: tries sizes until everything has a place. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "topo/graph.h"
#include "topo/layout.h"
#include "topo/layout_grid.h"

/* ---- circle ----------------------------------------------------------------------------- */

/* Space between adjacent boxes: a label and two dots have to fit. */
#define BOX_GAP 44.0
/* Boxes are wider than high, so a flat ellipse needs less space than a circle, without overlaps. */
#define FLATNESS 0.78
#define RADIUS_MIN 60.0
#define RADIUS_GROWTH 1.05
#define RADIUS_TRIES 400
/* Up to this many boxes all pairs are compared; with more, only adjacent ones. */
#define PAIRS_VERTICES_MAX 400

/* The position of vertex @i of @num: an odd number has one vertex on top, an even number two. */
static struct layout_point circle_point(int i, int num, double radius)
{
	double turn = (i - (num % 2 ? 0.0 : 0.5)) / num;
	double angle = 2 * M_PI * turn - M_PI / 2;

	double x = radius * cos(angle), y = FLATNESS * radius * sin(angle);

	return (struct layout_point){x, y};
}

static int vertex_at(const struct layout_graph *graph, int place)
{
	return graph->order ? graph->order[place] : place;
}

static struct layout_rect box_at(const struct layout_graph *graph, int place, double radius)
{
	const struct layout_vertex *vertex = &graph->vertices[vertex_at(graph, place)];
	struct layout_point centre = circle_point(place, graph->num_vertices, radius);

	return (struct layout_rect){centre.x - vertex->width / 2, centre.y - vertex->height / 2,
				    vertex->width, vertex->height};
}

static bool boxes_overlap(const struct layout_graph *graph, double radius)
{
	int num = graph->num_vertices, i, k, last;

	for (i = 0; i < num; i++) {
		struct layout_rect box = box_at(graph, i, radius);

		last = num > PAIRS_VERTICES_MAX ? i + 2 : num - 1;
		for (k = i + 1; k <= last; k++) {
			struct layout_rect other = box_at(graph, k % num, radius);

			if (layout_rects_overlap(&box, &other, BOX_GAP))
				return true;
		}
	}
	return false;
}

/* The smallest radius at which no two boxes touch. */
static double layout_circle_radius(const struct layout_graph *graph)
{
	double radius = graph->num_vertices > 1 ? RADIUS_MIN : 0;
	int i;

	for (i = 0; i < RADIUS_TRIES && graph->num_vertices > 1; i++) {
		if (!boxes_overlap(graph, radius))
			break;
		radius *= RADIUS_GROWTH;
	}
	return radius;
}

/* ---- dots ------------------------------------------------------------------------------- */

/* One end of an edge at its box; @along runs clockwise around the border from the upper left. */
struct attachment {
	int vertex, edge, end;
	double along;
	int tie; /* the order of parallel cables, which is reversed at the other box */
};

/* The border's point where a ray from the centre towards @target leaves the box. */
static double border_towards(const struct layout_rect *box, struct layout_point target)
{
	struct layout_point centre = layout_centre(box);
	double dx = target.x - centre.x, dy = target.y - centre.y;
	double w = box->width, h = box->height;

	if (fabs(dx) < 1e-9 && fabs(dy) < 1e-9)
		return 0;
	if (fabs(dx) * h >= fabs(dy) * w) { /* leaves through the left or right side */
		double y = h / 2 + dy / fabs(dx) * w / 2;

		return dx > 0 ? w + y : 2 * w + h + (h - y);
	}
	if (dy > 0)
		return w + h + (w / 2 - dx / fabs(dy) * h / 2);
	return w / 2 + dx / fabs(dy) * h / 2;
}

static struct layout_point border_point(const struct layout_rect *box, double along)
{
	double w = box->width, h = box->height, around = 2 * (w + h);

	along = fmod(fmod(along, around) + around, around);
	if (along < w)
		return (struct layout_point){box->x + along, box->y};
	if (along < w + h)
		return (struct layout_point){box->x + w, box->y + along - w};
	if (along < 2 * w + h)
		return (struct layout_point){box->x + w - (along - w - h), box->y + h};
	return (struct layout_point){box->x, box->y + h - (along - 2 * w - h)};
}

static int attachment_compare(const void *left, const void *right)
{
	const struct attachment *a = left, *b = right;

	if (a->vertex != b->vertex)
		return a->vertex < b->vertex ? -1 : 1;
	if (fabs(a->along - b->along) > 1e-6)
		return a->along < b->along ? -1 : 1;
	return (a->tie > b->tie) - (a->tie < b->tie);
}

/* Pushes the ends at one box apart, as far as they fit around it. */
static void attachments_spread(struct attachment *at, int num, double around)
{
	double distance = fmin(LAYOUT_DOT_DISTANCE, around / (num + 1));
	int round, i, pushed = 1;

	for (round = 0; round < 200 && pushed && num > 1; round++) {
		pushed = 0;
		for (i = 0; i < num; i++) {
			struct attachment *a = &at[i], *b = &at[(i + 1) % num];
			double gap = b->along - a->along + (i + 1 == num ? around : 0);

			if (gap >= distance - 1e-3)
				continue;
			a->along -= (distance - gap) / 2;
			b->along += (distance - gap) / 2;
			pushed = 1;
		}
	}
}

static int dots_place(const struct layout_graph *graph, struct layout *layout)
{
	int num = 2 * graph->num_edges, i, first = 0;
	struct attachment *all = calloc((size_t)num + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (i = 0; i < num; i++) {
		const struct layout_edge *edge = &graph->edges[i / 2];
		int own = edge->ends[i % 2], other = edge->ends[1 - i % 2];

		all[i] = (struct attachment){
			.vertex = own,
			.edge = i / 2,
			.end = i % 2,
			.along = border_towards(&layout->boxes[own],
						layout_centre(&layout->boxes[other])),
			.tie = own < other ? i / 2 : -(i / 2),
		};
	}
	qsort(all, (size_t)num, sizeof(*all), attachment_compare);
	for (i = 1; i <= num; i++) {
		const struct layout_rect *box = &layout->boxes[all[first].vertex];

		if (i < num && all[i].vertex == all[first].vertex)
			continue;
		attachments_spread(all + first, i - first, 2 * (box->width + box->height));
		first = i;
	}
	for (i = 0; i < num; i++)
		layout->cables[all[i].edge].dots[all[i].end] =
			border_point(&layout->boxes[all[i].vertex], all[i].along);
	free(all);
	return 0;
}

/* Puts boxes and dots on a circle. @radius: from its centre to the boxes' centres */
static int layout_circle_place(const struct layout_graph *graph, double radius,
			       struct layout *layout)
{
	int i;

	for (i = 0; i < graph->num_vertices; i++)
		layout->boxes[vertex_at(graph, i)] = box_at(graph, i, radius);
	for (i = 0; i < graph->num_edges; i++)
		layout->cables[i].kind = LAYOUT_EDGE_LINE;
	return dots_place(graph, layout);
}

/* ---- labels ----------------------------------------------------------------------------- */

/* Larger drawings are not searched for label places: there are too many pairs to check. */
#define LAYOUT_LABELLED_EDGES_MAX 600

/* Space between a label and a dot: a piece of the cable must be visible. */
#define DOT_AIR 8.0

static struct layout_rect dot_rect(struct layout_point dot)
{
	return (struct layout_rect){dot.x - LAYOUT_DOT_RADIUS, dot.y - LAYOUT_DOT_RADIUS,
				    2 * LAYOUT_DOT_RADIUS, 2 * LAYOUT_DOT_RADIUS};
}

/* True if a label in @rect would hide something; cables count only if @strict. */
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
	/* Positions along the cable, the middle first. */
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

/*
 * Puts the labels on their cables where they hide nothing.
 *
 * Returns how many have no place.
 */
static int layout_labels_place(const struct layout_graph *graph, struct layout *layout)
{
	int i, missing = 0;

	for (i = 0; i < graph->num_edges; i++)
		layout->cables[i].labelled = false;
	if (graph->num_edges > LAYOUT_LABELLED_EDGES_MAX)
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
