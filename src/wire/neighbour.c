/* SPDX-License-Identifier: Apache-2.0 */
/* neighbour.c - checks the datagrams that come from any host of the mesh: no field is trusted. */
#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "nic/addr.h"
#include "wire/neighbour.h"

static const uint8_t known_providers = (1u << (MESH_PROVIDER_ID_MAX + 1)) - 1;

size_t mesh_neighbour_finish(struct mesh_neighbour *neighbour, enum mesh_neighbour_type type)
{
	size_t size = mesh_neighbour_size(neighbour->num_processes);

	neighbour->magic = MESH_NEIGHBOUR_MAGIC;
	neighbour->version = MESH_NEIGHBOUR_VERSION;
	neighbour->type = (uint8_t)type;
	neighbour->length = (uint16_t)size;
	return size;
}

/* The texts that all versions share. */
static void frozen_clean(struct mesh_neighbour *neighbour)
{
	neighbour->product[sizeof(neighbour->product) - 1] = '\0';
	neighbour->node[sizeof(neighbour->node) - 1] = '\0';
	mesh_text_clean(neighbour->product);
	mesh_text_clean(neighbour->node);
}

static bool addr_is_valid(const struct mesh_neighbour_addr *addr)
{
	if (addr->family != MESH_FAMILY_IPV4 && addr->family != MESH_FAMILY_IPV6)
		return false;
	return addr->prefix_len <= 8 * mesh_addr_size((enum mesh_family)addr->family);
}

static bool contents_accept(struct mesh_neighbour *neighbour, size_t size)
{
	int i;

	if (neighbour->num_processes > MESH_NEIGHBOUR_PROCESSES_MAX ||
	    neighbour->num_processes > neighbour->total_processes ||
	    size != mesh_neighbour_size(neighbour->num_processes))
		return false;
	if (!neighbour->node_id || neighbour->num_addrs > MESH_NEIGHBOUR_ADDRS_MAX ||
	    neighbour->nic >= MESH_NICS_MAX || neighbour->providers & ~known_providers)
		return false;
	for (i = 0; i < neighbour->num_addrs; i++) {
		if (!addr_is_valid(&neighbour->addrs[i]))
			return false;
	}
	return mesh_text_accept(neighbour->product, sizeof(neighbour->product)) &&
	       mesh_text_accept(neighbour->node, sizeof(neighbour->node)) &&
	       mesh_text_accept(neighbour->netdev, sizeof(neighbour->netdev)) &&
	       mesh_text_accept(neighbour->site, sizeof(neighbour->site));
}

int mesh_neighbour_decode(const void *bytes, size_t size, struct mesh_neighbour *neighbour)
{
	struct mesh_neighbour result;

	memset(&result, 0, sizeof(result));
	if (size < MESH_NEIGHBOUR_FROZEN_BYTES)
		return -EPROTO;
	memcpy(&result, bytes, MESH_NEIGHBOUR_FROZEN_BYTES);
	if (result.magic != MESH_NEIGHBOUR_MAGIC || result.length != size)
		return -EPROTO;
	if (result.version != MESH_NEIGHBOUR_VERSION) {
		frozen_clean(&result);
		*neighbour = result;
		return -EPROTONOSUPPORT;
	}
	if (!result.type || result.type >= MESH_NEIGHBOUR_TYPES || size < mesh_neighbour_size(0) ||
	    size > sizeof(result))
		return -EPROTO;
	memcpy(&result, bytes, size);
	if (!contents_accept(&result, size))
		return -EPROTO;
	*neighbour = result;
	return 0;
}

bool mesh_neighbour_addr_add(struct mesh_neighbour *neighbour, const struct mesh_addr *addr)
{
	struct mesh_neighbour_addr *entry;

	if (neighbour->num_addrs == MESH_NEIGHBOUR_ADDRS_MAX)
		return false;
	entry = &neighbour->addrs[neighbour->num_addrs++];
	entry->family = (uint8_t)addr->family;
	entry->prefix_len = addr->prefix_len;
	memcpy(entry->addr, addr->bytes, mesh_addr_size(addr->family));
	return true;
}

void mesh_neighbour_addr_get(const struct mesh_neighbour_addr *entry, struct mesh_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = (enum mesh_family)entry->family;
	addr->prefix_len = entry->prefix_len;
	memcpy(addr->bytes, entry->addr, mesh_addr_size(addr->family));
}

bool mesh_neighbour_has_addr(const struct mesh_neighbour *neighbour, const struct mesh_addr *addr)
{
	int i;

	for (i = 0; i < neighbour->num_addrs; i++) {
		if (neighbour->addrs[i].family == (uint8_t)addr->family &&
		    !memcmp(neighbour->addrs[i].addr, addr->bytes, mesh_addr_size(addr->family)))
			return true;
	}
	return false;
}

/* ---- links ----------------------------------------------------------------------------------- */

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
	return head_finish(&question->head, MESH_LINKS_QUESTION, sizeof(*question));
}

static uint8_t *link_place(const struct mesh_links_answer *answer, int i)
{
	return (uint8_t *)answer->entries + entries_size(answer->num_nics, i);
}

size_t mesh_links_answer_fill(struct mesh_links_answer *answer, uint16_t cursor,
			      const struct mesh_links_nic *nics, int num_nics,
			      const struct mesh_links_link *links, int num_links)
{
	int i;

	answer->cursor = cursor;
	answer->num_nics = answer->num_links = 0;
	for (i = cursor; i < num_nics; i++) {
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

static bool nic_accept(struct mesh_links_nic *nic)
{
	return nic->nic < MESH_NICS_MAX && !(nic->providers & ~known_providers) &&
	       mesh_text_accept(nic->netdev, sizeof(nic->netdev)) &&
	       (!nic->addr.family || addr_is_valid(&nic->addr));
}

static bool answer_accept(struct mesh_links_answer *answer, size_t size)
{
	struct mesh_links_nic nic;
	struct mesh_links_link link;
	int i;

	if (size != offsetof(struct mesh_links_answer, entries) +
			    entries_size(answer->num_nics, answer->num_links) ||
	    !answer->node_id || !mesh_text_accept(answer->site, sizeof(answer->site)))
		return false;
	/* The cursor moves on, or there is no more. */
	if (answer->next && answer->next <= answer->cursor)
		return false;
	for (i = 0; i < answer->num_nics; i++) {
		mesh_links_nic_get(answer, i, &nic);
		if (!nic_accept(&nic))
			return false;
		memcpy(answer->entries + entries_size(i, 0), &nic, sizeof(nic));
	}
	for (i = 0; i < answer->num_links; i++) {
		mesh_links_link_get(answer, i, &link);
		if (link.nic >= MESH_NICS_MAX || link.peer_nic >= MESH_NICS_MAX || !link.node_id)
			return false;
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
	    !mesh_text_accept(result.head.product, sizeof(result.head.product)) ||
	    !mesh_text_accept(result.head.node, sizeof(result.head.node)))
		return -EPROTO;
	if (result.head.type == MESH_LINKS_QUESTION) {
		if (size != sizeof(result.question) || !result.question.hops ||
		    result.question.hops > MESH_LINKS_HOPS_MAX)
			return -EPROTO;
	} else if (result.head.type != MESH_LINKS_ANSWER ||
		   size < offsetof(struct mesh_links_answer, entries) ||
		   !answer_accept(&result.answer, size)) {
		return -EPROTO;
	}
	*links = result;
	return 0;
}
