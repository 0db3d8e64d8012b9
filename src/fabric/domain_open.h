/* SPDX-License-Identifier: Apache-2.0 */
/* domain_open.h - opens and closes one NIC's libfabric objects. */
#ifndef MESH_FABRIC_DOMAIN_OPEN_H
#define MESH_FABRIC_DOMAIN_OPEN_H

#include "base/config.h"
#include "base/log.h"
#include "fabric/domain.h"

struct mesh_domain_options {
	const struct mesh_nic *nic; /* outlives the domain */
	int dev;
	int lane;			/* as struct mesh_domain's */
	enum mesh_provider_id provider; /* to use; NONE: the best */
	size_t payload_max;		/* bytes of the largest message payload */
	struct mesh_port_range ports;	/* of the endpoint, where its provider listens on TCP */
	size_t segment_bytes;		/* of a large RMA write (a window holds several), or 0 */
	/* Why it could not be opened last, which is not logged again; NULL: each failure is. */
	struct mesh_log_last *failure;
};

/**
 * Opens the domain of one NIC and posts its receives.
 *
 * Returns 0, or a negative errno after a WARN line with the cause and the remedy, unless that is
 * the line in @options->failure.
 */
int mesh_domain_open(const struct mesh_domain_options *options, struct mesh_domain **domain);

/** Closes it. No thread may use it or its objects afterwards; NULL is allowed. */
void mesh_domain_close(struct mesh_domain *domain);

#endif
