/* SPDX-License-Identifier: Apache-2.0 */
/* netlink_ask.h - one question to the kernel's tables of routes and neighbours, and its answer. */
#ifndef MESH_SYSTEM_NETLINK_ASK_H
#define MESH_SYSTEM_NETLINK_ASK_H

#include <netlink/msg.h>
#include <netlink/netlink.h>

/**
 * Sends a question over a socket of its own and gives each answer to @read, with @arg. The kernel
 * answers at once. Logs nothing.
 *
 * @msg: the caller's, complete but for what nl_send_auto() fills in
 *
 * Returns 0; the kernel's own error, a negative errno; -ENOMEM; -EIO.
 */
int mesh_netlink_ask(struct nl_msg *msg, nl_recvmsg_msg_cb_t read, void *arg);

#endif
