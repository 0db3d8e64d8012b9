/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_topo_routed.c - `fi_mesh topo` takes relays with RDMA on each hop before a route of the
 * kernel without RDMA, as the plugin does.
 */
#include "topo/map.h"
#include "topo/path.h"

#include "namespace.h"
#include "unit.h"

static void nic_add(struct topo_map *map, const char *name, const char *addr, bool rdma)
{
	struct topo_nic nic = {.rate_mbps = 100000,
			       .state = TOPO_UP,
			       .provider = rdma ? MESH_PROVIDER_VERBS_RXM : MESH_PROVIDER_TCP};

	snprintf(nic.name, sizeof(nic.name), "%s", name);
	assert_int_equal(mesh_addr_parse(addr, &nic.addr), 0);
	assert_int_equal(topo_map_nic_add(map, &nic), 0);
}

/*
 * A line, of whose ends the first is this node; its other NIC n0 leads to the far end by a router.
 * @rdma: of the middle's second NIC; @routed: of n0 and the NIC behind the router; @cable: the two
 * ends have a cable, too, whose NICs share no subnet
 */
static void path_is(bool rdma, bool routed, bool cable, const char *wanted)
{
	struct topo_map map = {.asked = true, .shape = {.kind = MESH_SHAPE_CABLES}};
	struct topo_path path;
	char text[400];

	assert_int_equal(topo_map_node_add(&map, "a"), 0);
	nic_add(&map, "n0", "10.1.0.1/24", routed);
	nic_add(&map, "n1", "10.2.0.1/24", true);
	assert_int_equal(topo_map_node_add(&map, "b"), 0);
	nic_add(&map, "q0", "10.2.0.2/24", true);
	nic_add(&map, "q1", "10.3.0.2/24", rdma);
	assert_int_equal(topo_map_node_add(&map, "c"), 0);
	nic_add(&map, "p0", "10.3.0.3/24", true);
	nic_add(&map, "p1", "10.9.1.1/24", routed);
	topo_map_wire(&map, 1, 2);
	topo_map_wire(&map, 3, 4);
	if (cable)
		topo_map_wire(&map, 0, 5);
	assert_int_equal(topo_map_wires_join(&map), 0);
	topo_path_find(&map, 0, 2, &path);
	snprintf(text, sizeof(text), "%s local %d provider %d via %d%s: %s",
		 path.routed ? "routed" : "not routed", path.local, path.provider, path.via.num,
		 path.via.num ? map.nodes[path.via.relays[0][0]].name : "", path.reason);
	assert_string_equal(text, wanted);
	topo_map_free(&map);
}

#define OVER_B                                                                                     \
	"not routed local -1 provider 0 via 1b: routed without RDMA, which relays have: 1 relay"
#define BY_NUMBER                                                                                  \
	"routed: no subnet in common, and the two have the same number on nodes with equally "     \
	"many NICs; "

TEST(relays_first)
{
	path_is(true, false, false, OVER_B);
	path_is(false, false, false,
		"routed local 0 provider 2 via 0: " BY_NUMBER "tcp, because a has no RDMA there");
	path_is(true, true, false,
		"routed local 0 provider 1 via 0: " BY_NUMBER "verbs;ofi_rxm (RDMA at both ends)");
	/* A cable without a common subnet is no path, and nothing that relays come behind. */
	path_is(true, false, true, OVER_B);
}

/* Nor is it down, where no route leads there either. */
TEST(cable_is_up)
{
	struct topo_map map = {.shape = {.kind = MESH_SHAPE_CABLES}};
	struct topo_path path;

	assert_int_equal(topo_map_node_add(&map, "a"), 0);
	nic_add(&map, "n0", "10.1.0.1/24", true);
	assert_int_equal(topo_map_node_add(&map, "b"), 0);
	nic_add(&map, "p0", "10.9.0.1/24", true);
	topo_map_wire(&map, 0, 1);
	assert_int_equal(topo_map_wires_join(&map), 0);
	topo_path_find(&map, 0, 1, &path);
	assert_false(path.link_down);
	assert_string_equal(path.reason,
			    "none: no common subnet; ranks on nodes between may relay");
	map.nics[1].state = TOPO_DOWN;
	topo_path_find(&map, 0, 1, &path);
	assert_true(path.link_down);
	topo_map_free(&map);
}

/* What leaves by n0 reaches the other networks. */
void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
	namespace_nics(2);
	namespace_ip("rule add from 10.1.0.1 table 101");
	namespace_ip("route add default dev n0 table 101");
}
