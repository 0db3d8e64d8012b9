/* SPDX-License-Identifier: Apache-2.0 */
/* judge.h - what is wrong with a link, from what both of its ends say. Needs no network. */
#ifndef MESH_FI_UTILS_NEIGHBOURS_JUDGE_H
#define MESH_FI_UTILS_NEIGHBOURS_JUDGE_H

#include "common/finding.h"
#include "neighbours/asking.h"

/**
 * Adds the findings about our NIC @index: at least one.
 *
 * @asking: after the questions and their answers
 */
void neighbours_judge(const struct mesh_asking *asking, int index, struct check_result *result);

/** The same for a NIC that would carry the mesh if its link was up: nobody can be asked there. */
void neighbours_judge_down(const struct mesh_nic *nic, struct check_result *result);

#endif
