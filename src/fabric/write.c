/* SPDX-License-Identifier: Apache-2.0 */
/* write.c - RMA writes, and the messages that announce them. */
#include <errno.h>
#include <string.h>

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fabric/write.h"
#include "wire/message.h"

/* Announces a write that carries no immediate; the message follows the write. */
static void written_send(struct mesh_buffer *buffer, const struct mesh_write *write)
{
	struct mesh_message_header header = {
		.type = MESH_MESSAGE_WRITTEN,
		.comm = write->sink_id,
		.token = write->sink_token,
		.seq = (uint32_t)write->immediate,
		.size = (uint32_t)(write->immediate >> 32),
	};

	memcpy(buffer->bytes, &header, sizeof(header));
	buffer->size = sizeof(header);
	mesh_remote_send(buffer);
}

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

	mesh_transmit_assert_locked(domain);
	op->to = remote->fi_addr;
	mesh_op_hand_over(op);
	return (int)fi_writemsg(domain->endpoint, &msg, flags);
}

int mesh_domain_write(struct mesh_domain *domain, struct mesh_remote *remote,
		      const struct mesh_write *write, struct mesh_op *op)
{
	uint64_t flags = domain->write_flags | (write->delivery ? domain->delivery_flag : 0);
	struct mesh_buffer *written = NULL;
	int ret;

	if (!domain->immediates) {
		written = mesh_remote_buffer_get(domain, remote);
		if (!written)
			return -EAGAIN;
	}
	mesh_transmit_lock(domain);
	ret = -ECONNRESET;
	if (!remote->lost)
		ret = mesh_write_post(domain, remote, write, flags, op);
	if (!ret)
		mesh_pace_posted(&remote->flow->pace, write->size, write->now_ns);
	mesh_transmit_unlock(domain);
	if (written && ret)
		mesh_buffer_put(written);
	else if (written)
		written_send(written, write);
	return ret;
}
