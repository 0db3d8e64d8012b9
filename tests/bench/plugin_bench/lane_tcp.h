/* SPDX-License-Identifier: Apache-2.0 */
/* lane_tcp.h - lanes over one plain TCP connection each: what the kernel alone gives. */
#ifndef BENCH_LANE_TCP_H
#define BENCH_LANE_TCP_H

#include "lane.h"

/** Listens at @address; @handle (LANE_HANDLE_BYTES) receives the place, for the peer. */
void lane_tcp_listen(struct lane *lane, const char *address, uint8_t *handle);

/** Connects all of @sends to @handles and accepts all of @receives. */
void lanes_tcp_connect(struct lane *sends, struct lane *receives, unsigned int num_sends,
		       unsigned int num_receives, const uint8_t *handles);

/** Queues @size bytes at @data; nothing moves yet but what the socket takes at once. */
void lane_tcp_start(struct lane *lane, uint8_t *data, size_t size);

/** Sends or receives what the socket accepts or has. True if message lane->done is complete. */
bool lane_tcp_move(struct lane *lane);

/**
 * Makes @other use the connection of @lane. A round trip is fastest over one: an answer carries the
 * acknowledgement that would be a packet of its own.
 */
void lane_tcp_share(const struct lane *lane, struct lane *other);

void lane_tcp_close(struct lane *lane);

#endif
