/* SPDX-License-Identifier: Apache-2.0 */
/* drawing.c - a map as boxes and lines. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic_select.h"
#include "plan/rank_order.h"
#include "plan/shape.h"
#include "plan/topology.h"
#include "topo/drawing.h"
#include "topo/graph.h"
#include "topo/layout.h"
#include "topo/map.h"
#include "watch/rates.h"

/* ---- arrangement ------------------------------------------------------------------------ */

/* With more boxes than this, a circle is mostly empty. */
#define CIRCLE_VERTICES_MAX 12
/* With more cables at a node than this, a grid has no places left for their tags. */
#define GRID_DEGREE_MAX 8
/* Nodes of a line that stand in one row. */
#define ROW_MAX 5

/* What is arranged. */
struct arrangement {
	struct layout_graph *graph;
	struct layout_vertex *vertices; /* of the graph */
	int *order;			/* owned by the caller */
};

/* The boxes and lines as a topology, to find an order along the cables. */
static int topology_load(const struct arrangement *made, struct mesh_topology *topology)
{
	int i, ret = mesh_topology_init(topology, made->graph->num_vertices);

	for (i = 0; i < made->graph->num_edges && !ret; i++) {
		const int *ends = made->graph->edges[i].ends;

		ret = mesh_topology_add(topology, (struct mesh_cable_end){ends[0], 0},
					(struct mesh_cable_end){ends[1], 0});
		if (ret)
			mesh_topology_free(topology);
	}
	return ret;
}

static void cell_set(struct arrangement *made, int vertex, int row, int column)
{
	made->vertices[vertex].row = row;
	made->vertices[vertex].column = column;
}

/*
 * The last two sizes of a torus are rows and columns of a sheet; sheets of further dimensions lie
 * beside and below each other.
 */
static void torus_arrange(const struct topo_map *map, struct arrangement *made)
{
	const struct mesh_shape *shape = &map->shape;
	int columns = shape->sizes[shape->num_sizes - 1], node;
	int rows = shape->num_sizes > 1 ? shape->sizes[shape->num_sizes - 2] : 1;
	int sheets = map->num_nodes / (rows * columns);
	int beside = (int)ceil(sqrt((double)sheets));

	for (node = 0; node < map->num_nodes; node++) {
		int sheet = node / (rows * columns), at = node % (rows * columns);

		cell_set(made, node, sheet / beside * rows + at / columns,
			 sheet % beside * columns + at % columns);
	}
}

/* Rows from left to right and back, so that vertices that follow each other are adjacent. */
static void snake_arrange(struct arrangement *made, int columns)
{
	int i;

	for (i = 0; i < made->graph->num_vertices; i++) {
		int row = i / columns, column = i % columns;

		cell_set(made, made->order[i], row, row % 2 ? columns - 1 - column : column);
	}
}

/* A snake whose first column leads back, so that the last vertex is also adjacent to the first. */
static void comb_arrange(struct arrangement *made, int rows, int columns)
{
	int i, inner = (rows - 1) * (columns - 1);

	for (i = 0; i < rows * columns; i++) {
		int k = i - columns, row = k < 0 ? 0 : 1 + k / (columns - 1);

		if (k < 0)
			cell_set(made, made->order[i], 0, i);
		else if (k < inner && row % 2)
			cell_set(made, made->order[i], row, columns - 1 - k % (columns - 1));
		else if (k < inner)
			cell_set(made, made->order[i], row, 1 + k % (columns - 1));
		else
			cell_set(made, made->order[i], rows - 1 - (k - inner), 0);
	}
}

/* An even number of rows that divides @num and does not make a long strip; 0 if there is none. */
static int comb_rows(int num)
{
	int rows = (int)sqrt((double)num) & ~1;

	for (; rows >= 2 && num / rows <= 3 * rows; rows -= 2)
		if (num % rows == 0)
			return rows;
	return 0;
}

static void grid_arrange(struct arrangement *made, enum mesh_rank_order_kind kind)
{
	int num = made->graph->num_vertices, rows = comb_rows(num);

	if (num <= ROW_MAX)
		snake_arrange(made, num);
	else if (num <= CIRCLE_VERTICES_MAX)
		snake_arrange(made, (num + 1) / 2);
	else if (kind == MESH_ORDER_RING && rows)
		comb_arrange(made, rows, num / rows);
	else
		snake_arrange(made, (int)ceil(sqrt((double)num) * 1.25));
}

static int order_load(struct arrangement *made, const struct mesh_topology *topology,
		      enum mesh_rank_order_kind *kind)
{
	int num = topology->num_nodes, i, ret;
	struct mesh_rank_order found;
	int *natural = calloc((size_t)num, sizeof(*natural));

	if (!natural)
		return -ENOMEM;
	for (i = 0; i < num; i++)
		natural[i] = i;
	ret = mesh_rank_order_find(topology, natural, &found);
	free(natural);
	if (ret)
		return ret;
	*kind = found.kind;
	made->order = found.nodes;
	return 0;
}

/*
 * Sets row and column of the vertices, or the order around a circle.
 *
 * @graph: edges are set; grid and order are filled in
 * @vertices: those of @graph
 * @order: graph->order; owned by the caller, also on failure (NULL then)
 *
 * Returns 0 or a negative errno.
 */
static int arrange(const struct topo_map *map, struct layout_graph *graph,
		   struct layout_vertex *vertices, int **order)
{
	struct arrangement made = {graph, vertices, NULL};
	bool torus = map->shape.kind == MESH_SHAPE_TORUS && map->shape.num_sizes > 1;
	enum mesh_rank_order_kind kind;
	struct mesh_topology topology;
	int degree, num, ret;

	ret = topology_load(&made, &topology);
	if (ret)
		return ret;
	ret = order_load(&made, &topology, &kind);
	degree = mesh_topology_max_degree(&topology);
	num = graph->num_vertices;
	if (!ret && torus && num == map->num_nodes) {
		graph->grid = true;
		torus_arrange(map, &made);
	} else if (!ret) {
		bool line = degree <= 2 && kind != MESH_ORDER_RING;

		graph->grid = line || (num > CIRCLE_VERTICES_MAX && degree <= GRID_DEGREE_MAX);
		grid_arrange(&made, kind);
	}
	*order = made.order;
	graph->order = made.order;
	mesh_topology_free(&topology);
	return ret;
}

/* Cables of larger drawings have no labels: the rows of the boxes have the same information. */
#define LABELLED_VERTICES_MAX 16
#define SWITCH_HEIGHT 40.0

/* "100G", "2.5G"; "" where the rate is unknown. @text: 16 bytes; returned. */
static const char *rate_short(int rate_mbps, char *text)
{
	if (!rate_mbps)
		*text = '\0';
	else if (rate_mbps % 1000 == 0)
		snprintf(text, 16, "%dG", rate_mbps / 1000);
	else
		snprintf(text, 16, "%.4gG", rate_mbps / 1000.0);
	return text;
}

/* The node at the other end of a cable; NULL for a switch or no cable. */
static const char *far_name(const struct topo_map *map, int nic)
{
	const struct topo_link *link;
	int other;

	if (map->nics[nic].link < 0)
		return NULL;
	link = &map->links[map->nics[nic].link];
	if (link->num != 2)
		return NULL;
	other = map->members[link->first] == nic ? map->members[link->first + 1]
						 : map->members[link->first];
	return map->nodes[map->nics[other].node].name;
}

/* What the NIC moves now: U+2191 and U+2193, arrows up and down. */
static void row_rates(const struct topo_nic *nic, char *text, size_t size)
{
	char sends[WATCH_RATE_TEXT_MAX], receives[WATCH_RATE_TEXT_MAX];

	if (nic->rates_known)
		snprintf(text, size, "  \xe2\x86\x91%s \xe2\x86\x93%s",
			 watch_rate_text(nic->sends, sends),
			 watch_rate_text(nic->receives, receives));
}

const char *topo_drawing_row(const struct topo_map *map, const struct topo_drawing *drawing,
			     int nic, char *text)
{
	const struct topo_nic *at = &map->nics[nic];
	const char *far = drawing->graph.grid || !drawing->labels ? far_name(map, nic) : NULL;
	char addr[MESH_ADDR_TEXT_MAX] = "-", rate[16];
	size_t len;

	if (at->addr.family != MESH_FAMILY_NONE)
		mesh_addr_text_prefix(&at->addr, addr);
	snprintf(text, DRAWING_ROW_MAX, "%-*s  %-*s  %s", drawing->name_width, at->name,
		 drawing->addr_width, addr, rate_short(at->rate_mbps, rate));
	len = strlen(text);
	while (len && text[len - 1] == ' ')
		text[--len] = '\0';
	if (far) /* U+2192, an arrow */
		snprintf(text + len, DRAWING_ROW_MAX - len, "%*s \xe2\x86\x92 %s",
			 drawing->name_width + drawing->addr_width + 2 > (int)len
				 ? drawing->name_width + drawing->addr_width + 2 - (int)len
				 : 0,
			 "", far);
	len = strlen(text);
	row_rates(at, text + len, DRAWING_ROW_MAX - len);
	return text;
}

/* Characters, not bytes. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static void columns_measure(const struct topo_map *map, struct topo_drawing *drawing)
{
	char text[MESH_ADDR_TEXT_MAX];
	int i, width;

	for (i = 0; i < map->num_nics; i++) {
		width = text_width(map->nics[i].name);
		drawing->name_width = width > drawing->name_width ? width : drawing->name_width;
		if (map->nics[i].addr.family == MESH_FAMILY_NONE)
			continue;
		width = (int)strlen(mesh_addr_text_prefix(&map->nics[i].addr, text));
		drawing->addr_width = width > drawing->addr_width ? width : drawing->addr_width;
	}
}

/* All boxes are equally wide, which looks calmer. */
static void boxes_measure(const struct topo_map *map, struct topo_drawing *drawing)
{
	double width = 110, tag_width = 0;
	char text[DRAWING_ROW_MAX];
	int i;

	for (i = 0; i < map->num_nics; i++)
		width = fmax(width, DRAWING_ROW_TEXT + DRAWING_PADDING +
					    DRAWING_ROW_CHAR * text_width(topo_drawing_row(
								       map, drawing, i, text)));
	for (i = 0; i < map->num_nodes; i++) {
		double name = DRAWING_NAME_CHAR * (double)strlen(map->nodes[i].name);

		width = fmax(width, name + 2 * DRAWING_PADDING);
		tag_width = fmax(tag_width, name * 0.85 + DRAWING_PADDING);
	}
	if (drawing->graph.grid) /* two tags and a cable side by side */
		width = fmax(width, 1.6 * tag_width + 40);
	for (i = 0; i < drawing->graph.num_vertices; i++) {
		bool is_switch = i >= map->num_nodes;
		struct layout_vertex *vertex = &drawing->vertices[i];

		vertex->width = width;
		vertex->height = is_switch ? SWITCH_HEIGHT
					   : DRAWING_NAME_HEIGHT + DRAWING_PADDING +
						     DRAWING_ROW_HEIGHT * map->nodes[i].num_nics;
		vertex->tag_width = tag_width;
	}
}

/* The rate of a cable, or of several parallel ones. */
static const char *bundle_rate(const struct topo_map *map, const struct topo_drawing *drawing,
			       int bundle, char *text)
{
	int rate = topo_link_rate(map, drawing->sources[bundle].link), i, num = 0, sum = 0;
	char speed[MESH_NIC_SPEED_TEXT_MAX];
	bool equal = true, halves = true;

	for (i = bundle; i < drawing->graph.num_edges; i++) {
		if (drawing->edges[i].bundle != bundle)
			continue;
		num++;
		sum += topo_link_rate(map, drawing->sources[i].link);
		equal = equal && topo_link_rate(map, drawing->sources[i].link) == rate;
		halves = halves && topo_link_is_half_of(map, drawing->sources[i].link,
							drawing->sources[bundle].link);
	}
	if (!sum)
		return NULL;
	mesh_nic_speed_text(equal ? rate : sum, speed);
	if (!equal)
		snprintf(text, DRAWING_ROW_MAX, "%s together", speed);
	else if (num > 1 && halves)
		snprintf(text, DRAWING_ROW_MAX, "%d halves of %s", num, speed);
	else if (num > 1)
		snprintf(text, DRAWING_ROW_MAX, "%d x %s", num, speed);
	else
		snprintf(text, DRAWING_ROW_MAX, "%s", speed);
	return text;
}

/* What passes over the cable, or over several parallel ones, now; NULL if it is not known. */
static const char *bundle_traffic(const struct topo_map *map, const struct topo_drawing *drawing,
				  int bundle, char *text)
{
	char rate[WATCH_RATE_TEXT_MAX];
	double bytes, sum = 0;
	int i;

	for (i = bundle; i < drawing->graph.num_edges; i++) {
		if (drawing->edges[i].bundle != bundle)
			continue;
		if (!topo_link_traffic(map, drawing->sources[i].link, &bytes))
			return NULL;
		sum += bytes;
	}
	snprintf(text, DRAWING_ROW_MAX, "now %s", watch_rate_text(sum, rate));
	return text;
}

const char *topo_drawing_label(const struct topo_map *map, const struct topo_drawing *drawing,
			       int edge, int line, char *text)
{
	char subnet[MESH_ADDR_TEXT_MAX];
	int i;

	if (bundle_rate(map, drawing, edge, text) && !line--)
		return text;
	if (bundle_traffic(map, drawing, edge, text) && !line--)
		return text;
	for (i = edge; i < drawing->graph.num_edges; i++) {
		if (drawing->edges[i].bundle != edge || line--)
			continue;
		mesh_addr_text_prefix(&map->links[drawing->sources[i].link].subnet, subnet);
		snprintf(text, DRAWING_ROW_MAX, "%s", subnet);
		return text;
	}
	return NULL;
}

/* Edges between the same two boxes have one label. */
static void bundles_find(struct topo_drawing *drawing)
{
	int i, k;

	for (i = 0; i < drawing->graph.num_edges; i++) {
		const int *ends = drawing->edges[i].ends;

		for (k = 0; k < i && drawing->labels; k++)
			if (drawing->edges[k].ends[0] == ends[0] &&
			    drawing->edges[k].ends[1] == ends[1])
				break;
		drawing->edges[i].bundle = drawing->labels ? k : i;
	}
}

static void labels_measure(const struct topo_map *map, struct topo_drawing *drawing)
{
	char text[DRAWING_ROW_MAX];
	int i, line;

	for (i = 0; i < drawing->graph.num_edges && drawing->labels; i++) {
		struct layout_edge *edge = &drawing->edges[i];

		if (edge->bundle != i || map->links[drawing->sources[i].link].num != 2)
			continue;
		edge->label_height = 4;
		for (line = 0; topo_drawing_label(map, drawing, i, line, text); line++) {
			edge->label_width = fmax(edge->label_width,
						 DRAWING_ROW_CHAR * (double)strlen(text) + 10);
			edge->label_height += DRAWING_LABEL_LINE;
		}
	}
}

static void edge_add(struct topo_drawing *drawing, int link, int nic, int vertex, int other_nic,
		     int other)
{
	int at = drawing->graph.num_edges++;

	drawing->edges[at] = (struct layout_edge){.ends = {vertex, other}};
	drawing->sources[at] = (struct drawing_edge){.link = link, .nics = {nic, other_nic}};
}

static void edges_add(const struct topo_map *map, struct topo_drawing *drawing)
{
	int i, k;

	for (i = 0; i < map->num_links; i++) {
		const struct topo_link *link = &map->links[i];
		const int *members = map->members + link->first;

		if (link->num == 2) {
			edge_add(drawing, i, members[0], map->nics[members[0]].node, members[1],
				 map->nics[members[1]].node);
			continue;
		}
		for (k = 0; k < link->num; k++)
			edge_add(drawing, i, members[k], map->nics[members[k]].node, -1,
				 map->num_nodes + drawing->num_switches);
		drawing->switches[drawing->num_switches++] = i;
	}
}

static int drawing_allocate(const struct topo_map *map, struct topo_drawing *drawing)
{
	int i, num_edges = 0;

	drawing->graph.num_vertices = map->num_nodes;
	for (i = 0; i < map->num_links; i++) {
		num_edges += map->links[i].num == 2 ? 1 : map->links[i].num;
		drawing->graph.num_vertices += map->links[i].num != 2;
	}
	if (drawing->graph.num_vertices > MESH_TOPOLOGY_NODES_MAX) {
		fprintf(stderr, "fi_mesh topo: too many nodes and switches to draw\n");
		return -E2BIG;
	}
	drawing->vertices =
		calloc((size_t)drawing->graph.num_vertices + 1, sizeof(*drawing->vertices));
	drawing->edges = calloc((size_t)num_edges + 1, sizeof(*drawing->edges));
	drawing->sources = calloc((size_t)num_edges + 1, sizeof(*drawing->sources));
	drawing->switches = calloc((size_t)map->num_links + 1, sizeof(*drawing->switches));
	if (!drawing->vertices || !drawing->edges || !drawing->sources || !drawing->switches)
		return -ENOMEM;
	drawing->graph.vertices = drawing->vertices;
	drawing->graph.edges = drawing->edges;
	return 0;
}

int topo_drawing_make(const struct topo_map *map, struct topo_drawing *drawing)
{
	struct topo_drawing result = {.num_switches = 0};
	int ret;

	ret = drawing_allocate(map, &result);
	if (!ret) {
		edges_add(map, &result);
		result.labels = result.graph.num_vertices <= LABELLED_VERTICES_MAX;
		bundles_find(&result);
		ret = arrange(map, &result.graph, result.vertices, &result.order);
	}
	if (!ret) {
		columns_measure(map, &result);
		boxes_measure(map, &result);
		labels_measure(map, &result);
		ret = layout_make(&result.graph, &result.layout);
	}
	if (ret) {
		topo_drawing_free(&result);
		return ret;
	}
	*drawing = result;
	return 0;
}

void topo_drawing_free(struct topo_drawing *drawing)
{
	free(drawing->vertices);
	free(drawing->edges);
	free(drawing->sources);
	free(drawing->switches);
	free(drawing->order);
	layout_free(&drawing->layout);
	memset(drawing, 0, sizeof(*drawing));
}
