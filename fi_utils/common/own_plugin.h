/* SPDX-License-Identifier: Apache-2.0 */
/* own_plugin.h - finds the plugin that was built or installed together with this program. */
#ifndef MESH_FI_UTILS_COMMON_OWN_PLUGIN_H
#define MESH_FI_UTILS_COMMON_OWN_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

#define OWN_PLUGIN_FILE "libnccl-net-mesh.so"
/* The same for RCCL before 2.22, which looks for no other name than librccl-net-NAME.so. */
#define OWN_PLUGIN_FILE_RCCL "librccl-net-mesh.so"
/* NAME in these: NCCL_NET_PLUGIN=mesh, in every version of NCCL and RCCL. */
#define OWN_PLUGIN_NAME "mesh"
/* Of `scons install` without options. */
#define OWN_PLUGIN_FOLDER "/usr/local/lib"

/**
 * Finds the folder that has OWN_PLUGIN_FILE: this program's own, as built, or lib/ beside it, as
 * installed.
 *
 * @installed: look where it is installed only
 * @folder: PATH_MAX bytes; absolute, without links; written on success only
 */
bool own_plugin_folder(bool installed, char *folder);

/** True if NCCL_NET_PLUGIN=@value names this plugin, by its name or a path of its files. */
bool own_plugin_is_named(const char *value);

#endif
