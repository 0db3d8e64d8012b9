/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_explore.c - a search of the mesh among nodes that answer anything, or not at all. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "neighbours/explore.h"
#include "nic/graph_routes.h"

#include "fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SELF 1
#define TOKEN 0xabcdef
#define LINKS_MAX 32
/* Of one node; each question may be asked again. */
#define ANSWERS_MAX 4
#define QUESTIONS_MAX (MESH_EXPLORE_TRIES * ANSWERS_MAX)

static struct mesh_links_question asked[MESH_EXPLORE_WINDOW];

static void questions_ask(struct mesh_explore *explore, uint64_t now_ms)
{
	struct mesh_links_question question;
	union mesh_links links;
	int i;

	while (mesh_explore_next(explore, now_ms, &question)) {
		/* The nodes on the way take it: none is there twice. It does not come back. */
		fuzz_check(!mesh_links_decode(&question, mesh_links_question_finish(&question),
					      &links));
		for (i = 0; i < question.num_route; i++)
			fuzz_check(question.route[i] != SELF);
		fuzz_check(question.token == TOKEN && question.number < explore->num_nodes);
		asked[explore->sent % MESH_EXPLORE_WINDOW] = question;
		fuzz_check(explore->num_asked <= MESH_EXPLORE_WINDOW);
		fuzz_check(explore->sent <= (uint64_t)explore->num_nodes * QUESTIONS_MAX);
	}
}

/* To one of the latest questions; @step: 4 bytes, then nodes. Returns the bytes used. */
static size_t answer_take(struct mesh_explore *explore, const uint8_t *step, size_t size)
{
	const struct mesh_links_nic nics[2] = {{.netdev = "eth0"}, {.netdev = "eth1", .nic = 1}};
	const struct mesh_links_question *question = &asked[step[1] % MESH_EXPLORE_WINDOW];
	struct mesh_links_question first = *question;
	struct mesh_links_answer answer = {.flags = step[0] >> 6};
	struct mesh_links_link entries[LINKS_MAX];
	int i, num = step[2] % LINKS_MAX;
	union mesh_links links;

	num = (size_t)num < size - 4 ? num : (int)(size - 4);
	for (i = 0; i < num; i++)
		entries[i] = (struct mesh_links_link){
			.node_id = (uint64_t)(step[3] >> 4) << 5 | (step[4 + i] & 0x1f),
			.speed_mbps = 1000,
			.nic = step[4 + i] >> 6 & 1,
			.peer_nic = step[4 + i] >> 7,
		};
	first.cursor = 0;
	mesh_links_answer_fill(&answer, &first, nics, 2, entries, num);
	if (question->num_route)
		answer.node_id = question->route[question->num_route - 1];
	answer.node_id ^= step[3] & 1 ? step[1] : 0;
	answer.cursor = question->cursor;
	answer.next = step[3] & 2 ? answer.cursor + 1 : 0;
	if (!mesh_links_decode(&answer, answer.head.length, &links))
		mesh_explore_answer(explore, &links.answer);
	return 4 + (size_t)num;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct mesh_route routes[MESH_ROUTES_MAX];
	struct mesh_graph_link own[2] = {{.node_id = 2, .speed_mbps = 1000},
					 {.node_id = 3, .nic = 1}};
	struct mesh_explore explore;
	uint64_t now_ms = 1000;
	size_t used;
	int i;

	memset(asked, 0, sizeof(asked));
	fuzz_check(!mesh_explore_begin(&explore, SELF, TOKEN, 5));
	explore.target = size ? data[0] : 0;
	fuzz_check(!mesh_explore_links_set(&explore, own, 2));
	for (; size >= 4; data += used, size -= used) {
		now_ms += data[0] & 1 ? MESH_EXPLORE_TIMEOUT_MS : 1;
		questions_ask(&explore, now_ms);
		used = answer_take(&explore, data, size);
	}
	/* Nobody answers from now on: it ends. */
	for (questions_ask(&explore, now_ms); mesh_explore_due_ms(&explore) != UINT64_MAX;) {
		now_ms = mesh_explore_due_ms(&explore);
		questions_ask(&explore, now_ms);
	}
	fuzz_check(mesh_explore_is_over(&explore) && explore.num_nodes <= MESH_ID_INDEX_MAX);
	for (i = 1; i < explore.num_nodes; i++)
		fuzz_check(explore.nodes[i].num_nics <= ANSWERS_MAX * 2);
	for (i = 1; i < explore.num_nodes && i < 8; i++) {
		mesh_explore_has_found(&explore, explore.nodes[i].id);
		mesh_graph_routes(&explore.graph, SELF, explore.nodes[i].id, MESH_ROUTE_RELAYS_MAX,
				  now_ms, routes, MESH_ROUTES_MAX);
	}
	mesh_explore_finish(&explore);
	return 0;
}
