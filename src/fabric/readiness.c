/* SPDX-License-Identifier: Apache-2.0 */
/* readiness.c - a descriptor that is readable while a provider has something to do. */
#include <errno.h>

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "fabric/readiness.h"

static int fail(struct mesh_domain *domain, const char *what, int error)
{
	mesh_info("%s: cannot %s to sleep on: %s; this NIC is polled instead", domain->nic->netdev,
		  what, fi_strerror(-error));
	domain->ready_failed = true;
	return error;
}

/*
 * A second completion queue, which no endpoint is bound to. The provider puts the descriptor that
 * all its sockets report to into the wait object of each queue. The wait object of the queue that
 * has the completions would cost each completion a lock and a signal, which libfabric 1.17 never
 * takes back.
 */
int mesh_readiness_open(struct mesh_domain *domain)
{
	struct fi_cq_attr attr = {.size = 1, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_FD};
	struct fid_cq *cq;
	int fd, ret;

	if (domain->ready_cq)
		return 0;
	if (domain->provider != MESH_PROVIDER_TCP || domain->ready_failed)
		return -EOPNOTSUPP;
	ret = fi_cq_open(domain->domain, &attr, &cq, NULL);
	if (ret)
		return fail(domain, "open a queue", ret);
	ret = fi_control(&cq->fid, FI_GETWAIT, &fd);
	if (ret) {
		fi_close(&cq->fid);
		return fail(domain, "find a descriptor", ret);
	}
	domain->ready_cq = cq;
	atomic_store(&domain->ready_fd, fd);
	return 0;
}

void mesh_readiness_close(struct mesh_domain *domain)
{
	if (!domain->ready_cq)
		return;
	atomic_store(&domain->ready_fd, -1);
	fi_close(&domain->ready_cq->fid);
	domain->ready_cq = NULL;
}
