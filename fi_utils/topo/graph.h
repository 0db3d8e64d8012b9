/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - the elements that a layout places: sizes and positions, no text; y grows downward,
 * the unit is a pixel.
 */
#ifndef MESH_FI_UTILS_TOPO_GRAPH_H
#define MESH_FI_UTILS_TOPO_GRAPH_H

#include <stdbool.h>

/* Radius of the numbered dot at the end of a cable. */
#define LAYOUT_DOT_RADIUS 8.0
/* Least distance between two dots on one box, centre to centre. */
#define LAYOUT_DOT_DISTANCE 20.0
#define LAYOUT_TAG_HEIGHT 18.0
/* Room around the drawing. */
#define LAYOUT_MARGIN 30.0

struct layout_point {
	double x, y;
};

struct layout_rect {
	double x, y, width, height; /* x, y: the upper left corner */
};

/* A node, or a switch. */
struct layout_vertex {
	double width, height; /* of its box */
	double tag_width;     /* of its name where a cable's far end is elsewhere */
	int row, column;      /* in a grid */
};

struct layout_edge {
	int ends[2];			  /* different vertices */
	double label_width, label_height; /* 0: no label */
	int bundle; /* the first edge between the same two; its label stands for all of them */
};

struct layout_graph {
	const struct layout_vertex *vertices;
	int num_vertices;
	const struct layout_edge *edges;
	int num_edges;
	bool grid;	  /* else a circle */
	const int *order; /* circle: vertices in the order around it; NULL: 0, 1, 2 ... */
};

enum layout_edge_kind {
	LAYOUT_EDGE_LINE, /* from dot to dot */
	LAYOUT_EDGE_TAGS, /* a short end at each box, with a tag that names the far vertex */
	LAYOUT_EDGE_NONE, /* no room: only the texts in the boxes name it */
};

struct layout_cable {
	enum layout_edge_kind kind;
	struct layout_point dots[2];
	bool labelled;
	struct layout_rect label;
	/* For LAYOUT_EDGE_TAGS: tags[i] is near end i and names the other end. */
	struct layout_rect tags[2];
};

struct layout {
	double width, height;
	struct layout_rect *boxes;   /* owned, one for each vertex */
	struct layout_cable *cables; /* owned, one for each edge */
};

/** True if the two, each widened by @margin / 2, have a point in common. */
bool layout_rects_overlap(const struct layout_rect *a, const struct layout_rect *b, double margin);

/** True if a part of the line from @a to @b lies inside @rect. */
bool layout_line_crosses(struct layout_point a, struct layout_point b,
			 const struct layout_rect *rect);

struct layout_point layout_centre(const struct layout_rect *rect);

#endif
