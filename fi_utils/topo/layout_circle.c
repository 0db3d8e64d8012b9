/* SPDX-License-Identifier: Apache-2.0 */
/* layout_circle.c - boxes on a circle: no cable passes under a third box. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "topo/geometry.h"
#include "topo/graph.h"
#include "topo/layout_circle.h"

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

double layout_circle_radius(const struct layout_graph *graph)
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

int layout_circle_place(const struct layout_graph *graph, double radius, struct layout *layout)
{
	int i;

	for (i = 0; i < graph->num_vertices; i++)
		layout->boxes[vertex_at(graph, i)] = box_at(graph, i, radius);
	for (i = 0; i < graph->num_edges; i++)
		layout->cables[i].kind = LAYOUT_EDGE_LINE;
	return dots_place(graph, layout);
}
