/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - a map as a picture: SVG 1.1, without scripts, for browsers and documents. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic_select.h"

#include "common/output.h"
#include "topo/drawing.h"
#include "topo/graph.h"
#include "topo/map.h"
#include "topo/path.h"
#include "topo/print.h"

/* Up to this many paths are listed below the drawing: 9 nodes have 36. */
#define LISTED_PATHS_MAX 36
/* Up to this many, with their reasons: 5 nodes have 10. */
#define REASONED_PATHS_MAX 10
#define HEADING_HEIGHT 56.0
#define LINE_HEIGHT 18.0
#define LEGEND_HEIGHT 40.0
#define WIDTH_MIN 640.0

static const char style[] =
	"text{font-family:'DejaVu Sans','Helvetica Neue',Arial,sans-serif;fill:#1f2933}"
	".title{font-size:18px;font-weight:bold}"
	".sub,.path,.legend{font-size:12px;fill:#52606d}"
	".path{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px}"
	".box{fill:#fff;stroke:#9aa5b1;stroke-width:1.2}"
	".head{fill:#e4ebf3}.rule{stroke:#cbd2d9}"
	".name{font-size:13px;font-weight:bold}"
	".row,.label,.tag{font-family:'DejaVu Sans Mono',Menlo,Consolas,monospace;font-size:11px}"
	".label{fill:#323f4b}.tag{fill:#52606d}"
	".paper{fill:#fff}.tagbox{fill:#f0f4f8;stroke:#bcccdc}"
	".number{font-size:10px;font-weight:bold;fill:#fff}"
	".cable{fill:none;stroke-linecap:round}"
	".planned{stroke:#4a7bb5}.up{stroke:#2f9461}.down{stroke:#cf4238;stroke-dasharray:6 5}"
	".fplanned{fill:#4a7bb5}.fup{fill:#2f9461}.fdown{fill:#cf4238}.fnone{fill:#9aa5b1}"
	".chosen{stroke:#f0a020;stroke-opacity:.55;stroke-width:12;fill:none;stroke-linecap:round}"
	".switch{fill:#f7f3e8;stroke:#b8a878;stroke-width:1.2}"
	".field{fill:#f0f4f8}.count{font-size:7px;fill:#7b8794}"
	".picked{stroke:#f0a020;stroke-width:3}";

/* Escapes names, which come from files. */
static void text_put(FILE *file, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		default:
			fputc(*text, file);
		}
	}
}

static void text_at(FILE *file, double x, double y, const char *class, const char *anchor,
		    const char *text)
{
	fprintf(file,
		"<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
		"xml:space=\"preserve\">",
		class, x, y, anchor);
	text_put(file, text);
	fputs("</text>\n", file);
}

static void rect_put(FILE *file, const struct layout_rect *rect, const char *class, double radius)
{
	fprintf(file,
		"<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
		"rx=\"%.0f\"/>\n",
		class, rect->x, rect->y, rect->width, rect->height, radius);
}

/* ---- cables ----------------------------------------------------------------------------- */

/* 10 Gb/s and less is thin, 400 Gb/s and more is thick. */
static double cable_width(int rate_mbps)
{
	return rate_mbps ? fmin(5.5, fmax(1.5, 1.5 + log2(rate_mbps / 10000.0) * 0.75)) : 2.2;
}

static void line_put(FILE *file, struct layout_point a, struct layout_point b, const char *class,
		     double width)
{
	fprintf(file, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"", class, a.x, a.y, b.x, b.y);
	if (width > 0)
		fprintf(file, " stroke-width=\"%.1f\"", width);
	fputs("/>\n", file);
}

/* The tooltip of a cable. */
static void cable_title(FILE *file, const struct topo_map *map, int link)
{
	char subnet[MESH_ADDR_TEXT_MAX], addr[MESH_ADDR_TEXT_MAX], rate[MESH_NIC_SPEED_TEXT_MAX];
	const struct topo_link *at = &map->links[link];
	int i;

	fputs("<title>", file);
	for (i = at->first; i < at->first + at->num; i++) {
		const struct topo_nic *nic = &map->nics[map->members[i]];

		text_put(file, map->nodes[nic->node].name);
		fputc(' ', file);
		text_put(file, nic->name);
		fprintf(file, " %s%s", mesh_addr_text(&nic->addr, addr), *nic->note ? " (" : "");
		text_put(file, nic->note);
		fputs(*nic->note ? ")\n" : "\n", file);
	}
	fprintf(file, "%s, %s, %s</title>\n", mesh_addr_text_prefix(&at->subnet, subnet),
		mesh_nic_speed_text(topo_link_rate(map, link), rate),
		topo_state_text(topo_link_state(map, link)));
}

static struct layout_point nearest(const struct layout_rect *rect, struct layout_point from)
{
	return (struct layout_point){fmin(fmax(from.x, rect->x), rect->x + rect->width),
				     fmin(fmax(from.y, rect->y), rect->y + rect->height)};
}

static void cable_put(FILE *file, const struct topo_map *map, const struct topo_drawing *drawing,
		      int edge, bool chosen)
{
	const struct layout_cable *cable = &drawing->layout.cables[edge];
	int link = drawing->sources[edge].link, end;
	double width = cable_width(topo_link_rate(map, link));
	char class[32];

	snprintf(class, sizeof(class), "cable %s", topo_state_text(topo_link_state(map, link)));
	fputs("<g>\n", file);
	cable_title(file, map, link);
	for (end = 0; end < 2 && cable->kind == LAYOUT_EDGE_TAGS; end++) {
		struct layout_point to = nearest(&cable->tags[end], cable->dots[end]);

		if (chosen)
			line_put(file, cable->dots[end], to, "chosen", 0);
		line_put(file, cable->dots[end], to, class, width);
	}
	if (cable->kind == LAYOUT_EDGE_LINE) {
		if (chosen)
			line_put(file, cable->dots[0], cable->dots[1], "chosen", 0);
		line_put(file, cable->dots[0], cable->dots[1], class, width);
	}
	fputs("</g>\n", file);
}

/* Which of the node's NICs it is, from 1: the number in the dot and in the row. */
static int nic_number(const struct topo_map *map, int nic)
{
	return nic - map->nodes[map->nics[nic].node].first_nic + 1;
}

static void dot_put(FILE *file, const struct topo_map *map, struct layout_point at, int nic,
		    double radius)
{
	char number[16];
	const char *class = map->nics[nic].link < 0 && map->nics[nic].state != TOPO_DOWN
				    ? "none"
				    : topo_state_text(map->nics[nic].state);

	fprintf(file, "<circle class=\"f%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", class, at.x,
		at.y, radius);
	snprintf(number, sizeof(number), "%d", nic_number(map, nic));
	text_at(file, at.x, at.y + 3.6, "number", "middle", number);
}

static void label_put(FILE *file, const struct topo_map *map, const struct topo_drawing *drawing,
		      int edge)
{
	const struct layout_rect *rect = &drawing->layout.cables[edge].label;
	char text[DRAWING_ROW_MAX];
	int line;

	rect_put(file, rect, "paper", 4);
	for (line = 0; topo_drawing_label(map, drawing, edge, line, text); line++)
		text_at(file, rect->x + rect->width / 2, rect->y + 12.5 + DRAWING_LABEL_LINE * line,
			"label", "middle", text);
}

static void ends_put(FILE *file, const struct topo_map *map, const struct topo_drawing *drawing,
		     int edge)
{
	const struct layout_cable *cable = &drawing->layout.cables[edge];
	int end;

	for (end = 0; end < 2 && cable->kind != LAYOUT_EDGE_NONE; end++) {
		int nic = drawing->sources[edge].nics[end];
		int other = drawing->sources[edge].nics[1 - end];
		const struct layout_rect *tag = &cable->tags[end];
		char addr[MESH_ADDR_TEXT_MAX];

		if (nic >= 0)
			dot_put(file, map, cable->dots[end], nic, LAYOUT_DOT_RADIUS);
		if (cable->kind != LAYOUT_EDGE_TAGS)
			continue;
		rect_put(file, tag, "tagbox", 9);
		text_at(file, tag->x + tag->width / 2, tag->y + 13, "tag", "middle",
			other >= 0
				? map->nodes[map->nics[other].node].name
				: mesh_addr_text_prefix(
					  &map->links[drawing->sources[edge].link].subnet, addr));
	}
}

/* ---- boxes ------------------------------------------------------------------------------ */

static void node_put(FILE *file, const struct topo_map *map, const struct topo_drawing *drawing,
		     int node)
{
	const struct layout_rect *box = &drawing->layout.boxes[node];
	const struct topo_node *at = &map->nodes[node];
	double y = box->y + DRAWING_NAME_HEIGHT + DRAWING_ROW_HEIGHT + 4;
	char text[DRAWING_ROW_MAX];
	int i;

	rect_put(file, box, "box", 7);
	fprintf(file,
		"<path class=\"head\" "
		"d=\"M%.1f %.1fv-23a6 6 0 0 1 6-6h%.1fa6 6 0 0 1 6 6v23z\"/>\n",
		box->x + 1, box->y + DRAWING_NAME_HEIGHT, box->width - 14);
	text_at(file, box->x + box->width / 2, box->y + 21.5, "name", "middle", at->name);
	for (i = at->first_nic; i < at->first_nic + at->num_nics; i++) {
		dot_put(file, map, (struct layout_point){box->x + DRAWING_ROW_NUMBER, y - 8}, i,
			6.5);
		text_at(file, box->x + DRAWING_ROW_TEXT, y - 4, "row", "start",
			topo_drawing_row(map, drawing, i, text));
		y += DRAWING_ROW_HEIGHT;
	}
}

static void switch_put(FILE *file, const struct topo_map *map, const struct topo_drawing *drawing,
		       int index)
{
	const struct layout_rect *box = &drawing->layout.boxes[map->num_nodes + index];
	const struct topo_link *link = &map->links[drawing->switches[index]];
	char text[MESH_ADDR_TEXT_MAX + 32], subnet[MESH_ADDR_TEXT_MAX];
	double x = box->x + box->width / 2;

	rect_put(file, box, "switch", 7);
	snprintf(text, sizeof(text), "switch, %d NICs", link->num);
	text_at(file, x, box->y + 17, "name", "middle", text);
	text_at(file, x, box->y + 32, "row", "middle",
		mesh_addr_text_prefix(&link->subnet, subnet));
}

/* ---- around the drawing ----------------------------------------------------------------- */

/* The lines below the drawing, in columns to save space. */
struct listing {
	struct topo_path *paths; /* owned, NULL: too many to list */
	long num;
	bool reasons;
	int columns;
	double column_width;
};

/* The reason is printed if there is room for it, and always if there is no path. */
static void path_line(const struct topo_map *map, const struct topo_path *path, bool reason,
		      char *text, size_t size)
{
	bool exists = topo_path_exists(path);
	char nics[200];

	snprintf(text, size, "%s - %s:  ", map->nodes[path->from].name, map->nodes[path->to].name);
	if (exists)
		output_add(text, size, "%s", topo_path_text(map, path, nics, sizeof(nics)));
	if (!exists || reason)
		output_add(text, size, "%s%s%s", exists ? "   (" : "", path->reason,
			   exists ? ")" : "");
	else if (path->num_cables > 1)
		output_add(text, size, "   (one of %d)", path->num_cables);
}

static void listing_make(const struct topo_map *map, const struct topo_path *pair, double width,
			 struct listing *listing)
{
	char text[400];
	size_t longest = 40;
	long i;

	*listing = (struct listing){.columns = 1};
	if (pair) {
		path_line(map, pair, true, text, sizeof(text));
		listing->column_width = DRAWING_ROW_CHAR * (double)strlen(text) + 30;
		return;
	}
	listing->paths = topo_paths_find(map, LISTED_PATHS_MAX, &listing->num);
	listing->reasons = listing->num <= REASONED_PATHS_MAX;
	for (i = 0; listing->paths && i < listing->num; i++) {
		path_line(map, &listing->paths[i], listing->reasons, text, sizeof(text));
		longest = strlen(text) > longest ? strlen(text) : longest;
	}
	listing->column_width = DRAWING_ROW_CHAR * (double)longest + 30;
	listing->columns = (int)((width - LAYOUT_MARGIN) / listing->column_width);
	if (!listing->paths || listing->columns < 1)
		listing->columns = 1;
	if (listing->columns > listing->num)
		listing->columns = listing->num ? (int)listing->num : 1;
}

static double listing_height(const struct listing *listing)
{
	long lines = listing->paths ? (listing->num + listing->columns - 1) / listing->columns : 1;

	return LINE_HEIGHT * (double)(lines + 2);
}

static void listing_put(FILE *file, const struct topo_map *map, const struct topo_path *pair,
			const struct listing *listing, double top)
{
	long i, lines = (listing->num + listing->columns - 1) / listing->columns;
	char text[400];

	text_at(file, LAYOUT_MARGIN, top, "name", "start",
		pair ? "The path that the plugin takes" : "Paths that the plugin takes");
	if (pair) {
		path_line(map, pair, true, text, sizeof(text));
		text_at(file, LAYOUT_MARGIN, top + LINE_HEIGHT, "path", "start", text);
		return;
	}
	if (!listing->paths) {
		topo_pairs_summary(map, text, sizeof(text));
		text_at(file, LAYOUT_MARGIN, top + LINE_HEIGHT, "sub", "start", text);
		return;
	}
	for (i = 0; i < listing->num; i++) {
		path_line(map, &listing->paths[i], listing->reasons, text, sizeof(text));
		text_at(file, LAYOUT_MARGIN + (double)(i / lines) * listing->column_width,
			top + LINE_HEIGHT * (double)(i % lines + 1), "path", "start", text);
	}
}

/* Only the states that occur. */
static void legend_put(FILE *file, const struct topo_map *map, double y, const char *note)
{
	static const enum topo_state states[] = {TOPO_PLANNED, TOPO_UP, TOPO_DOWN};
	double x = LAYOUT_MARGIN;
	char class[32];
	size_t i;
	int k;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		for (k = 0; k < map->num_nics && map->nics[k].state != states[i]; k++)
			;
		if (k == map->num_nics)
			continue;
		snprintf(class, sizeof(class), "cable %s", topo_state_text(states[i]));
		line_put(file, (struct layout_point){x, y - 4},
			 (struct layout_point){x + 26, y - 4}, class, 3);
		text_at(file, x + 34, y, "legend", "start", topo_state_text(states[i]));
		x += 110;
	}
	text_at(file, x, y, "legend", "start", note);
}

/* True for a part of the path that is pointed out: its cable, or all those of its routes. */
static bool edge_is_chosen(const struct topo_map *map, const struct drawing_edge *edge,
			   const struct topo_path *pair)
{
	int i;

	if (!pair)
		return false;
	for (i = 0; i < 2; i++) {
		if (edge->nics[i] < 0)
			continue;
		if (pair->local < 0 && topo_path_has_link(map, pair, map->nics[edge->nics[i]].link))
			return true;
		if (pair->local >= 0 &&
		    (edge->nics[i] == pair->local || edge->nics[i] == pair->remote))
			return true;
	}
	return false;
}

static void drawing_put(FILE *file, const struct topo_map *map, const struct topo_drawing *drawing,
			const struct topo_path *pair)
{
	int i;

	for (i = 0; i < drawing->graph.num_edges; i++) {
		const struct drawing_edge *edge = &drawing->sources[i];

		cable_put(file, map, drawing, i, edge_is_chosen(map, edge, pair));
	}
	for (i = 0; i < map->num_nodes; i++)
		node_put(file, map, drawing, i);
	for (i = 0; i < drawing->num_switches; i++)
		switch_put(file, map, drawing, i);
	for (i = 0; i < drawing->graph.num_edges; i++)
		if (drawing->layout.cables[i].labelled)
			label_put(file, map, drawing, i);
	for (i = 0; i < drawing->graph.num_edges; i++)
		ends_put(file, map, drawing, i);
}

static void svg_begin(FILE *file, const struct topo_map *map, double width, double height)
{
	char text[200];

	fprintf(file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n<style>%s</style>\n"
		"<rect class=\"paper\" width=\"100%%\" height=\"100%%\"/>\n",
		width, height, width, height, style);
	text_at(file, LAYOUT_MARGIN, 36, "title", "start", topo_summary(map, text, sizeof(text)));
}

/* ---- the matrix of a dense mesh --------------------------------------------------------- */

#define MATRIX_NODES_MIN 17
/* A torus of four dimensions has as many cables for each node, and is drawn as a grid. */
#define MATRIX_DENSITY 4
#define MATRIX_CELL 14.0
#define MATRIX_NAME_CHAR 7.0

/* Cables between two nodes, in both of the pair's cells. */
struct matrix_cell {
	int link; /* one of them, the worst */
	int num;
};

/* So many cables between so many nodes are no picture, but a disc. */
static bool is_dense(const struct topo_map *map)
{
	return map->num_nodes >= MATRIX_NODES_MIN &&
	       map->num_links > MATRIX_DENSITY * map->num_nodes;
}

static void matrix_enter(const struct topo_map *map, int link, struct matrix_cell *cells)
{
	const struct topo_link *at = &map->links[link];
	int i, k;

	for (i = at->first; i < at->first + at->num; i++) {
		for (k = at->first; k < at->first + at->num; k++) {
			long row = map->nics[map->members[i]].node;
			long column = map->nics[map->members[k]].node;
			struct matrix_cell *cell = &cells[row * map->num_nodes + column];

			if (row == column)
				continue;
			if (!cell->num++ ||
			    topo_link_state(map, link) > topo_link_state(map, cell->link))
				cell->link = link;
		}
	}
}

static void matrix_row_put(FILE *file, const struct topo_map *map, const struct topo_path *pair,
			   const struct matrix_cell *cells, int row, double left)
{
	double y = row * MATRIX_CELL;
	char number[16];
	int k;

	text_at(file, left - 6, y + MATRIX_CELL - 3, "row", "end", map->nodes[row].name);
	snprintf(number, sizeof(number), "%d", row + 1);
	text_at(file, left + row * MATRIX_CELL + MATRIX_CELL / 2, y + MATRIX_CELL - 4, "count",
		"middle", number);
	for (k = 0; k < map->num_nodes; k++) {
		const struct matrix_cell *cell = &cells[(long)row * map->num_nodes + k];
		bool chosen = pair && ((pair->from == row && pair->to == k) ||
				       (pair->from == k && pair->to == row));

		if (!cell->num)
			continue;
		fprintf(file,
			"<g><rect class=\"%s f%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
			"height=\"%.1f\"/>\n",
			chosen ? "picked" : "cell",
			topo_state_text(topo_link_state(map, cell->link)),
			left + k * MATRIX_CELL + 1, y + 1, MATRIX_CELL - 2, MATRIX_CELL - 2);
		cable_title(file, map, cell->link);
		if (cell->num > 1) {
			snprintf(number, sizeof(number), "%d", cell->num);
			text_at(file, left + k * MATRIX_CELL + MATRIX_CELL / 2, y + MATRIX_CELL - 4,
				"number", "middle", number);
		}
		fputs("</g>\n", file);
	}
}

/* A row and a column for each node, a cell for each pair that a cable joins. */
static int matrix_print(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	struct matrix_cell *cells;
	double left = 0, size = map->num_nodes * MATRIX_CELL, width, height;
	char text[400];
	int i;

	cells = calloc((size_t)map->num_nodes * (size_t)map->num_nodes, sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	for (i = 0; i < map->num_links; i++)
		matrix_enter(map, i, cells);
	for (i = 0; i < map->num_nodes; i++)
		left = fmax(left, MATRIX_NAME_CHAR * (double)strlen(map->nodes[i].name) + 12);
	width = fmax(WIDTH_MIN, size + left + 2 * LAYOUT_MARGIN);
	height = HEADING_HEIGHT + size + 3 * LINE_HEIGHT + LEGEND_HEIGHT;
	svg_begin(file, map, width, height);
	fprintf(file, "<g transform=\"translate(%.1f %.1f)\">\n", LAYOUT_MARGIN, HEADING_HEIGHT);
	fprintf(file, "<rect class=\"field\" x=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", left,
		size, size);
	for (i = 0; i < map->num_nodes; i++)
		matrix_row_put(file, map, pair, cells, i, left);
	fputs("</g>\n", file);
	if (pair)
		path_line(map, pair, true, text, sizeof(text));
	else
		topo_pairs_summary(map, text, sizeof(text));
	text_at(file, LAYOUT_MARGIN, height - LEGEND_HEIGHT - 16, "sub", "start", text);
	legend_put(file, map, height - 20,
		   "columns are in the order of the rows; a number in a cell counts its cables");
	fputs("</svg>\n", file);
	free(cells);
	return 0;
}

int topo_print_svg(FILE *file, const struct topo_map *map, const struct topo_path *pair)
{
	struct topo_drawing drawing;
	struct listing listing;
	double width, height;
	int ret;

	if (is_dense(map))
		return matrix_print(file, map, pair);
	ret = topo_drawing_make(map, &drawing);
	if (ret)
		return ret;
	listing_make(map, pair, fmax(drawing.layout.width, WIDTH_MIN), &listing);
	width = fmax(fmax(drawing.layout.width, WIDTH_MIN),
		     listing.columns * listing.column_width + LAYOUT_MARGIN);
	height = HEADING_HEIGHT + drawing.layout.height + listing_height(&listing) + LEGEND_HEIGHT;
	svg_begin(file, map, width, height);
	fprintf(file, "<g transform=\"translate(%.1f %.1f)\">\n",
		(width - drawing.layout.width) / 2, HEADING_HEIGHT);
	drawing_put(file, map, &drawing, pair);
	fputs("</g>\n", file);
	listing_put(file, map, pair, &listing, HEADING_HEIGHT + drawing.layout.height + 10);
	/* U+2191 and U+2193, arrows up and down */
	legend_put(file, map, height - 20,
		   topo_map_has_rates(map)
			   ? "a number is the NIC's row in its box; thicker is faster; "
			     "\xe2\x86\x91 sends, \xe2\x86\x93 receives, now: in both directions"
			   : "a number is the NIC's row in its box; thicker is faster");
	fputs("</svg>\n", file);
	free(listing.paths);
	topo_drawing_free(&drawing);
	return 0;
}
