/* SPDX-License-Identifier: Apache-2.0 */
/* make.h - makes a plan, or logs why there is none. */
#ifndef MESH_FI_UTILS_PLAN_MAKE_H
#define MESH_FI_UTILS_PLAN_MAKE_H

#include "plan/plan.h"

/* Bytes. Ethernet: jumbo frames, which every RDMA NIC takes; IPoIB: the 2 KiB of datagram mode. */
#define MESH_PLAN_MTU_ETHERNET 9000
#define MESH_PLAN_MTU_INFINIBAND 2044

/**
 * Makes a plan, or says why there is none: too few ports (and which shapes fit), too few addresses
 * (and which prefix fits), nodes that are not connected.
 *
 * Where no range is given, 192.168.100.0/16 is cut into subnets of /24, or of /30 if these do not
 * last; then 10.0.0.0/8 likewise. IPv6: a /48 that depends on the nodes' names, cut into
 * subnets of /64, or of /127.
 *
 * Returns 0; -EINVAL, -ENOSPC (ports or addresses; all logged), -ENOMEM. @request->nodes are freed
 * in any case. Free @plan with mesh_plan_free().
 */
int mesh_plan_make(struct mesh_plan_request *request, struct mesh_plan *plan);

#endif
