/* SPDX-License-Identifier: Apache-2.0 */
/* fork_verbs.h - registered memory and a host program that forks. */
#ifndef MESH_FABRIC_FORK_VERBS_H
#define MESH_FABRIC_FORK_VERBS_H

/** Protects registered memory if the host program forks. Call it before the first registration. */
void mesh_verbs_fork_protect(void);

#endif
