/* SPDX-License-Identifier: Apache-2.0 */
/* member_report.c - checks what another process of this node has sent. */
#include "neighbours/member_report.h"

/* What is sent on to other nodes has to pass their check, which also cleans its texts. */
static bool about_is_valid(struct mesh_neighbour about)
{
	return !about.num_processes &&
	       !mesh_neighbour_decode(&about, mesh_neighbour_finish(&about, MESH_NEIGHBOUR_ANSWER),
				      &about);
}

static bool family_is_valid(enum mesh_family family)
{
	return family == MESH_FAMILY_NONE || mesh_addr_size(family);
}

bool mesh_member_report_is_valid(const struct mesh_member_report *report, size_t size)
{
	uint32_t i;

	if (size < mesh_member_report_size(0) || report->num_links > MESH_NICS_MAX ||
	    report->kind > MESH_REPORT_PONG ||
	    size != mesh_member_report_size((int)report->num_links))
		return false;
	for (i = 0; i < report->num_links; i++) {
		if (!about_is_valid(report->links[i].about) ||
		    !family_is_valid(report->links[i].ask_from.family))
			return false;
	}
	return true;
}
