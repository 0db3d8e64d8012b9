/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private_descriptor.h - file descriptors that a forked child of the host program must not keep.
 *
 * A program that forks without exec, as PyTorch's data loaders do, gives its children a copy of
 * every descriptor, O_CLOEXEC or not. While one of them lives, the kernel keeps our connections and
 * locks, and nobody sees that the process itself was killed.
 */
#ifndef MESH_BASE_PRIVATE_DESCRIPTOR_H
#define MESH_BASE_PRIVATE_DESCRIPTOR_H

/**
 * Has @fd closed in each child that the process forks from now on. End it with
 * mesh_descriptor_close(): its number may become another file's.
 *
 * Returns @fd, or -1 with errno if it is -1 itself or there is no memory; then it is closed.
 */
int mesh_descriptor_hide(int fd);

/** Closes @fd, hidden or not; -1 is allowed. errno is preserved. */
void mesh_descriptor_close(int fd);

#endif
