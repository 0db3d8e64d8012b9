/* SPDX-License-Identifier: Apache-2.0 */
/* test_topo_layout.c - drawings of many meshes: nothing overlaps, nothing is out of the picture. */
#include <math.h>

#include "plan/cable_list.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "plan/topology.h"
#include "topo/drawing.h"
#include "topo/graph.h"
#include "topo/map.h"

#include "unit.h"

/* ---- maps ------------------------------------------------------------------------------- */

/* A plan's content, without the detour over JSON. */
static void map_of_topology(const struct mesh_topology *topology, const struct mesh_shape *shape,
			    const char *name, int rate_mbps, struct topo_map *map)
{
	struct mesh_subnets subnets = {.prefix_len = 24};
	struct mesh_neighbours neighbours;
	char text[MESH_PLAN_NAME_MAX];
	int node, port, i;

	assert_int_equal(mesh_neighbours_load(topology, &neighbours), 0);
	*map = (struct topo_map){.planned = true, .shape = *shape};
	mesh_addr_parse("10.0.0.0/8", &subnets.first);
	for (node = 0; node < topology->num_nodes; node++) {
		snprintf(text, sizeof(text), "%s%d", name, node + 1);
		assert_int_equal(topo_map_node_add(map, text), 0);
		for (port = 0; port < neighbours.first[node + 1] - neighbours.first[node]; port++) {
			struct topo_nic nic = {.rate_mbps = rate_mbps};

			snprintf(nic.name, sizeof(nic.name), "mesh%d", port);
			assert_int_equal(topo_map_nic_add(map, &nic), 0);
		}
	}
	for (i = 0; i < 2 * topology->num_cables; i++) {
		const struct mesh_cable_end *end = &topology->cables[i / 2].ends[i % 2];
		struct mesh_addr subnet = mesh_subnets_get(&subnets, (uint64_t)i / 2);

		map->nics[map->nodes[end->node].first_nic + end->port].addr =
			mesh_subnet_host(&subnet, i % 2);
	}
	assert_int_equal(topo_map_join(map), 0);
	assert_int_equal(map->num_links, topology->num_cables);
	mesh_neighbours_free(&neighbours);
}

/* ---- what must hold --------------------------------------------------------------------- */

struct drawn {
	const char *what; /* for messages */
	const struct layout_graph *graph;
	const struct layout *layout;
};

static void inside(const struct drawn *drawn, const struct layout_rect *rect, const char *kind)
{
	if (rect->x < 0 || rect->y < 0 || rect->x + rect->width > drawn->layout->width ||
	    rect->y + rect->height > drawn->layout->height)
		fail_msg("%s: a %s is out of the picture", drawn->what, kind);
}

static void apart(const struct drawn *drawn, const struct layout_rect *a,
		  const struct layout_rect *b, const char *kinds)
{
	if (layout_rects_overlap(a, b, 0))
		fail_msg("%s: %s overlap at %.0f,%.0f and %.0f,%.0f", drawn->what, kinds, a->x,
			 a->y, b->x, b->y);
}

static void boxes_hold(const struct drawn *drawn)
{
	const struct layout_rect *boxes = drawn->layout->boxes;
	int i, k;

	for (i = 0; i < drawn->graph->num_vertices; i++) {
		inside(drawn, &boxes[i], "box");
		for (k = 0; k < i; k++)
			apart(drawn, &boxes[i], &boxes[k], "boxes");
	}
}

/* A label or tag hides no box, no other label and no other tag. */
static void text_holds(const struct drawn *drawn, int edge, const struct layout_rect *rect)
{
	int i, end;

	inside(drawn, rect, "label");
	for (i = 0; i < drawn->graph->num_vertices; i++)
		apart(drawn, rect, &drawn->layout->boxes[i], "label and box");
	for (i = 0; i < drawn->graph->num_edges; i++) {
		const struct layout_cable *other = &drawn->layout->cables[i];

		if (i != edge && other->labelled)
			apart(drawn, rect, &other->label, "labels");
		for (end = 0; end < 2 && other->kind == LAYOUT_EDGE_TAGS; end++)
			if (rect != &other->tags[end])
				apart(drawn, rect, &other->tags[end], "label and tag");
	}
}

/* A line runs under no box but passes their borders only at its own. */
static void line_holds(const struct drawn *drawn, int edge)
{
	const struct layout_cable *cable = &drawn->layout->cables[edge];
	int i;

	for (i = 0; i < drawn->graph->num_vertices; i++)
		if (layout_line_crosses(cable->dots[0], cable->dots[1], &drawn->layout->boxes[i]) &&
		    i != drawn->graph->edges[edge].ends[0] &&
		    i != drawn->graph->edges[edge].ends[1])
			fail_msg("%s: cable %d runs under box %d", drawn->what, edge, i);
}

/* Each dot is on the border of its box, and two dots of one box do not cover each other. */
static void dots_hold(const struct drawn *drawn)
{
	int num = 2 * drawn->graph->num_edges, i, k;

	for (i = 0; i < num; i++) {
		const struct layout_cable *cable = &drawn->layout->cables[i / 2];
		int vertex = drawn->graph->edges[i / 2].ends[i % 2];
		struct layout_point a = cable->dots[i % 2];
		const struct layout_rect *box = &drawn->layout->boxes[vertex];
		double out = fmax(fmax(box->x - a.x, a.x - box->x - box->width),
				  fmax(box->y - a.y, a.y - box->y - box->height));

		if (cable->kind == LAYOUT_EDGE_NONE)
			continue;
		if (fabs(out) > 0.01)
			fail_msg("%s: a dot is %.1f off its box", drawn->what, out);
		for (k = 0; k < i; k++) {
			struct layout_point b = drawn->layout->cables[k / 2].dots[k % 2];

			if (drawn->layout->cables[k / 2].kind == LAYOUT_EDGE_NONE ||
			    drawn->graph->edges[k / 2].ends[k % 2] != vertex)
				continue;
			if (hypot(a.x - b.x, a.y - b.y) < 1.7 * LAYOUT_DOT_RADIUS)
				fail_msg("%s: two dots are %.1f apart", drawn->what,
					 hypot(a.x - b.x, a.y - b.y));
		}
	}
}

struct counts {
	int labels, tags, none;
};

static struct counts drawing_holds(const struct topo_map *map, const char *what)
{
	struct topo_drawing drawing;
	struct counts counts = {0, 0, 0};
	int i, end;

	assert_int_equal(topo_drawing_make(map, &drawing), 0);
	struct drawn drawn = {what, &drawing.graph, &drawing.layout};

	boxes_hold(&drawn);
	dots_hold(&drawn);
	for (i = 0; i < drawing.graph.num_edges; i++) {
		const struct layout_cable *cable = &drawing.layout.cables[i];

		if (cable->labelled)
			text_holds(&drawn, i, &cable->label);
		for (end = 0; end < 2 && cable->kind == LAYOUT_EDGE_TAGS; end++)
			text_holds(&drawn, i, &cable->tags[end]);
		if (cable->kind == LAYOUT_EDGE_LINE)
			line_holds(&drawn, i);
		counts.labels += cable->labelled;
		counts.tags += cable->kind == LAYOUT_EDGE_TAGS;
		counts.none += cable->kind == LAYOUT_EDGE_NONE;
	}
	topo_drawing_free(&drawing);
	return counts;
}

static struct counts shape_holds(const char *text, int num_nodes, int parallel, const char *name,
				 int rate_mbps)
{
	struct mesh_topology topology;
	struct mesh_shape shape;
	struct counts counts;
	struct topo_map map;
	char what[100];

	snprintf(what, sizeof(what), "%s of %d %s, %d parallel", text, num_nodes, name, parallel);
	assert_int_equal(mesh_shape_parse(text, &shape), 0);
	shape.parallel = parallel;
	assert_int_equal(mesh_shape_build(&shape, num_nodes, &topology), 0);
	map_of_topology(&topology, &shape, name, rate_mbps, &map);
	counts = drawing_holds(&map, what);
	topo_map_free(&map);
	mesh_topology_free(&topology);
	return counts;
}

/* ---- tests ------------------------------------------------------------------------------ */

TEST(named_sizes)
{
	struct counts counts;

	/* Those that are looked at: every cable has its label or its tags. */
	assert_int_equal(shape_holds("triangle", 3, 1, "spark", 200000).labels, 3);
	assert_int_equal(shape_holds("full", 4, 1, "n", 100000).labels, 6);
	counts = shape_holds("torus:3x3", 9, 1, "n", 100000);
	assert_int_equal(counts.labels, 12);
	assert_int_equal(counts.tags, 6);
	assert_int_equal(shape_holds("full", 9, 1, "n", 0).labels, 36);
	counts = shape_holds("torus:8x8", 64, 1, "n", 0);
	assert_int_equal(counts.tags, 16);
	assert_int_equal(counts.none, 0);
	counts = shape_holds("ring", 64, 1, "n", 0);
	assert_int_equal(counts.tags, 0);
	counts = shape_holds("torus:4x4x4", 64, 1, "n", 0);
	assert_int_equal(counts.tags, 192 - 96);
	assert_int_equal(counts.none, 0);
}

TEST(rings_and_lines)
{
	int num, parallel;

	for (num = 2; num <= 40; num++)
		for (parallel = 1; parallel <= 2; parallel++) {
			shape_holds("ring", num, parallel, "n", 100000);
			shape_holds("line", num, parallel, "a-rather-long-host-name-", 0);
		}
	shape_holds("ring", 1000, 1, "n", 0);
}

TEST(full)
{
	int num;

	for (num = 2; num <= 16; num++)
		shape_holds("full", num, 1, "n", num % 2 ? 100000 : 0);
	shape_holds("full", 4, 4, "n", 100000);
}

TEST(tori)
{
	static const char *const shapes[] = {
		"torus:2x2",   "torus:2x3",	"torus:3x4", "torus:5x5",   "torus:2x2x2",
		"torus:3x3x3", "torus:2x2x2x2", "torus:1x6", "torus:3x1x4", "torus:12x3"};
	static const int sizes[] = {4, 6, 12, 25, 8, 27, 16, 6, 12, 36};

	FOR_EACH(i, sizes) {
		shape_holds(shapes[i], sizes[i], 1, "node-with-a-name-", 400000);
		shape_holds(shapes[i], sizes[i], 2, "n", 0);
	}
}

/* Cables at random, the same ones in every run; some nodes end up alone. */
TEST(random)
{
	struct mesh_shape shape = {.kind = MESH_SHAPE_CABLES};
	struct mesh_topology topology;
	uint32_t seed = 1;
	struct topo_map map;
	char what[60];
	int round, i;

	for (round = 0; round < 60; round++) {
		int num = 2 + round % 30, cables = num + round % 11;

		assert_int_equal(mesh_topology_init(&topology, num), 0);
		for (i = 0; i < cables; i++) {
			int a, b;

			seed = seed * 1664525 + 1013904223;
			a = (int)(seed >> 8) % num;
			seed = seed * 1664525 + 1013904223;
			b = (int)(seed >> 8) % num;
			if (a != b)
				mesh_topology_add(&topology, (struct mesh_cable_end){a, i},
						  (struct mesh_cable_end){b, i});
		}
		assert_int_equal(mesh_topology_number_ports(&topology), 0);
		map_of_topology(&topology, &shape, "n", round % 2 ? 25000 : 0, &map);
		snprintf(what, sizeof(what), "random mesh %d", round);
		drawing_holds(&map, what);
		topo_map_free(&map);
		mesh_topology_free(&topology);
	}
}

/* Four nodes on one subnet, and a cable beside it. */
TEST(switch)
{
	struct topo_map map = {.shape = {.kind = MESH_SHAPE_CABLES}};
	struct topo_nic nic = {.state = TOPO_UP, .name = "eth0"};
	char text[MESH_ADDR_TEXT_MAX];
	struct counts counts;
	int i;

	for (i = 0; i < 4; i++) {
		snprintf(text, sizeof(text), "n%d", i);
		assert_int_equal(topo_map_node_add(&map, text), 0);
		snprintf(text, sizeof(text), "10.0.0.%d/24", i + 1);
		assert_int_equal(mesh_addr_parse(text, &nic.addr), 0);
		assert_int_equal(topo_map_nic_add(&map, &nic), 0);
		snprintf(text, sizeof(text), "10.0.1.%d/24", i + 1);
		assert_int_equal(mesh_addr_parse(text, &nic.addr), 0);
		if (i < 2)
			assert_int_equal(topo_map_nic_add(&map, &nic), 0);
	}
	assert_int_equal(topo_map_join(&map), 0);
	assert_int_equal(map.num_links, 2);
	counts = drawing_holds(&map, "switch");
	assert_int_equal(counts.labels, 1);
	topo_map_free(&map);
}

TEST(geometry)
{
	struct layout_rect box = {10, 10, 20, 10}, beside = {30, 10, 5, 5}, within = {12, 12, 1, 1};

	assert_false(layout_rects_overlap(&box, &beside, 0));
	assert_true(layout_rects_overlap(&box, &beside, 1));
	assert_true(layout_rects_overlap(&box, &within, 0));
	assert_true(layout_line_crosses((struct layout_point){0, 0}, (struct layout_point){40, 30},
					&box));
	assert_true(layout_line_crosses((struct layout_point){20, 0}, (struct layout_point){20, 30},
					&box));
	assert_false(layout_line_crosses((struct layout_point){0, 0}, (struct layout_point){40, 5},
					 &box));
	assert_false(layout_line_crosses((struct layout_point){0, 0}, (struct layout_point){9, 9},
					 &box));
	/* Along the border is outside. */
	assert_false(layout_line_crosses((struct layout_point){0, 10},
					 (struct layout_point){40, 10}, &box));
}
