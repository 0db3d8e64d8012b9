/* SPDX-License-Identifier: Apache-2.0 */
/* neighbour.c - checks the datagrams that come from any host of a link: no field is trusted. */
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

static bool contents_are_valid(const struct mesh_neighbour *neighbour, size_t size)
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
	return mesh_text_ends(neighbour->product, sizeof(neighbour->product)) &&
	       mesh_text_ends(neighbour->node, sizeof(neighbour->node)) &&
	       mesh_text_ends(neighbour->netdev, sizeof(neighbour->netdev)) &&
	       mesh_text_ends(neighbour->site, sizeof(neighbour->site));
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
	if (!contents_are_valid(&result, size))
		return -EPROTO;
	frozen_clean(&result);
	mesh_text_clean(result.netdev);
	mesh_text_clean(result.site);
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
