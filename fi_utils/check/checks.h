/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h - the table of checks, and what is in it. */
#ifndef MESH_FI_UTILS_CHECK_CHECKS_H
#define MESH_FI_UTILS_CHECK_CHECKS_H

#include "check/context.h"
#include "common/finding.h"

struct check {
	const char *id; /* stable: scripts and docs name it */
	const char *title;
	void (*run)(const struct check_context *context, struct check_result *result);
};

/** The table, in the order of their output; ended by an id of NULL. */
extern const struct check checks[];

/* ---- the checks ---------------------------------------------------------------------------- */

/* libfabric.c */
void check_libfabric(const struct check_context *context, struct check_result *result);
/* nic.c */
void check_carrier(const struct check_context *context, struct check_result *result);
void check_speed(const struct check_context *context, struct check_result *result);
void check_mtu(const struct check_context *context, struct check_result *result);
void check_pcie(const struct check_context *context, struct check_result *result);
void check_congestion(const struct check_context *context, struct check_result *result);
/* subnets.c */
void check_subnets(const struct check_context *context, struct check_result *result);
void check_shared_subnet(const struct check_context *context, struct check_result *result);
/* rdma.c */
void check_modules(const struct check_context *context, struct check_result *result);
void check_device_files(const struct check_context *context, struct check_result *result);
void check_memlock(const struct check_context *context, struct check_result *result);
/* ports.c */
void check_ports(const struct check_context *context, struct check_result *result);
void check_gids(const struct check_context *context, struct check_result *result);
/* firewall.c */
void check_firewall(const struct check_context *context, struct check_result *result);
/* neighbours.c */
void check_neighbours(const struct check_context *context, struct check_result *result);
/* nccl.c */
void check_environment(const struct check_context *context, struct check_result *result);
void check_plugin(const struct check_context *context, struct check_result *result);

#endif
