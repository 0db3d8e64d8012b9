/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_pair.h - both ends of a TCP connection over the loopback interface. */
#ifndef MESH_TESTS_TCP_PAIR_H
#define MESH_TESTS_TCP_PAIR_H

#include <stdbool.h>

/** Writes the connecting and the accepted end into @ends; the caller owns both. */
void tcp_pair_open(int ends[2]);

/**
 * True if the kernel returns all of TCP_INFO. qemu's user emulation passes on the first four bytes
 * only.
 *
 * Returns false with a line on stderr: skip.
 */
bool tcp_pair_has_info(void);

/** From now on @end receives nothing: its kernel does not answer either. */
void tcp_pair_silence(int end);

/**
 * Takes the routes away while a byte from ends[0] has no answer, and waits until the kernel has
 * tried to send it again: ends[0] stays connected, and its kernel knows that the network is
 * unreachable. Only in a namespace of the test's own (namespace.h).
 */
void tcp_pair_cut_off(int ends[2]);

#endif
