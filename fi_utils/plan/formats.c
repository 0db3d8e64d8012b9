/* SPDX-License-Identifier: Apache-2.0 */
/* formats.c - the table of formats. */
#include <stddef.h>
#include <string.h>

#include "plan/format.h"
#include "plan/format_ip.h"
#include "plan/format_netplan.h"
#include "plan/format_networkd.h"
#include "plan/format_nm.h"
#include "plan/formats.h"

const struct plan_format *const plan_formats[] = {
	&plan_format_netplan, &plan_format_nm, &plan_format_networkd, &plan_format_ip, NULL,
};

const struct plan_format *plan_format_find(const char *name)
{
	int i;

	for (i = 0; plan_formats[i]; i++)
		if (!strcmp(plan_formats[i]->name, name))
			return plan_formats[i];
	return NULL;
}
