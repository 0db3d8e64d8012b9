/* SPDX-License-Identifier: Apache-2.0 */
/* nic_named.c - finds a NIC by its name, for tests of lists and tables of NICs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "nic_named.h"

const struct mesh_nic *nic_named(const struct mesh_nic *nics, int num_nics, const char *netdev)
{
	int i;

	for (i = 0; i < num_nics; i++)
		if (!strcmp(nics[i].netdev, netdev))
			return &nics[i];
	fail_msg("%s is not among the NICs", netdev);
	return NULL;
}
