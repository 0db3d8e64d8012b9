/* SPDX-License-Identifier: Apache-2.0 */
/* round_trip.h - the round-trip time of a TCP connection, as measured by the kernel. */
#ifndef MESH_SYSTEM_ROUND_TRIP_H
#define MESH_SYSTEM_ROUND_TRIP_H

#include <stdint.h>

/**
 * The shortest round trip of a connected TCP socket in the last minutes, in ns. It starts with the
 * handshake, so it is known once the socket is connected.
 *
 * Returns 0 if it is unknown: @fd is not a TCP socket, or the kernel does not report it.
 */
uint64_t mesh_socket_round_trip_ns(int fd);

#endif
