/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h - how the ranks find rank 0. */
#ifndef PINGPONG_RENDEZVOUS_H
#define PINGPONG_RENDEZVOUS_H

#include "options.h"

/**
 * Reads MASTER_ADDR and MASTER_PORT into @options. The ranks meet one port further where torchrun's
 * store listens on MASTER_PORT, as it does for as long as they live.
 *
 * Returns 0, or -EINVAL after saying on stderr what is missing or wrong.
 */
int rendezvous_address(struct options *options);

/**
 * Rank 0: listens on MASTER_ADDR:MASTER_PORT; on all addresses if MASTER_ADDR is a name that
 * this machine takes for its loopback. Says on stderr why it cannot.
 *
 * Returns a non-blocking socket, or a negative errno.
 */
int rendezvous_listen(const struct options *options);

/**
 * Other ranks: connects to rank 0, trying again until the rendezvous deadline, so that the order
 * of starting is free. Says on stderr why it could not.
 *
 * Returns a socket, or a negative errno.
 */
int rendezvous_connect(const struct options *options);

#endif
