/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_report.h - what processes of one node send each other over members.h's sockets. It never
 * leaves the node, but another user's process may have made it.
 */
#ifndef MESH_NEIGHBOURS_MEMBER_REPORT_H
#define MESH_NEIGHBOURS_MEMBER_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "neighbours/self.h"

enum mesh_report_kind {
	MESH_REPORT_MEMBER, /* what a member sends */
	MESH_REPORT_PING,   /* of the deputy; no links */
	MESH_REPORT_PONG,   /* the speaker's answer; no links */
};

struct mesh_member_report {
	struct mesh_neighbour_process process;
	uint32_t num_links;
	uint32_t kind;					 /* enum mesh_report_kind */
	struct mesh_neighbour_link links[MESH_NICS_MAX]; /* num_links are sent */
};

/** Bytes of a report with so many links. */
static inline size_t mesh_member_report_size(int num_links)
{
	return offsetof(struct mesh_member_report, links) +
	       (size_t)num_links * sizeof(struct mesh_neighbour_link);
}

/** True if @size received bytes are a report. */
bool mesh_member_report_is_valid(const struct mesh_member_report *report, size_t size);

#endif
