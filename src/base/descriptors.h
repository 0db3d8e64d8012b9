/* SPDX-License-Identifier: Apache-2.0 */
/*
 * descriptors.h - file descriptors: whether they have run out, and those that forked children do
 * not keep.
 */
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

/*
 * A program that forks without exec, as PyTorch's data loaders do, gives its children a copy of
 * every descriptor, with or without O_CLOEXEC. While one of them lives, the kernel keeps our
 * connections and locks, and peers cannot see that the process itself was killed.
 */

/**
 * Has @fd closed in each child that the process forks from now on. Close it with
 * mesh_descriptor_close(), because the number may be reused for another file.
 *
 * Returns @fd; -1 if @fd is -1, with errno unchanged; -1 with ENOMEM, with @fd closed.
 */
int mesh_descriptor_hide(int fd);

/** Closes @fd, hidden or not; -1 is allowed. errno is preserved. */
void mesh_descriptor_close(int fd);

#endif
