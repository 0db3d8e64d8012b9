/* SPDX-License-Identifier: Apache-2.0 */
/* member_report.c - checks what another process of this node has sent. */
#include "neighbours/member_report.h"

/* Another user's process may have sent this: what is printed or sent on is checked again there. */
bool mesh_member_report_is_valid(const struct mesh_member_report *report, size_t size)
{
	uint32_t i;

	if (size < mesh_member_report_size(0) || report->num_links > MESH_NICS_MAX ||
	    report->kind > MESH_REPORT_PONG ||
	    size != mesh_member_report_size((int)report->num_links))
		return false;
	for (i = 0; i < report->num_links; i++) {
		const struct mesh_neighbour *about = &report->links[i].about;

		if (about->num_addrs > MESH_NEIGHBOUR_ADDRS_MAX || about->num_processes)
			return false;
	}
	return true;
}
