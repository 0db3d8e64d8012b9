/* SPDX-License-Identifier: Apache-2.0 */
/* test_shape.c - shapes: what they need, their cables, and the walk along these. */
#include "base/log.h"
#include "plan/shape.h"
#include "plan/topology.h"

#include "log_capture.h"
#include "unit.h"

static struct mesh_shape shape_of(const char *text)
{
	struct mesh_shape shape;

	if (mesh_shape_parse(text, &shape))
		fail_msg("%s is not read", text);
	return shape;
}

/* Ports 0 .. degree - 1 of every node have one cable each. */
static void ports_are_dense(const struct mesh_topology *topology)
{
	struct mesh_neighbours neighbours;
	int node, port, i, count;

	assert_int_equal(mesh_neighbours_load(topology, &neighbours), 0);
	for (node = 0; node < topology->num_nodes; node++) {
		for (port = 0; port < neighbours.first[node + 1] - neighbours.first[node]; port++) {
			for (count = 0, i = 0; i < 2 * topology->num_cables; i++) {
				const struct mesh_cable_end *end =
					&topology->cables[i / 2].ends[i % 2];

				count += end->node == node && end->port == port;
			}
			assert_int_equal(count, 1);
		}
	}
	mesh_neighbours_free(&neighbours);
}

/* The shape's own order is a ring (or a line) along its cables that visits each node once. */
static void order_holds(const struct mesh_shape *shape, const struct mesh_topology *topology,
			bool closed)
{
	int num = topology->num_nodes, i;
	int *order = calloc((size_t)num, sizeof(*order));
	bool *seen = calloc((size_t)num, sizeof(*seen));
	struct mesh_neighbours neighbours;
	char text[MESH_SHAPE_TEXT_MAX];

	assert_non_null(order);
	assert_non_null(seen);
	assert_int_equal(mesh_neighbours_load(topology, &neighbours), 0);
	assert_int_equal(mesh_shape_order(shape, num, order), 0);
	for (i = 0; i < num; i++) {
		assert_in_range(order[i], 0, num - 1);
		assert_false(seen[order[i]]);
		seen[order[i]] = true;
		if ((i || closed) &&
		    !mesh_neighbours_joined(&neighbours, order[(i + num - 1) % num], order[i]))
			fail_msg("%s: place %d is not joined to the one before",
				 mesh_shape_text(shape, text), i);
	}
	mesh_neighbours_free(&neighbours);
	free(order);
	free(seen);
}

static void shape_holds(const char *text, int num_nodes, int num_cables, int num_ports, bool closed)
{
	struct mesh_shape shape = shape_of(text);
	struct mesh_topology topology;

	assert_int_equal(mesh_shape_num_ports(&shape, num_nodes), num_ports);
	assert_int_equal(mesh_shape_num_cables(&shape, num_nodes), num_cables);
	assert_int_equal(mesh_shape_build(&shape, num_nodes, &topology), 0);
	assert_int_equal(topology.num_cables, num_cables);
	assert_int_equal(mesh_topology_max_degree(&topology), num_ports);
	ports_are_dense(&topology);
	order_holds(&shape, &topology, closed);
	mesh_topology_free(&topology);
}

TEST(shapes)
{
	shape_holds("triangle", 3, 3, 2, true);
	/* n nodes: n - 1 ports each, n (n - 1) / 2 cables. */
	shape_holds("full", 2, 1, 1, true);
	shape_holds("full", 4, 6, 3, true);
	shape_holds("full", 9, 36, 8, true);
	shape_holds("ring", 2, 1, 1, true);
	shape_holds("ring", 3, 3, 2, true);
	shape_holds("ring", 6, 6, 2, true);
	shape_holds("line", 2, 1, 1, true);
	shape_holds("line", 5, 4, 2, false);
	shape_holds("torus:3x3", 9, 18, 4, true);
	shape_holds("torus:2x2", 4, 4, 2, true);
	shape_holds("torus:2x3", 6, 9, 3, true);
	shape_holds("torus:1x5", 5, 5, 2, true);
	shape_holds("torus:7", 7, 7, 2, true);
	shape_holds("torus:2x2x2", 8, 12, 3, true);
	shape_holds("torus:3x4x5", 60, 180, 6, true);
	shape_holds("torus:4x4x4x4", 256, 1024, 8, true);
}

/* No ring leads along its cables. */
TEST(star)
{
	struct mesh_shape shape = shape_of("star");
	struct mesh_topology topology;

	assert_int_equal(mesh_shape_build(&shape, 5, &topology), 0);
	assert_true(topology.num_cables == 4 && mesh_shape_num_cables(&shape, 5) == 4);
	for (int i = 0; i < 4; i++)
		assert_true(!topology.cables[i].ends[0].node &&
			    topology.cables[i].ends[1].node == i + 1);
	assert_true(mesh_topology_max_degree(&topology) == 4 &&
		    mesh_shape_num_ports(&shape, 5) == 4);
	mesh_topology_free(&topology);
}

/* Rows and columns of every parity: a torus always has a ring. */
TEST(torus_rings)
{
	char text[MESH_SHAPE_TEXT_MAX];
	struct mesh_topology topology;
	struct mesh_shape shape;

	for (int a = 1; a <= 7; a++)
		for (int b = 1; b <= 7; b++)
			for (int c = 1; c <= 4; c++) {
				if (a * b * c < 3)
					continue;
				snprintf(text, sizeof(text), "torus:%dx%dx%d", a, b, c);
				shape = shape_of(text);
				assert_int_equal(mesh_shape_build(&shape, a * b * c, &topology), 0);
				order_holds(&shape, &topology, true);
				mesh_topology_free(&topology);
			}
}

TEST(triangle_reference)
{
	struct mesh_shape shape = shape_of("triangle");
	struct mesh_topology topology;

	/* A-C first, then A-B, then B-C: 192.168.100, .101, .102 in the reference triangle. */
	assert_int_equal(mesh_shape_build(&shape, 3, &topology), 0);
	assert_int_equal(topology.cables[0].ends[0].node, 0);
	assert_int_equal(topology.cables[0].ends[1].node, 2);
	assert_int_equal(topology.cables[1].ends[0].node, 0);
	assert_int_equal(topology.cables[1].ends[1].node, 1);
	assert_int_equal(topology.cables[2].ends[0].node, 1);
	assert_int_equal(topology.cables[2].ends[1].node, 2);
	mesh_topology_free(&topology);
}

TEST(parallel)
{
	struct mesh_shape shape = shape_of("ring");
	struct mesh_topology topology;

	shape.parallel = 2;
	assert_int_equal(mesh_shape_num_ports(&shape, 5), 4);
	assert_int_equal(mesh_shape_num_cables(&shape, 5), 10);
	assert_int_equal(mesh_shape_build(&shape, 5, &topology), 0);
	assert_int_equal(topology.num_cables, 10);
	ports_are_dense(&topology);
	mesh_topology_free(&topology);
	shape.parallel = MESH_PARALLEL_MAX + 1;
	log_capture_start();
	assert_int_equal(mesh_shape_build(&shape, 5, &topology), -EINVAL);
	shape = shape_of("full");
	shape.parallel = MESH_PARALLEL_MAX;
	assert_int_equal(mesh_shape_build(&shape, 1024, &topology), -E2BIG);
	assert_true(log_captured(MESH_LOG_WARN, "8380416 cables"));
}

static void refused(const char *text, int num_nodes, int error, const char *words)
{
	struct mesh_shape shape = shape_of(text);
	struct mesh_topology topology;

	log_capture_start();
	assert_int_equal(mesh_shape_build(&shape, num_nodes, &topology), error);
	if (!log_captured(MESH_LOG_WARN, words))
		fail_msg("%s of %d: the log has no \"%s\"", text, num_nodes, words);
}

TEST(refused)
{
	static const char *const junk[] = {"",
					   "Ring",
					   "torus",
					   "torus:",
					   "torus:3x",
					   "torus:x3",
					   "torus:0x3",
					   "torus:-1x3",
					   "torus:3x3x3x3x3",
					   "torus:3y3",
					   "torus:99999999999x2",
					   "ring ",
					   "hub"};
	struct mesh_shape shape;

	log_capture_start();
	FOR_EACH(i, junk)
		if (mesh_shape_parse(junk[i], &shape) != -EINVAL)
			fail_msg("\"%s\" is read", junk[i]);
	refused("triangle", 4, -EINVAL, "a triangle has 3 nodes, not 4");
	refused("torus:3x3", 8, -EINVAL, "torus:3x3 has 9 nodes, not 8");
	refused("torus:1024x1024x1024x1024", 8, -EINVAL, "more than 1024 nodes");
	refused("ring", 1, -EINVAL, "2 to 1024 nodes, not 1");
	refused("ring", 1025, -EINVAL, "not 1025");
}

TEST(fitting)
{
	char text[400];

	assert_string_equal(mesh_shapes_fitting(12, 4, 1, text, sizeof(text)),
			    "torus:2x6 (3 ports), torus:3x4 (4 ports), ring (2 ports), "
			    "line (2 ports)");
	assert_string_equal(mesh_shapes_fitting(6, 2, 1, text, sizeof(text)),
			    "ring (2 ports), line (2 ports)");
	assert_string_equal(mesh_shapes_fitting(6, 2, 2, text, sizeof(text)), "none");
	assert_string_equal(mesh_shapes_fitting(2, 1, 1, text, sizeof(text)),
			    "full (1 port), ring (1 port), line (1 port)");
	assert_string_equal(mesh_shapes_fitting(5, 1, 1, text, sizeof(text)), "none");
	/* As many cables as there is room for. */
	mesh_shapes_fitting(5040, 8, 1, text, 100);
	assert_true(strlen(text) < 100);
}

TEST(parts)
{
	struct mesh_topology topology;
	struct mesh_neighbours neighbours;
	int seen[5], queue[5];

	/* 0 - 1 - 2, 3 - 4 */
	assert_int_equal(mesh_topology_init(&topology, 5), 0);
	mesh_topology_add(&topology, (struct mesh_cable_end){1, 0}, (struct mesh_cable_end){0, 0});
	mesh_topology_add(&topology, (struct mesh_cable_end){1, 0}, (struct mesh_cable_end){2, 0});
	mesh_topology_add(&topology, (struct mesh_cable_end){4, 0}, (struct mesh_cable_end){3, 0});
	assert_int_equal(topology.cables[0].ends[0].node, 0);
	assert_int_equal(mesh_neighbours_load(&topology, &neighbours), 0);
	assert_int_equal(mesh_neighbours_parts(&neighbours, 5, -1, seen, queue), 2);
	assert_int_equal(mesh_neighbours_parts(&neighbours, 5, 1, seen, queue), 3);
	assert_int_equal(mesh_neighbours_parts(&neighbours, 5, 0, seen, queue), 2);
	mesh_neighbours_free(&neighbours);
	log_capture_start();
	assert_int_equal(mesh_topology_add(&topology, (struct mesh_cable_end){1, 0},
					   (struct mesh_cable_end){1, 1}),
			 -EINVAL);
	assert_int_equal(mesh_topology_add(&topology, (struct mesh_cable_end){1, 0},
					   (struct mesh_cable_end){5, 1}),
			 -EINVAL);
	assert_int_equal(mesh_topology_add(&topology, (struct mesh_cable_end){-1, 0},
					   (struct mesh_cable_end){2, 1}),
			 -EINVAL);
	mesh_topology_free(&topology);
}
