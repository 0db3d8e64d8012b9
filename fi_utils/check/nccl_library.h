/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_library.h - the NCCL or RCCL of this machine, what it wants of a plugin, what that has. */
#ifndef MESH_FI_UTILS_CHECK_NCCL_LIBRARY_H
#define MESH_FI_UTILS_CHECK_NCCL_LIBRARY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ncclNetPlugin_v0 to _v31: one bit each. */
#define NCCL_ABI_MAX 31

struct nccl_library {
	char path[PATH_MAX];
	char version[48]; /* "2.28.3+cuda12.9"; "" if unknown */
	uint32_t asked;	  /* bit n: it looks for ncclNetPlugin_vn */
	bool is_rccl;
};

/** Reads version and asked from a library's @size bytes. Nothing in them is trusted. */
void nccl_library_scan(const void *bytes, size_t size, struct nccl_library *library);

/** 20000 and so on: "2.28.3+cuda12.9" is 22803; 0 if @version is not of that kind. */
int nccl_version_number(const char *version);

/** "NCCL" or "RCCL". */
const char *nccl_library_name(const struct nccl_library *library);

/** True if NCCL_NET_PLUGIN may be a path; false if only a part of the name libnccl-net-PART.so. */
bool nccl_takes_paths(const struct nccl_library *library);

/**
 * Looks where a program would find it: @file, VLLM_NCCL_SO_PATH, LD_PRELOAD, LD_LIBRARY_PATH,
 * Python environments, system folders; and reads it.
 *
 * @file: NULL to look
 *
 * Returns 0; -ENOENT if there is none; another negative errno if it cannot be read.
 */
int nccl_library_find(const char *file, struct nccl_library *library);

/** True if the library that nccl_library_find() would read is RCCL, which has other files. */
bool nccl_library_is_rccl(const char *file);

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
