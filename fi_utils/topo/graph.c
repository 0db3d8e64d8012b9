/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - where the elements of a layout meet. */
#include <math.h>

#include "topo/graph.h"

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
