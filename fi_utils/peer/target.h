/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - the nodes that `fi_mesh check --peer` is asked to check: addresses or names. */
#ifndef MESH_FI_UTILS_PEER_TARGET_H
#define MESH_FI_UTILS_PEER_TARGET_H

#include <stdint.h>

#include "nic/addr.h"
#include "neighbours/asking.h"

/* A host name (RFC 1035) fits. */
#define PEER_TARGET_TEXT_MAX 256
/* Addresses of one name that are tried. */
#define PEER_TARGET_ADDRS_MAX 8

struct peer_target {
	char text[PEER_TARGET_TEXT_MAX]; /* as the user named it */
	struct mesh_addr addrs[PEER_TARGET_ADDRS_MAX];
	int num_addrs; /* 0: a name that was not resolved yet */
};

/**
 * Reads "10.1.0.1", "fd00::1", "fe80::1%eth0", "fe80::1%3" or what may be a host name.
 *
 * @why: what is wrong, for a message; written on an error only
 *
 * Returns 0 or -EINVAL.
 */
int peer_target_parse(const char *text, struct peer_target *target, const char **why);

/**
 * Finds the addresses of a name: that of the neighbour which calls itself so, or else what the
 * resolver says. Does nothing for an address. May wait for the resolver.
 *
 * @asking: what the neighbours have answered
 * @why: what the resolver says; written on an error only
 *
 * Returns 0 or -ENOENT.
 */
int peer_target_resolve(struct peer_target *target, const struct mesh_asking *asking,
			const char **why);

#endif
