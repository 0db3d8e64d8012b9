/* SPDX-License-Identifier: Apache-2.0 */
/* credit.h - what the receiver of a sending comm reports: the receives that it has posted. */
#ifndef MESH_TRANSPORT_CREDIT_H
#define MESH_TRANSPORT_CREDIT_H

#include "fabric/sink.h"
#include "wire/message.h"

/** What arrives for a sending comm: GRANT, POSTED. domain->lock held. */
void mesh_credit_message(struct mesh_sink *sink, const struct mesh_message_header *header,
			 const void *payload);

#endif
