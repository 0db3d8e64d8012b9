/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - kernels, which keep their place in a stream and do nothing, and driver functions. */
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

/* cudaFuncAttributes, as far as NCCL reads it. */
struct function_attributes {
	size_t shared_bytes, constant_bytes, local_bytes;
	int max_threads, registers, ptx_version, binary_version;
};

/* CUlaunchConfig, as far as we read it. */
struct launch_configuration {
	unsigned int grid[3], block[3], shared_bytes;
	struct fake_stream *stream;
};

/* dim3. */
struct extent {
	unsigned int x, y, z;
};

/* cudaLaunchConfig_t, as far as we read it. */
struct runtime_launch_configuration {
	struct extent grid, block;
	size_t shared_bytes;
	struct fake_stream *stream;
};

/* Declared here, because only nvcc's output declares them. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);
char __cudaInitModule(void **binary);

FAKE_EXPORT enum fake_error cudaFuncGetAttributes(struct function_attributes *of,
						  const void *kernel)
{
	(void)kernel;
	memset(of, 0, sizeof(*of));
	of->max_threads = 1024;
	of->binary_version = 10 * FAKE_CAPABILITY_MAJOR + FAKE_CAPABILITY_MINOR;
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaFuncSetAttribute(const void *kernel, int attribute, int value)
{
	(void)kernel;
	(void)attribute;
	(void)value;
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaGetFuncBySymbol(const void **function, const void *kernel)
{
	*function = kernel;
	return FAKE_OK;
}

/* nvcc's glue around kernels, called when NCCL is loaded (crt/host_runtime.h). */
FAKE_EXPORT void **__cudaRegisterFatBinary(void *binary)
{
	(void)binary;
	return calloc(1, sizeof(void *));
}

FAKE_EXPORT void __cudaRegisterFatBinaryEnd(void **binary)
{
	(void)binary;
}

FAKE_EXPORT void __cudaUnregisterFatBinary(void **binary)
{
	free(binary);
}

FAKE_EXPORT void __cudaRegisterFunction(void **binary, const char *host, char *device,
					const char *name, int threads, void *a, void *b, void *c,
					void *d, int *size)
{
	(void)binary;
	(void)host;
	(void)device;
	(void)name;
	(void)threads;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	(void)size;
}

FAKE_EXPORT void __cudaRegisterVar(void **binary, char *host, char *device, const char *name,
				   int external, size_t size, int constant, int global)
{
	(void)binary;
	(void)host;
	(void)device;
	(void)name;
	(void)external;
	(void)size;
	(void)constant;
	(void)global;
}

FAKE_EXPORT char __cudaInitModule(void **binary)
{
	(void)binary;
	return 1;
}

FAKE_EXPORT enum fake_error __cudaGetKernel(const void **kernel, const void *host)
{
	*kernel = host;
	return FAKE_OK;
}

/* --- launches -------------------------------------------------------------------------------- */

static void kernel_skip(void *argument)
{
	(void)argument;
}

FAKE_EXPORT enum fake_error cudaLaunchKernel(const void *kernel, struct extent grid,
					     struct extent block, void **arguments,
					     size_t shared_bytes, struct fake_stream *stream)
{
	(void)kernel;
	(void)grid;
	(void)block;
	(void)arguments;
	(void)shared_bytes;
	return fake_stream_append(stream, kernel_skip, NULL);
}

/* NCCL 2.18 and 2.19 launch by this one. */
FAKE_EXPORT enum fake_error
cudaLaunchKernelExC(const struct runtime_launch_configuration *configuration, const void *kernel,
		    void **arguments)
{
	(void)kernel;
	(void)arguments;
	return fake_stream_append(configuration->stream, kernel_skip, NULL);
}

FAKE_EXPORT enum fake_error __cudaLaunchKernel(const void *kernel, struct extent grid,
					       struct extent block, void **arguments,
					       size_t shared_bytes, struct fake_stream *stream)
{
	return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

FAKE_EXPORT enum fake_error __cudaPopCallConfiguration(struct extent *grid, struct extent *block,
						       size_t *shared_bytes, void *stream)
{
	(void)grid;
	(void)block;
	(void)shared_bytes;
	(void)stream;
	return FAKE_NOT_SUPPORTED;
}

static enum fake_error cu_launch(const void *kernel, unsigned int grid_x, unsigned int grid_y,
				 unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				 unsigned int block_z, unsigned int shared_bytes,
				 struct fake_stream *stream, void **arguments, void **extra)
{
	(void)kernel;
	(void)grid_x;
	(void)grid_y;
	(void)grid_z;
	(void)block_x;
	(void)block_y;
	(void)block_z;
	(void)shared_bytes;
	(void)arguments;
	(void)extra;
	return fake_stream_append(stream, kernel_skip, NULL);
}

static enum fake_error cu_launch_extended(const struct launch_configuration *configuration,
					  const void *kernel, void **arguments, void **extra)
{
	(void)kernel;
	(void)arguments;
	(void)extra;
	return fake_stream_append(configuration->stream, kernel_skip, NULL);
}

/* --- driver functions that NCCL asks for by name --------------------------------------------- */

static enum fake_error cu_error_text(int error, const char **text)
{
	*text = cudaGetErrorString((enum fake_error)error);
	return FAKE_OK;
}

static enum fake_error cu_device(int *device, int ordinal)
{
	*device = ordinal;
	return cudaSetDevice(ordinal);
}

/* NCCL 2.30 uses it to find whether two ranks have the same GPU. */
static enum fake_error cu_device_uuid(unsigned char *uuid, int device)
{
	(void)device;
	memcpy(uuid, FAKE_UUID, FAKE_UUID_BYTES);
	return FAKE_OK;
}

/* The only context is always current. */
static enum fake_error cu_context(void **context)
{
	static int only;

	*context = &only;
	return FAKE_OK;
}

static enum fake_error cu_context_set(void *context)
{
	(void)context;
	return FAKE_OK;
}

static enum fake_error cu_context_device(int *device)
{
	*device = 0;
	return FAKE_OK;
}

static const struct {
	const char *name;
	void (*function)(void);
} driver[] = {
	{"cuGetErrorString", (void (*)(void))cu_error_text},
	{"cuGetErrorName", (void (*)(void))cu_error_text},
	{"cuDeviceGet", (void (*)(void))cu_device},
	{"cuDeviceGetAttribute", (void (*)(void))cudaDeviceGetAttribute},
	{"cuDeviceGetUuid", (void (*)(void))cu_device_uuid},
	{"cuCtxGetCurrent", (void (*)(void))cu_context},
	{"cuCtxSetCurrent", (void (*)(void))cu_context_set},
	{"cuCtxGetDevice", (void (*)(void))cu_context_device},
	{"cuLaunchKernel", (void (*)(void))cu_launch},
	{"cuLaunchKernelEx", (void (*)(void))cu_launch_extended},
};

FAKE_EXPORT enum fake_error cudaGetDriverEntryPoint(const char *name, void **function,
						    unsigned long long flags, int *status)
{
	void (*found)(void) = fake_mapping_function(name);
	size_t i;

	(void)flags;
	for (i = 0; i < sizeof(driver) / sizeof(driver[0]); i++)
		if (!strcmp(driver[i].name, name))
			found = driver[i].function;
	memcpy(function, &found, sizeof(*function));
	if (status)
		*status = *function ? 0 : 1; /* cudaDriverEntryPointSymbolNotFound */
	return *function ? FAKE_OK : FAKE_SYMBOL_NOT_FOUND;
}

FAKE_EXPORT enum fake_error cudaGetDriverEntryPointByVersion(const char *name, void **function,
							     unsigned int version,
							     unsigned long long flags, int *status)
{
	(void)version;
	return cudaGetDriverEntryPoint(name, function, flags, status);
}

/* NCCL before 2.22 takes these three from libcuda.so. */
FAKE_EXPORT enum fake_error cuInit(unsigned int flags)
{
	(void)flags;
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cuDriverGetVersion(int *version)
{
	return cudaDriverGetVersion(version);
}

FAKE_EXPORT enum fake_error cuGetProcAddress(const char *name, void **function, int version,
					     uint64_t flags)
{
	(void)version;
	return cudaGetDriverEntryPoint(name, function, flags, NULL);
}
