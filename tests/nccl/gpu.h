/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.h - the few functions of the CUDA or HIP runtime that a test needs, found at run time. */
#ifndef COLLECTIVES_GPU_H
#define COLLECTIVES_GPU_H

#include <stdbool.h>
#include <stddef.h>

struct gpu {
	int device;
	const char *kind; /* "CUDA" or "HIP" */
	int (*set_device)(int device);
	int (*allocate)(void **memory, size_t bytes);
	int (*release)(void *memory);
	int (*copy)(void *to, const void *from, size_t bytes, int kind);
	int (*stream_create)(void **stream, unsigned int flags);
	int (*stream_destroy)(void *stream);
	int (*stream_query)(void *stream);
	const char *(*error_text)(int error);
};

/**
 * Loads a runtime and takes GPU @local_rank modulo the number of GPUs.
 *
 * Returns 0, or -ENODEV with the reason in @why.
 */
int gpu_open(struct gpu *gpu, int local_rank, char *why, size_t why_size);

/** Each reports errors on stderr and returns 0 or -EIO. */
int gpu_allocate(const struct gpu *gpu, void **memory, size_t bytes);
int gpu_copy(const struct gpu *gpu, void *to, const void *from, size_t bytes);
int gpu_stream_create(const struct gpu *gpu, void **stream);

/** Returns 1 if the stream has done its work, 0 if not yet, -EIO on an error, which it says. */
int gpu_stream_done(const struct gpu *gpu, void *stream);

#endif
