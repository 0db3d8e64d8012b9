/* SPDX-License-Identifier: Apache-2.0 */
/* test_links.c - questions and answers about links: what is made is read, the rest is refused. */
#include "wire/neighbour.h"

#include "unit.h"

static struct mesh_links_question question;
static struct mesh_links_answer answer;
static struct mesh_links_nic nics[MESH_NICS_MAX];
static struct mesh_links_link links[MESH_LINKS_MAX];
static union mesh_links decoded;

void tests_setup(void)
{
	memset(&question, 0, sizeof(question));
	memset(&answer, 0, sizeof(answer));
	memset(nics, 0, sizeof(nics));
	memset(links, 0, sizeof(links));
	snprintf(question.head.node, sizeof(question.head.node), "near");
	question.token = 7;
	question.node_id = 11;
	question.hops = MESH_LINKS_HOPS_MAX;
	answer.token = 7;
	answer.node_id = 12;
	snprintf(answer.head.node, sizeof(answer.head.node), "far");
	for (int i = 0; i < MESH_NICS_MAX; i++) {
		nics[i].nic = (uint8_t)i;
		snprintf(nics[i].netdev, sizeof(nics[i].netdev), "mesh%d", i);
	}
	for (int i = 0; i < MESH_LINKS_MAX; i++)
		links[i] = (struct mesh_links_link){.node_id = 100 + (uint64_t)i, .nic = 1};
}

/* @bytes: of a question or an answer; what @size has more of it is zeros. */
static int decode(const void *bytes, size_t size)
{
	uint8_t copy[2 * sizeof(union mesh_links)] = {0};
	size_t own = bytes == &question ? sizeof(question) : sizeof(answer);

	memcpy(copy, bytes, size < own ? size : own);
	return mesh_links_decode(copy, size, &decoded);
}

TEST(question)
{
	size_t size = mesh_links_question_finish(&question);

	assert_int_equal(size, 128);
	assert_int_equal(decode(&question, size), 0);
	assert_int_equal(decoded.head.type, MESH_LINKS_QUESTION);
	assert_memory_equal(&decoded.question, &question, size);
	assert_int_equal(decode(&question, size - 1), -EPROTO);
	assert_int_equal(decode(&question, size + 1), -EPROTO);
	assert_int_equal(decode(&question, 0), -EPROTO);
}

TEST(hops)
{
	question.hops = 0;
	assert_int_equal(decode(&question, mesh_links_question_finish(&question)), -EPROTO);
	question.hops = MESH_LINKS_HOPS_MAX + 1;
	assert_int_equal(decode(&question, mesh_links_question_finish(&question)), -EPROTO);
}

/* All entries come, in as many answers as they need. */
TEST(answers)
{
	int num_nics = 0, num_links = 0, answers = 0, i;
	struct mesh_links_nic nic;
	struct mesh_links_link link;
	size_t size;

	do {
		size = mesh_links_answer_fill(&answer, answer.next, nics, MESH_NICS_MAX, links,
					      MESH_LINKS_MAX);
		assert_int_equal(decode(&answer, size), 0);
		assert_int_equal(decoded.answer.token, 7);
		assert_string_equal(decoded.head.node, "far");
		for (i = 0; i < decoded.answer.num_nics; i++) {
			mesh_links_nic_get(&decoded.answer, i, &nic);
			assert_memory_equal(&nic, &nics[num_nics++], sizeof(nic));
		}
		for (i = 0; i < decoded.answer.num_links; i++) {
			mesh_links_link_get(&decoded.answer, i, &link);
			assert_memory_equal(&link, &links[num_links++], sizeof(link));
		}
		answers++;
	} while (answer.next);
	assert_int_equal(num_nics, MESH_NICS_MAX);
	assert_int_equal(num_links, MESH_LINKS_MAX);
	assert_int_equal(answers, 3);
	/* A cursor behind the end gives an answer without entries. */
	size = mesh_links_answer_fill(&answer, 60000, nics, 1, links, 1);
	assert_int_equal(decode(&answer, size), 0);
	assert_int_equal(decoded.answer.num_nics + decoded.answer.num_links, 0);
	assert_int_equal(decoded.answer.next, 0);
}

/* An answer whose entries, or which itself, has this one change is refused. */
#define REFUSED(entries, change)                                                                   \
	do {                                                                                       \
		tests_setup();                                                                     \
		entries;                                                                           \
		mesh_links_answer_fill(&answer, 0, nics, 2, links, 3);                             \
		change;                                                                            \
		assert_int_equal(decode(&answer, answer.head.length), -EPROTO);                    \
	} while (0)

TEST(refused)
{
	REFUSED(, answer.num_links++);
	REFUSED(, answer.num_nics = 255);
	REFUSED(, answer.next = answer.cursor = 5);
	REFUSED(, answer.head.type = MESH_NEIGHBOUR_ANSWER);
	REFUSED(, answer.head.type = MESH_LINKS_ANSWER + 1);
	REFUSED(, answer.head.version++);
	REFUSED(, answer.head.magic++);
	REFUSED(, memset(answer.site, 's', sizeof(answer.site)));
	REFUSED(, memset(answer.head.node, 'x', sizeof(answer.head.node)));
	REFUSED(nics[0].nic = MESH_NICS_MAX, );
	REFUSED(memset(nics[0].netdev, 'y', sizeof(nics[0].netdev)), );
	REFUSED(nics[0].addr = ((struct mesh_neighbour_addr){.family = 4, .prefix_len = 33}), );
	REFUSED(links[0].peer_nic = MESH_NICS_MAX, );
}

TEST(texts_are_printable)
{
	snprintf(answer.site, sizeof(answer.site), "ea\x1bst");
	snprintf(answer.head.node, sizeof(answer.head.node), "fa\x1br");
	mesh_links_answer_fill(&answer, 0, nics, 2, links, 3);
	assert_int_equal(decode(&answer, answer.head.length), 0);
	assert_string_equal(decoded.answer.site, "ea?st");
	assert_string_equal(decoded.head.node, "fa?r");
}
