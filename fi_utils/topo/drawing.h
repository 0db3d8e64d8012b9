/* SPDX-License-Identifier: Apache-2.0 */
/* drawing.h - a map as boxes and lines: the input and the result of the layout. */
#ifndef MESH_FI_UTILS_TOPO_DRAWING_H
#define MESH_FI_UTILS_TOPO_DRAWING_H

#include <stdbool.h>

#include "topo/graph.h"
#include "topo/map.h"

/* Sizes of the text, in pixels; the font of rows is monospaced (0.602 em in DejaVu Sans Mono). */
#define DRAWING_ROW_HEIGHT 17.0
#define DRAWING_ROW_CHAR 6.63
#define DRAWING_ROW_NUMBER 22.0 /* from the box's left side to the middle of the number */
#define DRAWING_ROW_TEXT 34.0	/* and to the text */
/* A dot on the border reaches LAYOUT_DOT_RADIUS into the box, where texts must not be. */
#define DRAWING_NAME_HEIGHT 30.0
#define DRAWING_PADDING 16.0
#define DRAWING_NAME_CHAR 9.0
#define DRAWING_LABEL_LINE 14.0
#define DRAWING_ROW_MAX 200

/* One line of the drawing: a cable, or a NIC's line to a switch. */
struct drawing_edge {
	int link;
	int nics[2]; /* -1: that end is a switch */
};

/* Vertices are the map's nodes, and after them the switches: links with more than two NICs. */
struct topo_drawing {
	struct layout_graph graph;
	struct layout_vertex *vertices; /* owned */
	struct layout_edge *edges;	/* owned */
	struct drawing_edge *sources;	/* owned, one for each edge */
	int *switches;			/* the link of each switch, owned */
	int num_switches;
	int *order; /* owned */
	bool labels;
	struct layout layout;
	int name_width, addr_width; /* columns of the rows, in characters */
};

/** Makes and places everything. Returns 0 or -ENOMEM; free with topo_drawing_free(). */
int topo_drawing_make(const struct topo_map *map, struct topo_drawing *drawing);

void topo_drawing_free(struct topo_drawing *drawing);

/**
 * The text of a NIC's row: name, address, rate, what it moves now. @text: DRAWING_ROW_MAX bytes;
 * returned
 */
const char *topo_drawing_row(const struct topo_map *map, const struct topo_drawing *drawing,
			     int nic, char *text);

/**
 * A line of the label of the cables that @edge stands for: their rate, what passes over them now,
 * then their subnets.
 *
 * @line: from 0
 *
 * Returns @text (DRAWING_ROW_MAX bytes), or NULL after the last line.
 */
const char *topo_drawing_label(const struct topo_map *map, const struct topo_drawing *drawing,
			       int edge, int line, char *text);

#endif
