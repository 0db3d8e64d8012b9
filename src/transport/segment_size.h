/* SPDX-License-Identifier: Apache-2.0 */
/* segment_size.h - into how large segments a message is cut. */
#ifndef MESH_TRANSPORT_SEGMENT_SIZE_H
#define MESH_TRANSPORT_SEGMENT_SIZE_H

#include <stddef.h>

#include "transport/comm.h"

/** Bytes of each segment but the last of a message of @size bytes: whole lines of 128 bytes. */
size_t mesh_segment_size(const struct mesh_comm *comm, size_t size);

#endif
