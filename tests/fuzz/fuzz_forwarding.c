/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_forwarding.c - questions and answers of any nodes are passed on to their askers alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "neighbours/reporting.h"

#include "fuzz_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SELF 1
#define NODES 6
#define PASSED_MAX 64

/* What has been passed on, and who asked. */
static struct passed {
	struct mesh_links_question asked, onward;
	unsigned int ifindex;
	bool answered;
} passed[PASSED_MAX], now;

static int num_passed, num_done;

static bool ask(void *owner, uint64_t node_id, const struct mesh_links_question *question)
{
	size_t rest = question->num_route * sizeof(uint64_t);
	union mesh_links links;

	(void)owner;
	/* The next node takes it, with what is left of the route. */
	fuzz_check(!mesh_links_decode(question, question->head.length, &links));
	fuzz_check(question->num_route == now.asked.num_route - 1 &&
		   node_id == question->route[0] &&
		   !memcmp(question->route, now.asked.route + 1, rest));
	if (num_passed == PASSED_MAX)
		return false;
	now.onward = *question;
	passed[num_passed++] = now;
	return true;
}

/* The question is the asker's, and the answer comes from the node that it asked. */
static bool fits(const struct passed *at, const struct mesh_forwarding_asker *to,
		 const struct mesh_links_answer *answer)
{
	return at->ifindex == to->ifindex && at->asked.token == answer->token &&
	       at->asked.number == answer->number && at->asked.cursor == answer->cursor &&
	       at->asked.route[at->asked.num_route - 1] == answer->node_id;
}

static void answer_back(void *owner, const struct mesh_forwarding_asker *to,
			const struct mesh_links_answer *answer)
{
	union mesh_links links;
	int i = num_passed - 1;

	(void)owner;
	num_done++;
	fuzz_check(!mesh_links_decode(answer, answer->head.length, &links));
	if (now.ifindex) { /* while it asks: from what was kept */
		fuzz_check(fits(&now, to, answer));
		return;
	}
	while (i >= 0 && (passed[i].answered || !fits(&passed[i], to, answer)))
		i--;
	fuzz_check(i >= 0);
	passed[i].answered = true;
}

static void own(void *owner, const struct mesh_forwarding_asker *from,
		const struct mesh_links_question *question)
{
	(void)owner;
	num_done++;
	fuzz_check(from->ifindex == now.ifindex && question->num_route == 1 &&
		   question->route[0] == SELF);
}

/* @step: 8 bytes */
static void question_take(struct mesh_forwarding *forwarding, const uint8_t *step, uint64_t now_ms)
{
	struct mesh_links_question question = {
		.token = step[1], .number = step[2], .cursor = step[3] & 3, .job = step[3] >> 6};
	struct mesh_forwarding_asker from = {.ifindex = 1 + (step[1] & 1)};
	int before = num_passed + num_done, i;
	union mesh_links links;

	for (i = 0; i <= step[4] % 4; i++)
		question.route[question.num_route++] = i ? 1 + step[4 + i] % NODES : SELF;
	if (mesh_links_decode(&question, mesh_links_question_finish(&question), &links))
		return; /* a node twice */
	now = (struct passed){.asked = question, .ifindex = from.ifindex};
	mesh_forwarding_question(forwarding, &from, &question, now_ms);
	now.ifindex = 0;
	fuzz_check(num_passed + num_done <= before + 1);
}

/* An answer to something that was passed on, or nearly. */
static void answer_take(struct mesh_forwarding *forwarding, const uint8_t *step, uint64_t now_ms)
{
	struct mesh_links_question question = passed[step[1] % PASSED_MAX].onward;
	struct mesh_links_answer answer = {.node_id = step[2]};
	int before = num_done;
	union mesh_links links;

	if (question.num_route && step[3] & 1)
		answer.node_id = question.route[question.num_route - 1];
	question.token ^= step[3] & 2 ? step[4] : 0;
	question.number ^= step[3] & 4 ? step[5] : 0;
	question.cursor ^= step[3] & 8 ? step[6] & 3 : 0;
	mesh_links_answer_fill(&answer, &question, NULL, 0, NULL, 0);
	if (!mesh_links_decode(&answer, answer.head.length, &links))
		mesh_forwarding_answer(forwarding, &links.answer, now_ms);
	fuzz_check(num_done <= before + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mesh_forwarding forwarding = {
		.node_id = SELF, .ask = ask, .answer = answer_back, .own = own};
	uint64_t now_ms = 5000;

	num_passed = num_done = 0;
	memset(passed, 0, sizeof(passed));
	for (; size >= 8; data += 8, size -= 8) {
		now_ms += data[0] & 2 ? (uint64_t)data[7] << 4 : 0;
		if (data[0] & 4)
			mesh_forwarding_expire(&forwarding, now_ms);
		if (data[0] & 1)
			question_take(&forwarding, data, now_ms);
		else
			answer_take(&forwarding, data, now_ms);
	}
	mesh_forwarding_expire(&forwarding, now_ms + 3000);
	fuzz_check(!mesh_forwarding_bytes(&forwarding));
	return 0;
}
