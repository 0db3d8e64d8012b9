/* SPDX-License-Identifier: Apache-2.0 */
/* nic_filter.c - the lists of NICs that a user names: NCCL_MESH_NICS, NCCL_SOCKET_IFNAME. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/nic_filter.h"

#define VARIABLE "NCCL_MESH_NICS"
#define BLANKS " \t\n"
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
	size_t i;
	int port = 0;

	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		port = port * 10 + (text[i] - '0');
		if (port > PORT_MAX)
			return 0;
	}
	return port;
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

static int item_add(void *arg, const char *text, size_t len)
{
	struct mesh_nic_filter *filter = arg;

	if (filter->num_items == MESH_NIC_FILTER_MAX)
		return refuse(text, len, "there are more than 64 names");
	if (item_parse(text, len, &filter->items[filter->num_items]))
		return -EINVAL;
	filter->num_items++;
	return 0;
}

int mesh_list_parse(const char *text, int (*add)(void *arg, const char *item, size_t len),
		    void *arg)
{
	size_t len, item_len;

	while (*text) {
		text += strspn(text, BLANKS);
		len = item_len = strcspn(text, ",");
		while (item_len && strchr(BLANKS, text[item_len - 1]))
			item_len--;
		if (item_len && add(arg, text, item_len))
			return -EINVAL;
		text += len;
		text += *text == ',';
	}
	return 0;
}

int mesh_nic_filter_parse(const char *text, struct mesh_nic_filter *filter)
{
	struct mesh_nic_filter result = {0};
	const char *list = text + strspn(text, BLANKS);

	if (*list == '^') {
		result.exclude = true;
		list++;
	}
	if (*list == '=') {
		result.exact = true;
		list++;
	}
	if (mesh_list_parse(list, item_add, &result))
		return -EINVAL;
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

bool mesh_nic_filter_item_matches(const struct mesh_nic_filter *filter,
				  const struct mesh_nic_filter_item *item,
				  const struct mesh_nic *nic)
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
		if (mesh_nic_filter_item_matches(filter, &filter->items[i], nic))
			return true;
	return false;
}

static bool item_names(const char *item, size_t len, bool exact, const char *netdev)
{
	return len && !strncmp(netdev, item, len) && (!exact || !netdev[len]);
}

static bool list_names(const char *list, bool exact, const char *netdev)
{
	size_t len;

	for (; *list; list += len + (list[len] == ',')) {
		len = strcspn(list, ",");
		/* NCCL's lists may have a port behind the name, which means nothing here. */
		if (item_names(list, strcspn(list, ",:"), exact, netdev))
			return true;
	}
	return false;
}

void mesh_nic_sockets_mark(const char *list, struct mesh_nic *nics, int num_nics)
{
	bool exact = *list == '=', none = *list == '^';
	int i;

	for (i = 0; i < num_nics; i++)
		nics[i].socket_named = !none && list_names(list + exact, exact, nics[i].netdev);
}
