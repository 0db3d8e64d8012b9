/* SPDX-License-Identifier: Apache-2.0 */
/* version.h - the release of nccl-net-mesh. */
#ifndef MESH_BASE_VERSION_H
#define MESH_BASE_VERSION_H

/* Bytes of a version's text on the wire, with its zero byte; part of what HELLO freezes. */
#define MESH_VERSION_MAX 24

/* The text of the file VERSION, such as "0.1.0", from SConstruct; plugin.c checks its length. */
#define mesh_version() MESH_VERSION

#endif
