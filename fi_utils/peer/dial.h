/* SPDX-License-Identifier: Apache-2.0 */
/* dial.h - connects to `fi_mesh serve` of a peer, or explains why it does not answer. */
#ifndef MESH_FI_UTILS_PEER_DIAL_H
#define MESH_FI_UTILS_PEER_DIAL_H

#include "nic/addr.h"
#include "common/finding.h"
#include "peer/checker.h"
#include "peer/stream.h"
#include "peer/wire.h"

/**
 * Connects and exchanges HELLO.
 *
 * @local: the address to connect from; NULL: the kernel's routes decide
 * @text: MESH_CHECK_TEXT_MAX bytes; why it failed
 *
 * Returns 0 or a negative errno; @stream is open on success only.
 */
int peer_dial(const struct peer_checker *checker, const struct mesh_addr *local,
	      const struct mesh_addr *remote, struct peer_stream *stream,
	      struct mesh_check_hello *hello, char *text);

/** Reports why @addr does not answer, with what this node knows. */
void peer_explain(const struct peer_checker *checker, const struct mesh_addr *addr, int error,
		  const char *text, struct check_result *result);

/**
 * As peer_stream_ask(), and again for a minute while another node is measuring at the peer: then
 * -EBUSY.
 */
int peer_ask_to_measure(const struct peer_checker *checker, const struct peer *peer,
			struct peer_stream *stream, struct mesh_check_frame *frame,
			enum mesh_check_type question, enum mesh_check_type answer, char *text);

#endif
