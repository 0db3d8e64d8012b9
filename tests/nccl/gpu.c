/* SPDX-License-Identifier: Apache-2.0 */
/* gpu.c - finds CUDA's or HIP's runtime; both have the same functions with another prefix. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"

#define NOT_READY 600	      /* cudaErrorNotReady, hipErrorNotReady */
#define COPY_DEFAULT 4	      /* cudaMemcpyDefault, hipMemcpyDefault: by the addresses */
#define STREAM_NON_BLOCKING 1 /* not ordered with the default stream */

struct runtime {
	const char *kind, *prefix;
	const char *libraries[8];
};

#ifdef COLLECTIVES_RCCL
static const struct runtime runtime = {
	"HIP",
	"hip",
	{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"},
};
#else
static const struct runtime runtime = {
	"CUDA",
	"cuda",
	{"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so"},
};
#endif

/* Writes the address of the function; false if there is none. */
static bool find(void *handle, const char *name, void *function)
{
	char full[64];
	void *address;

	snprintf(full, sizeof(full), "%s%s", runtime.prefix, name);
	address = dlsym(handle, full);
	memcpy(function, &address, sizeof(address));
	return address;
}

static bool find_all(struct gpu *gpu, void *handle)
{
	return find(handle, "SetDevice", &gpu->set_device) &&
	       find(handle, "Malloc", &gpu->allocate) && find(handle, "Free", &gpu->release) &&
	       find(handle, "Memcpy", &gpu->copy) &&
	       find(handle, "StreamCreateWithFlags", &gpu->stream_create) &&
	       find(handle, "StreamDestroy", &gpu->stream_destroy) &&
	       find(handle, "StreamQuery", &gpu->stream_query) &&
	       find(handle, "GetErrorString", &gpu->error_text);
}

/* The number of GPUs that this library can use; 0 with the reason in @why. */
static int count_devices(struct gpu *gpu, const char *library, char *why, size_t why_size)
{
	int (*count_with)(int *count);
	void *handle = dlopen(library, RTLD_NOW);
	int count = 0, error;

	if (!handle || !find_all(gpu, handle) || !find(handle, "GetDeviceCount", &count_with)) {
		snprintf(why, why_size, "no %s runtime: %s", runtime.kind,
			 handle ? "functions are missing" : dlerror());
		return 0;
	}
	error = count_with(&count);
	if (!error && count > 0)
		return count;
	snprintf(why, why_size, "no GPU for %s: %s", library, gpu->error_text(error));
	return 0;
}

int gpu_open(struct gpu *gpu, int local_rank, char *why, size_t why_size)
{
	char reason[256];
	int i, error, count = 0;

	why[0] = 0;
	/* A runtime that is too new for the driver finds nothing; an older one may. */
	for (i = 0; runtime.libraries[i] && !count; i++) {
		count = count_devices(gpu, runtime.libraries[i], reason, sizeof(reason));
		/* The error of a library that fails explains more than a missing one. */
		if (!count && (!why[0] || !strncmp(reason, "no GPU", 6)))
			snprintf(why, why_size, "%s", reason);
	}
	if (!count)
		return -ENODEV;
	gpu->kind = runtime.kind;
	gpu->device = local_rank % count;
	error = gpu->set_device(gpu->device);
	if (error) {
		snprintf(why, why_size, "GPU %d: %s", gpu->device, gpu->error_text(error));
		return -ENODEV;
	}
	return 0;
}

static int say(const struct gpu *gpu, const char *what, int error)
{
	if (!error)
		return 0;
	fprintf(stderr, "nccl_collectives: %s: %s\n", what, gpu->error_text(error));
	return -EIO;
}

int gpu_allocate(const struct gpu *gpu, void **memory, size_t bytes)
{
	return say(gpu, "allocating memory of the GPU", gpu->allocate(memory, bytes));
}

int gpu_copy(const struct gpu *gpu, void *to, const void *from, size_t bytes)
{
	return say(gpu, "copying", gpu->copy(to, from, bytes, COPY_DEFAULT));
}

int gpu_stream_create(const struct gpu *gpu, void **stream)
{
	return say(gpu, "making a stream", gpu->stream_create(stream, STREAM_NON_BLOCKING));
}

int gpu_stream_done(const struct gpu *gpu, void *stream)
{
	int error = gpu->stream_query(stream);

	if (error == NOT_READY)
		return 0;
	return error ? say(gpu, "stream", error) : 1;
}
