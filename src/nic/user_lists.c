/* SPDX-License-Identifier: Apache-2.0 */
/* user_lists.c - the lists of NICs and of subnets that a user writes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"
#include "nic/user_lists.h"

#define VARIABLE "NCCL_MESH_NICS"
#define BLANKS " \t\n"

_Static_assert(MESH_CONFIG_RAILS_MAX >= MESH_RAIL_SUBNETS_MAX * 44,
	       "each of them: 39 characters, a slash, 3 digits, a separator");

/* The bytes before the blanks at the end. */
static size_t trimmed(const char *text, size_t len)
{
	while (len && strchr(BLANKS, text[len - 1]))
		len--;
	return len;
}

/* ---- NICs ----------------------------------------------------------------------------------- */

/* A port number is a byte. */
#define PORT_MAX 255

static int refuse(const char *text, size_t len, const char *why)
{
	mesh_warn(VARIABLE ": \"%.*s\" is not valid: %s", (int)len, text, why);
	return -EINVAL;
}

/* Reads the port behind the colon, 1 to 255; 0 if it is none. */
static int port_parse(const char *text, size_t len)
{
	const char *end = text + strspn(text, "0123456789");
	unsigned long port = strtoul(text, NULL, 10);

	return len && end == text + len && port <= PORT_MAX ? (int)port : 0;
}

/* Reads one item of @len bytes, without blanks around it. */
static int item_parse(const char *text, size_t len, struct mesh_nic_filter_item *item)
{
	const char *colon = memchr(text, ':', len);
	size_t name_len = colon ? (size_t)(colon - text) : len;

	memset(item, 0, sizeof(*item));
	if (memchr("^=", *text, 2))
		return refuse(text, len, "write '^' and '=' once, before the whole list: ^=a,b");
	if (!name_len)
		return refuse(text, len, "there is no name before the colon");
	if (name_len >= sizeof(item->name))
		return refuse(text, len, "the name is longer than any device name");
	if (strcspn(text, BLANKS) < name_len)
		return refuse(text, len, "names are separated by commas");
	memcpy(item->name, text, name_len);
	if (!colon)
		return 0;
	item->port = port_parse(colon + 1, len - name_len - 1);
	if (!item->port)
		return refuse(text, len, "a port is a number from 1 to 255");
	return 0;
}

static int item_add(struct mesh_nic_filter *filter, const char *text, size_t len)
{
	if (filter->num_items == MESH_NIC_FILTER_MAX)
		return refuse(text, len, "there are more than 64 names");
	if (item_parse(text, len, &filter->items[filter->num_items]))
		return -EINVAL;
	filter->num_items++;
	return 0;
}

/* The next item of a comma list at *@text, without blanks around it; empty ones are skipped. */
static size_t list_next(const char **text, const char **item)
{
	size_t len, item_len = 0;

	while (**text && !item_len) {
		*text += strspn(*text, BLANKS);
		len = strcspn(*text, ",");
		item_len = trimmed(*text, len);
		*item = *text;
		*text += len;
		*text += **text == ',';
	}
	return item_len;
}

int mesh_nic_filter_parse(const char *text, struct mesh_nic_filter *filter)
{
	struct mesh_nic_filter result = {0};
	const char *list = text + strspn(text, BLANKS), *item;
	size_t len;

	if (*list == '^') {
		result.exclude = true;
		list++;
	}
	if (*list == '=') {
		result.exact = true;
		list++;
	}
	while ((len = list_next(&list, &item))) {
		if (item_add(&result, item, len))
			return -EINVAL;
	}
	if (!result.num_items && (result.exclude || result.exact))
		return refuse(text, strlen(text), "no name follows");
	*filter = result;
	return 0;
}

static bool name_matches(const struct mesh_nic_filter *filter,
			 const struct mesh_nic_filter_item *item, const char *name)
{
	if (filter->exact)
		return !strcmp(name, item->name);
	return !strncmp(name, item->name, strlen(item->name));
}

/* An item with a port names RDMA devices only. */
static bool item_matches(const struct mesh_nic_filter *filter,
			 const struct mesh_nic_filter_item *item, const struct mesh_nic *nic)
{
	if (*nic->rdma.device && name_matches(filter, item, nic->rdma.device) &&
	    (item->port == MESH_NIC_FILTER_ANY_PORT || item->port == nic->rdma.port))
		return true;
	return item->port == MESH_NIC_FILTER_ANY_PORT &&
	       (name_matches(filter, item, nic->netdev) || !strcmp(nic->name, item->name));
}

bool mesh_nic_filter_names(const struct mesh_nic_filter *filter, const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < filter->num_items; i++)
		if (item_matches(filter, &filter->items[i], nic))
			return true;
	return false;
}

/* ---- subnets -------------------------------------------------------------------------------- */

/* Adds one of @len bytes. @variable: whose list it is */
static int subnet_add(const char *variable, const char *text, size_t len, int rail,
		      struct mesh_rails *rails)
{
	char subnet[MESH_ADDR_TEXT_MAX] = "";
	struct mesh_addr addr;

	if (len < sizeof(subnet))
		memcpy(subnet, text, len);
	if (mesh_addr_parse(subnet, &addr)) {
		mesh_warn("%s: \"%.*s\" is not a subnet like 10.1.0.0/16 or fd00::/8", variable,
			  (int)len, text);
		return -EINVAL;
	}
	if (rails->num_subnets == MESH_RAIL_SUBNETS_MAX) {
		mesh_warn("%s: there are more than %d subnets", variable, MESH_RAIL_SUBNETS_MAX);
		return -EINVAL;
	}
	rails->subnets[rails->num_subnets].subnet = addr;
	rails->subnets[rails->num_subnets++].rail = rail;
	return 0;
}

/* @skipped: what may stand before a subnet */
static int subnets_parse(const char *variable, const char *skipped, const char *text,
			 struct mesh_rails *rails)
{
	struct mesh_rails parsed = {0};
	int rail = 0;
	size_t len;

	text += strspn(text, skipped);
	while (*text) {
		len = strcspn(text, "+,");
		if (subnet_add(variable, text, trimmed(text, len), rail, &parsed))
			return -EINVAL;
		text += len;
		rail += *text == ',';
		text += *text != 0;
		text += strspn(text, skipped);
	}
	*rails = parsed;
	return 0;
}

int mesh_addresses_parse(const char *text, struct mesh_rails *subnets)
{
	return subnets_parse("NCCL_MESH_ADDRESSES", BLANKS ",", text, subnets);
}

int mesh_rails_parse(const char *text, struct mesh_rails *rails)
{
	return subnets_parse("NCCL_MESH_RAILS", BLANKS, text, rails);
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
