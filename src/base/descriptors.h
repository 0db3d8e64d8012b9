/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.h - whether the process has run out of file descriptors. */
#ifndef MESH_BASE_DESCRIPTORS_H
#define MESH_BASE_DESCRIPTORS_H

#include <stdbool.h>

/* The remedy, for the end of a message. */
#define MESH_DESCRIPTORS_RAISE "raise the limit of open files (ulimit -n)"

/**
 * True if no file descriptor can be opened now. libfabric hides EMFILE behind other errors, so code
 * that explains one of those calls this.
 */
bool mesh_descriptors_exhausted(void);

/** "; out of file descriptors: " MESH_DESCRIPTORS_RAISE, or "". */
const char *mesh_descriptors_hint(void);

#endif
