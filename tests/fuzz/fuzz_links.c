/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_links.c - a datagram from any node as a question or an answer about links. */
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "wire/neighbour.h"

#include "fuzz_text.h"

static void question_use(const struct mesh_links_question *question, size_t size)
{
	struct mesh_links_question copy = *question;

	fuzz_check(question->hops && question->hops <= MESH_LINKS_HOPS_MAX &&
		   mesh_links_question_finish(&copy) == size);
}

/* What was decoded is made again from its entries. */
static void answer_use(const struct mesh_links_answer *answer, size_t size)
{
	static struct mesh_links_nic nics[256];
	static struct mesh_links_link links[256];
	struct mesh_links_answer copy = *answer;
	struct mesh_addr addr;

	for (int i = 0; i < answer->num_nics; i++) {
		mesh_links_nic_get(answer, i, &nics[i]);
		fuzz_text_printable(nics[i].netdev, sizeof(nics[i].netdev));
		fuzz_check(nics[i].nic < MESH_NICS_MAX);
		if (nics[i].addr.family)
			mesh_neighbour_addr_get(&nics[i].addr, &addr);
	}
	for (int i = 0; i < answer->num_links; i++) {
		mesh_links_link_get(answer, i, &links[i]);
		fuzz_check(links[i].nic < MESH_NICS_MAX && links[i].peer_nic < MESH_NICS_MAX);
	}
	fuzz_check(mesh_links_answer_fill(&copy, 0, nics, answer->num_nics, links,
					  answer->num_links) == size &&
		   !memcmp(copy.entries, answer->entries, sizeof(copy.entries)));
}

static void datagram_decode(const uint8_t *bytes, size_t size)
{
	union mesh_links links;
	int ret;

	memset(&links, 0xa5, sizeof(links));
	ret = mesh_links_decode(bytes, size, &links);
	fuzz_check(!ret || ret == -EPROTO);
	if (ret)
		return;
	fuzz_text_printable(links.head.product, sizeof(links.head.product));
	fuzz_text_printable(links.head.node, sizeof(links.head.node));
	if (links.head.type == MESH_LINKS_QUESTION)
		question_use(&links.question, size);
	else
		answer_use(&links.answer, size);
}

static void right(uint8_t *bytes, size_t size)
{
	struct mesh_links_head head;

	memcpy(&head, bytes, sizeof(head));
	head.magic = MESH_NEIGHBOUR_MAGIC;
	head.version = MESH_NEIGHBOUR_VERSION;
	head.length = (uint16_t)size;
	memcpy(bytes, &head, sizeof(head));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_twice(data, size, sizeof(struct mesh_links_head), right, datagram_decode);
	return 0;
}
