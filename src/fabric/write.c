/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - RMA writes to a remote, and the messages that announce them. */
#include <errno.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fabric/connector.h"
#include "fabric/write.h"

int mesh_write_post(struct mesh_domain *domain, struct mesh_remote *remote,
		    const struct mesh_write *write, uint64_t flags, struct mesh_op *op)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)write->data, .iov_len = write->size};
	struct fi_rma_iov target = {
		.addr = write->address,
		.len = write->size,
		.key = write->key,
	};
	void *desc = mesh_mr_desc(write->mr);
	struct fi_msg_rma msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = remote->fi_addr,
		.rma_iov = &target,
		.rma_iov_count = 1,
		.context = &op->context,
		.data = write->immediate,
	};

	int ret;

	op->to = remote->fi_addr;
	mesh_op_hand_over(op);
	ret = (int)fi_writemsg(domain->endpoint, &msg, flags);
	if (!ret)
		mesh_op_posted(domain, op);
	return ret;
}

/* The write, and what follows it. Returns as mesh_domain_write() does. */
MESH_HOLDS(transmit)
static int write_and_behind(struct mesh_domain *domain, struct mesh_remote *remote,
			    const struct mesh_write *write, struct mesh_op *op)
{
	uint64_t flags = FI_COMPLETION | (write->delivery ? domain->delivery_flag : 0);
	int ret;

	mesh_transmit_assert_locked(domain);
	if (remote->lost)
		return -ECONNRESET;
	if (mesh_flow_connects(domain, remote->flow))
		mesh_remote_connection_want(domain, remote);
	if (mesh_flow_may_wait(domain, remote->flow))
		return -EAGAIN;
	if (write->behind && !TAILQ_EMPTY(&remote->backlog))
		return -EAGAIN; /* the provider is busy: it would not accept the message */
	if (!write->behind && !write->silent && domain->immediate_bits)
		flags |= FI_REMOTE_CQ_DATA;
	ret = mesh_write_post(domain, remote, write, flags, op);
	if (ret)
		return ret;
	mesh_flow_posted(domain, remote->flow, write->size, write->now_ns);
	return write->behind && mesh_buffer_post(domain, write->behind) ? MESH_WRITE_ALONE : 0;
}

int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op)
{
	int ret;

	mesh_transmit_lock(domain);
	ret = write_and_behind(domain, remote, write, op);
	mesh_transmit_unlock(domain);
	return ret;
}
