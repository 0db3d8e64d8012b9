/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.h - copies a message into a receive buffer that a GPU is already polling, and cuts one into
 * segments at the same lines.
 */
#ifndef MESH_TRANSPORT_PLACE_H
#define MESH_TRANSPORT_PLACE_H

#include <stddef.h>

#include "transport/comm.h"

/*
 * Bytes whose last word is a flag in NCCL's LL128 protocol (NCCL_LL128_LINESIZE, device.h).
 * Segments are cut at multiples of it, too.
 */
#define MESH_LINE_BYTES 128

/**
 * Copies @size bytes to @to so that a reader who polls flags inside @to never sees a flag before
 * its data: in order of address, in stores that keep each 8 bytes together (LL has 4 bytes of data
 * and a flag there), and the last word of each 128-byte line after the rest of the line (LL128).
 *
 * @to: lines count from here; fastest and atomic where it is 8-byte aligned, as NCCL's buffers are
 */
void mesh_place(void *to, const void *from, size_t size);

/** Bytes of each segment but the last of a message of @size bytes: whole lines of 128 bytes. */
size_t mesh_segment_size(const struct mesh_comm *comm, size_t size);

#endif
