/* SPDX-License-Identifier: Apache-2.0 */
/* round_trip.h - how long a round trip of a TCP connection takes, as the kernel has measured it. */
#ifndef MESH_SYSTEM_ROUND_TRIP_H
#define MESH_SYSTEM_ROUND_TRIP_H

#include <stdint.h>

/**
 * The shortest round trip of a connected TCP socket in the last minutes, in ns. It starts with the
 * handshake, so it is known once the socket is connected.
 *
 * Returns 0 if it is not known: no TCP socket, or a kernel that does not tell.
 */
uint64_t mesh_socket_round_trip_ns(int fd);

#endif
