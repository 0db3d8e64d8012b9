/* SPDX-License-Identifier: Apache-2.0 */
/* tcp_pair.h - both ends of a TCP connection over the loopback interface. */
#ifndef MESH_TESTS_TCP_PAIR_H
#define MESH_TESTS_TCP_PAIR_H

/** Writes the connecting and the accepted end into @ends; the caller owns both. */
void tcp_pair_open(int ends[2]);

#endif
