/* SPDX-License-Identifier: Apache-2.0 */
/* geometry.h - points, rectangles and lines; y grows downward, the unit is a pixel. */
#ifndef MESH_FI_UTILS_TOPO_GEOMETRY_H
#define MESH_FI_UTILS_TOPO_GEOMETRY_H

#include <stdbool.h>

struct layout_point {
	double x, y;
};

struct layout_rect {
	double x, y, width, height; /* x, y: the upper left corner */
};

/** True if the two, each widened by @margin / 2, have a point in common. */
bool layout_rects_overlap(const struct layout_rect *a, const struct layout_rect *b, double margin);

/** True if a part of the line from @a to @b lies inside @rect. */
bool layout_line_crosses(struct layout_point a, struct layout_point b,
			 const struct layout_rect *rect);

struct layout_point layout_centre(const struct layout_rect *rect);

#endif
