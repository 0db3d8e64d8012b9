/* SPDX-License-Identifier: Apache-2.0 */
/* nic_sockets.c - the NICs on which NCCL's ranks meet, NCCL_SOCKET_IFNAME. */
#include <string.h>

#include "nic/nic_sockets.h"

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
