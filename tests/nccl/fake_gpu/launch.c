/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - launches of kernels, which keep their place in a stream. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

/* CU_LAUNCH_PARAM_...: what follows in the list of extras. */
enum extra {
	EXTRA_END = 0,
	EXTRA_BUFFER = 1,
	EXTRA_BYTES = 2, /* a pointer to the size of the buffer */
};

/* dim3. */
struct extent {
	unsigned int x, y, z;
};

/* cudaLaunchConfig_t, as far as we read it. */
struct runtime_launch {
	struct extent grid, block;
	size_t shared_bytes;
	struct fake_stream *stream;
};

struct launch {
	const void *kernel;
	unsigned int grid[3], block[3];
	size_t bytes;
	char arguments[];
};

static _Atomic(fake_kernel_fn *) kernels_run;

FAKE_EXPORT void fake_gpu_kernels(fake_kernel_fn *run)
{
	atomic_store(&kernels_run, run);
}

static void kernel_skip(void *argument)
{
}

static void kernel_run(void *argument)
{
	struct launch *launch = argument;

	atomic_load (&kernels_run)(launch->kernel, launch->grid, launch->block, launch->arguments,
				   launch->bytes);
	free(launch);
}

/* The buffer of arguments and its size; NULL if the kernel was launched in another way. */
static const void *buffer_of(void **extra, size_t *bytes)
{
	const void *buffer = NULL;

	*bytes = 0;
	for (; extra && (uintptr_t)extra[0] != EXTRA_END; extra += 2) {
		if ((uintptr_t)extra[0] == EXTRA_BUFFER)
			buffer = extra[1];
		else if ((uintptr_t)extra[0] == EXTRA_BYTES)
			memcpy(bytes, extra[1], sizeof(*bytes));
	}
	return buffer;
}

enum fake_error fake_cu_launch_extended(const struct fake_launch *how, const void *kernel,
					void **arguments, void **extra)
{
	size_t bytes;
	const void *buffer = buffer_of(extra, &bytes);
	struct launch *launch;

	if (!buffer || !atomic_load(&kernels_run))
		return fake_stream_append(how->stream, kernel_skip, NULL);
	launch = malloc(sizeof(*launch) + bytes);
	if (!launch)
		return FAKE_OUT_OF_MEMORY;
	*launch = (struct launch){.kernel = kernel, .bytes = bytes};
	memcpy(launch->grid, how->grid, sizeof(launch->grid));
	memcpy(launch->block, how->block, sizeof(launch->block));
	memcpy(launch->arguments, buffer, bytes);
	return fake_stream_append(how->stream, kernel_run, launch);
}

enum fake_error fake_cu_launch(const void *kernel, unsigned int grid_x, unsigned int grid_y,
			       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			       unsigned int block_z, unsigned int shared_bytes,
			       struct fake_stream *stream, void **arguments, void **extra)
{
	struct fake_launch launch = {
		.grid = {grid_x, grid_y, grid_z},
		.block = {block_x, block_y, block_z},
		.shared_bytes = shared_bytes,
		.stream = stream,
	};

	return fake_cu_launch_extended(&launch, kernel, arguments, extra);
}

FAKE_EXPORT enum fake_error cudaLaunchKernel(const void *kernel, struct extent grid,
					     struct extent block, void **arguments,
					     size_t shared_bytes, struct fake_stream *stream)
{
	return fake_stream_append(stream, kernel_skip, NULL);
}

/* NCCL 2.18 and 2.19 launch by this one. */
FAKE_EXPORT enum fake_error cudaLaunchKernelExC(const struct runtime_launch *launch,
						const void *kernel, void **arguments)
{
	return fake_stream_append(launch->stream, kernel_skip, NULL);
}

FAKE_ALIAS(__cudaLaunchKernel, cudaLaunchKernel)
FAKE_ANSWER(enum fake_error, __cudaPopCallConfiguration, FAKE_NOT_SUPPORTED)
