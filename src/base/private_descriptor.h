/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_descriptor.h - file descriptors that a forked child of the host program must not keep.
 *
 * A program that forks without exec, as PyTorch's data loaders do, gives its children a copy of
 * every descriptor, with or without O_CLOEXEC. While one of them lives, the kernel keeps our
 * connections and locks, and peers cannot see that the process itself was killed.
 */
#ifndef MESH_BASE_PRIVATE_DESCRIPTOR_H
#define MESH_BASE_PRIVATE_DESCRIPTOR_H

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
