/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_forwarding.c - questions are passed on once, and their answers to those who asked alone. */
#include <stdint.h>
#include <string.h>

#include "neighbours/answering.h"

#include "fuzz_text.h"

#define SELF 1
#define LINKS 4
/* All tokens of a run. */
#define TOKENS 32

static struct mesh_forwarding forwarding;

/* What has come of each question. */
static struct asked {
	bool came, passed;
	uint8_t hops;
	uint32_t links;
} asked[TOKENS];

static uint64_t answer_token; /* of the one that has arrived; ~0: none */
static int num_back;

static void ask(void *owner, uint32_t links, const struct mesh_links_question *question)
{
	struct mesh_links_question onward = *question;
	struct asked *at = &asked[question->token];
	union mesh_links decoded;

	/* The next node takes it. */
	fuzz_check(!mesh_links_decode(&onward, mesh_links_question_finish(&onward), &decoded));
	fuzz_check(at->came && question->node_id != SELF && question->hops < at->hops);
	fuzz_check(links && !(links & ~at->links));
	at->passed = true;
}

/* To the link on which the question has come. */
static void answer_back(void *owner, const struct mesh_forwarding_asker *to,
			const struct mesh_links_answer *answer)
{
	fuzz_check(answer->token == answer_token && answer_token < TOKENS);
	fuzz_check(asked[answer_token].links >> to->ifindex & 1);
	num_back++;
}

static bool is_settled;

static bool own(void *owner, const struct mesh_forwarding_slot *slot)
{
	fuzz_check(asked[slot->token].came);
	return is_settled || slot->token & 1;
}

/* @step: 8 bytes */
static void question_take(const uint8_t *step, uint64_t now_ms)
{
	struct mesh_links_question question = {
		.token = step[1] % TOKENS,
		.node_id = step[2] & 7,
		.hops = step[3],
	};
	struct mesh_forwarding_asker from = {.ifindex = step[5] % LINKS};
	struct asked *at = &asked[question.token];
	union mesh_links links;

	if (mesh_links_decode(&question, mesh_links_question_finish(&question), &links))
		return;
	if (question.node_id != SELF) {
		at->came = true;
		at->links |= 1u << from.ifindex;
		at->hops = question.hops > at->hops ? question.hops : at->hops;
	}
	mesh_forwarding_question(&forwarding, step[5] % LINKS, &from, &question, now_ms);
}

static void answer_take(const uint8_t *step, uint64_t now_ms)
{
	struct mesh_links_answer answer = {.node_id = step[2], .token = step[1] % (TOKENS + 1)};

	answer_token = answer.token;
	num_back = 0;
	mesh_links_answer_fill(&answer, step[3], NULL, 0, NULL, 0);
	mesh_forwarding_answer(&forwarding, &answer, now_ms);
	answer_token = UINT64_MAX;
	fuzz_check(num_back <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now_ms = 5000;
	int i;

	memset(&forwarding, 0, sizeof(forwarding));
	memset(asked, 0, sizeof(asked));
	is_settled = false;
	forwarding.node_id = SELF;
	forwarding.ask = ask;
	forwarding.answer = answer_back;
	forwarding.own = own;
	answer_token = UINT64_MAX;
	for (; size >= 8; data += 8, size -= 8) {
		now_ms += data[0] & 2 ? (uint64_t)data[7] << 4 : 0;
		if (data[0] & 1)
			question_take(data, now_ms);
		else
			answer_take(data, now_ms);
		if (data[0] & 4)
			mesh_forwarding_advance(&forwarding, now_ms);
	}
	now_ms += MESH_FORWARDING_DELAY_MS;
	is_settled = true;
	fuzz_check(!mesh_forwarding_advance(&forwarding, now_ms));
	for (i = 0; i < TOKENS; i++)
		fuzz_check(asked[i].came || !asked[i].passed);
	return 0;
}
