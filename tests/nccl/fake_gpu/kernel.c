/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - what is known of kernels before they are launched, and driver functions. */
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

#define POINTER_DEVICE_ORDINAL 9 /* CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL */

/* cudaFuncAttributes, as far as NCCL reads it. */
struct function_attributes {
	size_t shared_bytes, constant_bytes, local_bytes;
	int max_threads, registers, ptx_version, binary_version;
};

/* Declared here, because only nvcc's output declares them. */
void **__cudaRegisterFatBinary(void *binary);
void __cudaRegisterFatBinaryEnd(void **binary);
void __cudaUnregisterFatBinary(void **binary);

FAKE_EXPORT enum fake_error cudaFuncGetAttributes(struct function_attributes *of,
						  const void *kernel)
{
	memset(of, 0, sizeof(*of));
	of->max_threads = 1024;
	of->binary_version = 10 * FAKE_CAPABILITY_MAJOR + FAKE_CAPABILITY_MINOR;
	return FAKE_OK;
}

FAKE_ANSWER(enum fake_error, cudaFuncSetAttribute, FAKE_OK)

FAKE_EXPORT enum fake_error cudaGetFuncBySymbol(const void **function, const void *kernel)
{
	*function = kernel;
	return FAKE_OK;
}

/* nvcc's glue around kernels, called when NCCL is loaded (crt/host_runtime.h). */
FAKE_EXPORT void **__cudaRegisterFatBinary(void *binary)
{
	return calloc(1, sizeof(void *));
}

FAKE_EXPORT void __cudaRegisterFatBinaryEnd(void **binary)
{
}

FAKE_EXPORT void __cudaUnregisterFatBinary(void **binary)
{
	free(binary);
}

FAKE_EXPORT void __cudaRegisterFunction(void **binary, const char *host, char *device,
					const char *name, int threads, void *a, void *b, void *c,
					void *d, int *size)
{
}

FAKE_EXPORT void __cudaRegisterVar(void **binary, char *host, char *device, const char *name,
				   int external, size_t size, int constant, int global)
{
}

FAKE_ANSWER(char, __cudaInitModule, 1)
FAKE_ALIAS(__cudaGetKernel, cudaGetFuncBySymbol)

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
	return FAKE_OK;
}

/* ncclMemFree asks only for the device. */
static enum fake_error cu_pointer_attribute(void *value, int attribute, uintptr_t address)
{
	const int only_device = 0;

	if (attribute != POINTER_DEVICE_ORDINAL || !fake_memory_ours((const void *)address))
		return FAKE_INVALID_VALUE;
	memcpy(value, &only_device, sizeof(only_device));
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
	{"cuCtxGetDevice", (void (*)(void))cudaGetDevice},
	{"cuPointerGetAttribute", (void (*)(void))cu_pointer_attribute},
	{"cuLaunchKernel", (void (*)(void))fake_cu_launch},
	{"cuLaunchKernelEx", (void (*)(void))fake_cu_launch_extended},
};

FAKE_EXPORT enum fake_error cudaGetDriverEntryPoint(const char *name, void **function,
						    unsigned long long flags, int *status)
{
	void (*found)(void) = fake_mapping_function(name);

	for (size_t i = 0; i < sizeof(driver) / sizeof(driver[0]); i++)
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
	return cudaGetDriverEntryPoint(name, function, flags, status);
}

/* NCCL before 2.22 takes it from libcuda.so. */
FAKE_EXPORT enum fake_error cuGetProcAddress(const char *name, void **function, int version,
					     uint64_t flags)
{
	return cudaGetDriverEntryPoint(name, function, flags, NULL);
}
