/* SPDX-License-Identifier: Apache-2.0 */
/* show.h - what is wrong with links, and how `fi_mesh neighbours` says it. */
#ifndef MESH_FI_UTILS_NEIGHBOURS_SHOW_H
#define MESH_FI_UTILS_NEIGHBOURS_SHOW_H

#include <stdio.h>

#include "common/finding.h"
#include "neighbours/asking.h"

/* ---- what is wrong with a link, from what both of its ends say. Needs no network ------------- */

/**
 * Adds the findings about our NIC @index: at least one.
 *
 * @asking: after the questions and their answers
 */
void neighbours_judge(const struct mesh_asking *asking, int index, struct check_result *result);

/** The same for a NIC that would carry the mesh if its link was up: nobody can be asked there. */
void neighbours_judge_down(const struct mesh_nic *nic, struct check_result *result);

/* ---- the neighbours and the findings about the links, as text or JSON ------------------------ */

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
