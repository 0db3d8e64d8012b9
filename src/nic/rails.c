/* SPDX-License-Identifier: Apache-2.0 */
/* rails.c - which NICs of two nodes belong together on a routed fabric. */
#include <errno.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "nic/rails.h"

#define BLANKS " \t"

_Static_assert(MESH_CONFIG_RAILS_MAX >= MESH_RAIL_SUBNETS_MAX * 44,
	       "each of them: 39 characters, a slash, 3 digits, a separator");

/* Reads one subnet of @len bytes, which may end in blanks. */
static int subnet_add(const char *text, size_t len, int rail, struct mesh_rails *rails)
{
	char subnet[MESH_ADDR_TEXT_MAX] = "";
	struct mesh_addr addr;

	while (len && strchr(BLANKS, text[len - 1]))
		len--;
	if (len < sizeof(subnet))
		memcpy(subnet, text, len);
	if (mesh_addr_parse(subnet, &addr)) {
		mesh_warn("NCCL_MESH_RAILS: \"%.*s\" is not a subnet like 10.1.0.0/16 or fd00::/8",
			  (int)len, text);
		return -EINVAL;
	}
	if (rails->num_subnets == MESH_RAIL_SUBNETS_MAX) {
		mesh_warn("NCCL_MESH_RAILS: there are more than %d subnets", MESH_RAIL_SUBNETS_MAX);
		return -EINVAL;
	}
	rails->subnets[rails->num_subnets].subnet = addr;
	rails->subnets[rails->num_subnets++].rail = rail;
	return 0;
}

int mesh_rails_parse(const char *text, struct mesh_rails *rails)
{
	struct mesh_rails parsed;
	int rail = 0;
	size_t len;

	memset(&parsed, 0, sizeof(parsed));
	text += strspn(text, BLANKS);
	while (*text) {
		len = strcspn(text, "+,");
		if (subnet_add(text, len, rail, &parsed))
			return -EINVAL;
		text += len;
		rail += *text == ',';
		text += *text != 0;
		text += strspn(text, BLANKS);
	}
	*rails = parsed;
	return 0;
}

int mesh_rail_of(const struct mesh_rails *rails, const struct mesh_addr *addr)
{
	int i, longest = -1, rail = -1;

	for (i = 0; i < rails->num_subnets; i++) {
		const struct mesh_addr *subnet = &rails->subnets[i].subnet;

		if (subnet->prefix_len <= longest || !mesh_addr_in_subnet(addr, subnet))
			continue;
		longest = subnet->prefix_len;
		rail = rails->subnets[i].rail;
	}
	return rail;
}
