/* SPDX-License-Identifier: Apache-2.0 */
/* layout_labels.c - finds a place for each label. */
#include <stdbool.h>
#include <stddef.h>

#include "topo/geometry.h"
#include "topo/graph.h"
#include "topo/layout_labels.h"

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

int layout_labels_place(const struct layout_graph *graph, struct layout *layout)
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
