/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp.h - datagrams that must not be cut into fragments: they test whether a frame of full size
 * arrives.
 */
#ifndef MESH_FI_UTILS_PEER_UDP_H
#define MESH_FI_UTILS_PEER_UDP_H

#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"

/* The largest payload of UDP over IPv4; NICs with a larger MTU are tested with this size. */
#define PEER_UDP_MAX 65507

/**
 * A non-blocking socket at @local's address that sends with DF set and ignores the kernel's path
 * MTU (IP_PMTUDISC_PROBE). Returns it, or a negative errno.
 *
 * @port: receives its port, host order
 */
int peer_udp_open(const struct mesh_addr *local, uint16_t *port);

/** Bytes of payload that fill an IP packet of @mtu bytes, but not less than a probe has. */
size_t peer_udp_payload(const struct mesh_addr *local, uint32_t mtu);

/** Sends a probe of @size bytes. Returns 0 or a negative errno: -EMSGSIZE: more than the MTU. */
int peer_udp_send(int fd, const struct mesh_addr *remote, uint16_t port, uint64_t token,
		  uint32_t id, size_t size);

/**
 * The next probe with this token, from @remote.
 *
 * @id, @size: which, and its bytes
 *
 * Returns 0, or -EAGAIN: none has arrived. All other datagrams are dropped.
 */
int peer_udp_receive(int fd, const struct mesh_addr *remote, uint64_t token, uint32_t *id,
		     uint32_t *size);

#endif
