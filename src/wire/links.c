/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - checks questions and answers about links: any node of the mesh may have made them. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "nic/addr.h"
#include "wire/links.h"

static const uint8_t known_providers = (1u << (MESH_PROVIDER_ID_MAX + 1)) - 1;

static size_t question_size(int num_route)
{
	return offsetof(struct mesh_links_question, route) + (size_t)num_route * sizeof(uint64_t);
}

static size_t entries_size(int num_nics, int num_links)
{
	return (size_t)num_nics * sizeof(struct mesh_links_nic) +
	       (size_t)num_links * sizeof(struct mesh_links_link);
}

static size_t head_finish(struct mesh_links_head *head, enum mesh_links_type type, size_t size)
{
	head->magic = MESH_NEIGHBOUR_MAGIC;
	head->version = MESH_NEIGHBOUR_VERSION;
	head->type = (uint8_t)type;
	head->length = (uint16_t)size;
	return size;
}

size_t mesh_links_question_finish(struct mesh_links_question *question)
{
	return head_finish(&question->head, MESH_LINKS_QUESTION,
			   question_size(question->num_route));
}

/* ---- entries ------------------------------------------------------------------------------- */

static uint8_t *link_place(const struct mesh_links_answer *answer, int i)
{
	return (uint8_t *)answer->entries + entries_size(answer->num_nics, i);
}

size_t mesh_links_answer_fill(struct mesh_links_answer *answer,
			      const struct mesh_links_question *question,
			      const struct mesh_links_nic *nics, int num_nics,
			      const struct mesh_links_link *links, int num_links)
{
	int i;

	answer->token = question->token;
	answer->number = question->number;
	answer->cursor = question->cursor;
	answer->num_nics = answer->num_links = 0;
	for (i = question->cursor; i < num_nics; i++) {
		if (entries_size(answer->num_nics + 1, 0) > sizeof(answer->entries))
			break;
		memcpy(answer->entries + entries_size(answer->num_nics++, 0), &nics[i],
		       sizeof(*nics));
	}
	for (; i >= num_nics && i < num_nics + num_links; i++) {
		if (entries_size(answer->num_nics, answer->num_links + 1) > sizeof(answer->entries))
			break;
		memcpy(link_place(answer, answer->num_links++), &links[i - num_nics],
		       sizeof(*links));
	}
	answer->next = i < num_nics + num_links ? (uint16_t)i : 0;
	return head_finish(&answer->head, MESH_LINKS_ANSWER,
			   offsetof(struct mesh_links_answer, entries) +
				   entries_size(answer->num_nics, answer->num_links));
}

void mesh_links_nic_get(const struct mesh_links_answer *answer, int i, struct mesh_links_nic *nic)
{
	memcpy(nic, answer->entries + entries_size(i, 0), sizeof(*nic));
}

void mesh_links_link_get(const struct mesh_links_answer *answer, int i,
			 struct mesh_links_link *link)
{
	memcpy(link, link_place(answer, i), sizeof(*link));
}

/* ---- checks -------------------------------------------------------------------------------- */

static bool nic_is_valid(const struct mesh_links_nic *nic)
{
	const struct mesh_neighbour_addr *addr = &nic->addr;

	if (nic->nic >= MESH_NICS_MAX || nic->providers & ~known_providers ||
	    !mesh_text_ends(nic->netdev, sizeof(nic->netdev)))
		return false;
	if (!addr->family)
		return true;
	return (addr->family == MESH_FAMILY_IPV4 || addr->family == MESH_FAMILY_IPV6) &&
	       addr->prefix_len <= 8 * mesh_addr_size((enum mesh_family)addr->family);
}

/* Cleans the texts, too. */
static bool answer_is_valid(struct mesh_links_answer *answer, size_t size)
{
	struct mesh_links_nic nic;
	struct mesh_links_link link;
	int i;

	if (size != offsetof(struct mesh_links_answer, entries) +
			    entries_size(answer->num_nics, answer->num_links) ||
	    !answer->node_id || !mesh_text_ends(answer->site, sizeof(answer->site)))
		return false;
	mesh_text_clean(answer->site);
	/* The cursor moves on, or there is no more. */
	if (answer->next && answer->next <= answer->cursor)
		return false;
	for (i = 0; i < answer->num_nics; i++) {
		mesh_links_nic_get(answer, i, &nic);
		if (!nic_is_valid(&nic))
			return false;
		mesh_text_clean(nic.netdev);
		memcpy(answer->entries + entries_size(i, 0), &nic, sizeof(nic));
	}
	for (i = 0; i < answer->num_links; i++) {
		mesh_links_link_get(answer, i, &link);
		if (link.nic >= MESH_NICS_MAX || link.peer_nic >= MESH_NICS_MAX || !link.node_id)
			return false;
	}
	return true;
}

/* No node twice: then no node passes a question on more than once. */
static bool question_is_valid(const struct mesh_links_question *question, size_t size)
{
	int i, k;

	if (!question->num_route || question->num_route > MESH_LINKS_ROUTE_MAX ||
	    size != question_size(question->num_route))
		return false;
	for (i = 0; i < question->num_route; i++) {
		for (k = 0; k < i; k++) {
			if (question->route[k] == question->route[i])
				return false;
		}
	}
	return true;
}

int mesh_links_decode(const void *bytes, size_t size, union mesh_links *links)
{
	union mesh_links result;

	memset(&result, 0, sizeof(result));
	if (size < sizeof(result.head) || size > sizeof(result))
		return -EPROTO;
	memcpy(&result, bytes, size);
	if (result.head.magic != MESH_NEIGHBOUR_MAGIC ||
	    result.head.version != MESH_NEIGHBOUR_VERSION || result.head.length != size ||
	    !mesh_text_ends(result.head.product, sizeof(result.head.product)) ||
	    !mesh_text_ends(result.head.node, sizeof(result.head.node)))
		return -EPROTO;
	if (result.head.type == MESH_LINKS_QUESTION) {
		if (size < question_size(1) || !question_is_valid(&result.question, size))
			return -EPROTO;
	} else if (result.head.type != MESH_LINKS_ANSWER ||
		   size < offsetof(struct mesh_links_answer, entries) ||
		   !answer_is_valid(&result.answer, size)) {
		return -EPROTO;
	}
	mesh_text_clean(result.head.product);
	mesh_text_clean(result.head.node);
	*links = result;
	return 0;
}
