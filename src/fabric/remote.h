/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - other nodes' endpoints, and the messages that go to them. */
#ifndef MESH_FABRIC_REMOTE_H
#define MESH_FABRIC_REMOTE_H

#include "fabric/buffer.h"
#include "fabric/domain.h"
#include "fabric/flow.h"

/* Another node's endpoint, as one peer of this domain uses it. */
struct mesh_remote {
	LIST_ENTRY(mesh_remote) entry;	  /* domain->remotes */
	TAILQ_ENTRY(mesh_remote) waiting; /* domain->backlogged, while backlog is not empty */
	struct mesh_buffer_list backlog;  /* messages that the provider did not take yet */
	fi_addr_t fi_addr;
	struct mesh_flow *flow;
	bool lost;   /* nothing is sent to it any more; under transmit_lock */
	bool closed; /* freed once its backlog is empty; under transmit_lock */
	/*
	 * The peer's own TCP port of the provider's connection that it dialled, 0 if it said none:
	 * tells its socket from those of other processes at the same address. Under transmit_lock.
	 */
	uint16_t dialled_from;
	int mtu; /* bytes, of the NIC over there, 0 if it is not known; under transmit_lock */
	size_t name_len;
	uint8_t name[MESH_ENDPOINT_NAME_MAX];
};

/** Makes another endpoint known, by what its fi_getname returned. Closed by its one user. */
int mesh_remote_open(struct mesh_domain *domain, const void *name, size_t name_len,
		     struct mesh_remote **remote);

/** Ends the use; messages that still wait end with -ECONNRESET. NULL is allowed. */
void mesh_remote_close(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * Gives up the remote: its backlog ends with -ECONNRESET (now, in this thread; the caller holds
 * domain->lock), and later messages to it fail.
 */
void mesh_remote_lose(struct mesh_domain *domain, struct mesh_remote *remote);

/** Notes what the remote says of its NIC's MTU, in bytes: an error may have to be explained. */
void mesh_remote_mtu_set(struct mesh_domain *domain, struct mesh_remote *remote, int mtu);

/**
 * A free buffer for a message to @remote, or NULL: ask again after the next poll (see
 * mesh_domain_wait). A remote that takes nothing any more gets no more buffers than it leaves
 * free, so that the others always find some.
 */
struct mesh_buffer *mesh_remote_buffer_get(struct mesh_domain *domain, struct mesh_remote *remote);

/**
 * Sends buffer->bytes, buffer->size of them, and takes the buffer. What the provider does not
 * take at once waits in the remote's backlog, in order. buffer->sent is always called, later.
 */
void mesh_remote_send(struct mesh_buffer *buffer);

/**
 * Sends a message that is short enough for the provider to copy it at once: no buffer, no
 * completion.
 *
 * @size: bytes; more than domain->inject_max are refused
 *
 * Returns 0: it is sent as much as a completed message is. -EAGAIN: send it the long way.
 */
int mesh_remote_inject(struct mesh_domain *domain, struct mesh_remote *remote, const void *bytes,
		       size_t size);

/** Sends what waits in the backlogs, as far as the provider takes it. domain->lock held. */
void mesh_backlogs_resume(struct mesh_domain *domain);

#endif
