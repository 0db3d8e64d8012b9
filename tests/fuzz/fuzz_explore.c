/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_explore.c - a search of the mesh among nodes that answer anything, or not at all. */
#include <stdint.h>

#include "neighbours/searching.h"
#include "nic/graph.h"

#include "fuzz_text.h"

#define SELF 1
#define TOKEN 0xabcdef
#define LINKS_MAX 32

/* @step: 4 bytes, then nodes. Returns the bytes used. */
static size_t answer_take(struct mesh_explore *explore, const uint8_t *step, size_t size)
{
	const struct mesh_links_nic nics[2] = {{.netdev = "eth0"}, {.netdev = "eth1", .nic = 1}};
	struct mesh_links_answer answer = {
		.node_id = step[1], .token = TOKEN + (step[0] & 3), .flags = step[0] >> 6};
	struct mesh_links_link entries[LINKS_MAX];
	int i, num = step[2] % LINKS_MAX, before = explore->num_known;
	union mesh_links links;

	num = (size_t)num < size - 4 ? num : (int)(size - 4);
	for (i = 0; i < num; i++)
		entries[i] = (struct mesh_links_link){
			.node_id = (uint64_t)(step[3] >> 4) << 5 | (step[4 + i] & 0x1f),
			.speed_mbps = 1000,
			.nic = step[4 + i] >> 6 & 1,
			.peer_nic = step[4 + i] >> 7,
		};
	mesh_links_answer_fill(&answer, 0, nics, 2, entries, num);
	answer.cursor = step[3] & 3;
	answer.next = step[3] & 4 ? answer.cursor + 1 : 0;
	if (!mesh_links_decode(&answer, answer.head.length, &links))
		mesh_explore_answer(explore, &links.answer);
	fuzz_check(explore->num_known <= before + ((step[0] & 3) < MESH_EXPLORE_TRIES));
	fuzz_check(explore->num_known <= explore->num_nodes);
	return 4 + (size_t)num;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mesh_route routes[MESH_ROUTES_MAX];
	struct mesh_graph_link own[2] = {{.node_id = 2, .speed_mbps = 1000},
					 {.node_id = 3, .nic = 1}};
	struct mesh_explore explore;
	size_t used;
	int i, known = 0;

	fuzz_check(!mesh_explore_begin(&explore, SELF, TOKEN));
	fuzz_check(!mesh_explore_links_set(&explore, own, 2));
	for (; size >= 4; data += used, size -= used)
		used = answer_take(&explore, data, size);
	fuzz_check(explore.num_nodes <= MESH_GRAPH_NODES_MAX);
	for (i = 0; i < explore.num_nodes; i++) {
		known += explore.nodes[i].known;
		fuzz_check(explore.nodes[i].num_nics <= MESH_NICS_MAX);
		fuzz_check(explore.nodes[i].parent < explore.num_nodes);
	}
	fuzz_check(known == explore.num_known);
	for (i = 1; i < explore.num_nodes && i < 8; i++)
		mesh_graph_routes(&explore.graph, SELF, explore.nodes[i].id, MESH_ROUTE_RELAYS_MAX,
				  NULL, 0, routes, MESH_ROUTES_MAX);
	mesh_explore_finish(&explore);
	return 0;
}
