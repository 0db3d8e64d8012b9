/* SPDX-License-Identifier: Apache-2.0 */
/* fake_object.h - an object of the libfabric that a test controls, and its completion queues. */
#ifndef FAKE_OBJECT_H
#define FAKE_OBJECT_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "fake_fabric.h"

/* Every object that libfabric hands out; the fid is first in each, so it is first here. */
struct fake_object {
	union {
		struct fid fid;
		struct fid_fabric fabric;
		struct fid_domain domain;
		struct fid_av av;
		struct fid_cq cq;
		struct fid_ep endpoint;
		struct fid_mr mr;
	};
	enum fake_call kind;
	int index;		   /* in fake.mrs */
	struct fake_object *owner; /* the domain, or the domain's fabric */
	int num_owned, num_endpoints;
};

/** Reads the completions of fake_complete() and the others. */
extern struct fi_ops_cq fake_queue_ops;

/** Ends a write in the queue of its own domain with FI_EIO and @prov_errno. */
void fake_write_fail(const struct fake_post *post, int prov_errno);

#endif
