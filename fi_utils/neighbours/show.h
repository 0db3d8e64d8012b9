/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - the neighbours and the findings about the links, as text or JSON. */
#ifndef MESH_FI_UTILS_NEIGHBOURS_SHOW_H
#define MESH_FI_UTILS_NEIGHBOURS_SHOW_H

#include <stdio.h>

#include "common/finding.h"
#include "neighbours/asking.h"

/**
 * A table of the neighbours, then what is not right.
 *
 * @results: one for each NIC of @asking; @table: of this node, for those whose link is down
 */
void neighbours_print(FILE *file, const struct mesh_asking *asking,
		      const struct check_result *results, const struct mesh_nic_table *table);

/** The same as JSON. Returns 0, or -1 (reported). */
int neighbours_print_json(const char *who, FILE *file, const struct mesh_asking *asking,
			  const struct check_result *results, const struct mesh_nic_table *table);

#endif
