/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_probe.h - loads a net plugin as NCCL does, and reads its tables. */
#ifndef MESH_FI_UTILS_CHECK_PLUGIN_PROBE_H
#define MESH_FI_UTILS_CHECK_PLUGIN_PROBE_H

#include <limits.h>
#include <stdint.h>

#include "check/nccl_library.h"

struct plugin_probe {
	char path[PATH_MAX];		  /* of the file that the loader found */
	char error[512];		  /* the loader's message, if there is none */
	uint32_t exported;		  /* bit n: it has ncclNetPlugin_vn */
	char names[NCCL_ABI_MAX + 1][32]; /* what each table calls itself: "Mesh" */
};

/**
 * Loads @name in a child process, so that foreign code cannot damage this process.
 *
 * @probe: path "" if nothing was loaded; error has the reason
 *
 * Returns 0, also if nothing was loaded; or a negative errno if it could not be tried.
 */
int plugin_probe(const char *name, struct plugin_probe *probe);

#endif
