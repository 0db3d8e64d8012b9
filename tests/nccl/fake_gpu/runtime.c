/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - one GPU of compute capability 8.0: its properties and its memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_gpu.h"

/* NCCL only checks that the runtime is not older than it needs. */
#define RUNTIME_VERSION 13000
#define DEVICE_MEMORY ((size_t)4 << 30) /* bytes */
#define PAGE 4096

/* The head of cudaDeviceProp, which is the same in CUDA 11 to 13; NCCL reads no more of it. */
struct properties {
	char name[256];
	unsigned char uuid[FAKE_UUID_BYTES];
	unsigned char luid[8];
	unsigned int luid_device_node_mask;
	size_t total_memory;
};

/* cudaPointerAttributes. */
struct pointer_attributes {
	int type;
	int device;
	void *device_pointer;
	void *host_pointer;
};

/* cudaDeviceAttr: what is not here is 0, above all GPUDirect (116). */
static const struct {
	int attribute, value;
} attributes[] = {
	{10, 32}, /* threads in a warp */
	{16, 16}, /* multiprocessors */
	{19, 1},  /* can map host memory */
	{41, 1},  /* unified addresses */
	{75, FAKE_CAPABILITY_MAJOR},
	{76, FAKE_CAPABILITY_MINOR},
	{97, 166912}, /* shared memory of a block, at most */
	{102, 1},     /* virtual memory */
};

/* --- the device ----------------------------------------------------------------------------- */

FAKE_NUMBER(enum fake_error, cudaDriverGetVersion, RUNTIME_VERSION)
FAKE_NUMBER(enum fake_error, cudaRuntimeGetVersion, RUNTIME_VERSION)
FAKE_NUMBER(enum fake_error, cudaGetDeviceCount, 1)
FAKE_NUMBER(enum fake_error, cudaGetDevice, 0)
FAKE_NUMBER(enum fake_error, cudaDeviceGetByPCIBusId, 0)
FAKE_NUMBER(enum fake_error, cudaDeviceCanAccessPeer, false)
FAKE_ANSWER(enum fake_error, cudaDeviceSetLimit, FAKE_OK)
FAKE_ANSWER(enum fake_error, cudaGetLastError, FAKE_OK)
FAKE_ANSWER(enum fake_error, cudaPeekAtLastError, FAKE_OK)
/* NCCL before 2.22 takes these two from libcuda.so. */
FAKE_ANSWER(enum fake_error, cuInit, FAKE_OK)
FAKE_NUMBER(enum fake_error, cuDriverGetVersion, RUNTIME_VERSION)

FAKE_EXPORT enum fake_error cudaSetDevice(int device)
{
	return device ? FAKE_INVALID_VALUE : FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (attributes[i].attribute == attribute)
			*value = attributes[i].value;
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaDeviceGetPCIBusId(char *id, int length, int device)
{
	snprintf(id, (size_t)length, FAKE_PCI_ADDRESS);
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaGetDeviceProperties(struct properties *properties, int device)
{
	memset(properties, 0, sizeof(*properties));
	snprintf(properties->name, sizeof(properties->name), "no GPU");
	memcpy(properties->uuid, FAKE_UUID, FAKE_UUID_BYTES);
	properties->total_memory = DEVICE_MEMORY;
	return FAKE_OK;
}

/* CUDA 12 gives the same function this name. */
FAKE_ALIAS(cudaGetDeviceProperties_v2, cudaGetDeviceProperties)

FAKE_EXPORT enum fake_error cudaDeviceSynchronize(void)
{
	fake_streams_synchronize();
	return FAKE_OK;
}

FAKE_EXPORT const char *cudaGetErrorString(enum fake_error error)
{
	switch (error) {
	case FAKE_OK:
		return "no error";
	case FAKE_OUT_OF_MEMORY:
		return "out of memory";
	case FAKE_NOT_SUPPORTED:
		return "the fake GPU cannot do this";
	default:
		return "an error of the fake GPU";
	}
}

/* --- its memory ----------------------------------------------------------------------------- */

struct allocation {
	struct allocation *next; /* under allocations_lock */
	char *begin, *end;
};

static pthread_mutex_t allocations_lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations; /* under allocations_lock */

FAKE_EXPORT enum fake_error cudaMalloc(void **memory, size_t bytes)
{
	struct allocation *allocation = malloc(sizeof(*allocation));

	*memory = NULL;
	if (!allocation || posix_memalign(memory, PAGE, bytes ? bytes : 1)) {
		free(allocation);
		return FAKE_OUT_OF_MEMORY;
	}
	allocation->begin = *memory;
	allocation->end = allocation->begin + bytes;
	pthread_mutex_lock(&allocations_lock);
	allocation->next = allocations;
	allocations = allocation;
	pthread_mutex_unlock(&allocations_lock);
	return FAKE_OK;
}

static void release(void *memory)
{
	struct allocation **link, *found;

	pthread_mutex_lock(&allocations_lock);
	for (link = &allocations; *link && (*link)->begin != memory; link = &(*link)->next)
		;
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&allocations_lock);
	if (!found)
		return;
	free(found->begin);
	free(found);
}

bool fake_memory_ours(const void *address)
{
	const struct allocation *at;
	const char *byte = address;

	pthread_mutex_lock(&allocations_lock);
	for (at = allocations; at && (byte < at->begin || byte >= at->end); at = at->next)
		;
	pthread_mutex_unlock(&allocations_lock);
	return at || fake_mapping_ours(address);
}

FAKE_EXPORT enum fake_error cudaFree(void *memory)
{
	fake_streams_synchronize();
	release(memory);
	return FAKE_OK;
}

FAKE_ALIAS(cudaFreeHost, cudaFree)
FAKE_ALIAS(cudaHostAlloc, cudaMalloc)
FAKE_ANSWER(enum fake_error, cudaHostRegister, FAKE_OK)
FAKE_ANSWER(enum fake_error, cudaHostUnregister, FAKE_OK)

/* A pool hands out memory in the order of a stream; here it may come and go earlier. */
FAKE_ALIAS(cudaMallocAsync, cudaMalloc)
FAKE_ALIAS(cudaMallocFromPoolAsync, cudaMalloc)
FAKE_ANSWER(enum fake_error, cudaMemPoolSetAttribute, FAKE_OK)

FAKE_EXPORT enum fake_error cudaMemPoolCreate(void **pool, const void *properties)
{
	return cudaMalloc(pool, 1);
}

FAKE_EXPORT enum fake_error cudaMemPoolDestroy(void *pool)
{
	release(pool);
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaFreeAsync(void *memory, struct fake_stream *stream)
{
	return fake_stream_append(stream, release, memory);
}

FAKE_EXPORT enum fake_error cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
	*device = host;
	return FAKE_OK;
}

FAKE_EXPORT enum fake_error cudaPointerGetAttributes(struct pointer_attributes *attributes_of,
						     void *pointer)
{
	*attributes_of = (struct pointer_attributes){
		.type = 2, /* cudaMemoryTypeDevice */
		.device_pointer = pointer,
		.host_pointer = pointer,
	};
	return FAKE_OK;
}

/* --- what cannot be done --------------------------------------------------------------------- */

#define CANNOT(name) FAKE_ANSWER(enum fake_error, name, FAKE_NOT_SUPPORTED)

CANNOT(cudaIpcGetMemHandle)
CANNOT(cudaIpcOpenMemHandle)
CANNOT(cudaIpcCloseMemHandle)
CANNOT(cudaDeviceEnablePeerAccess)
CANNOT(cudaArrayGetInfo)
CANNOT(cudaGraphAddDependencies)
CANNOT(cudaGraphAddDependencies_v2)
CANNOT(cudaGraphAddEventRecordNode)
CANNOT(cudaGraphAddEventWaitNode)
CANNOT(cudaGraphAddHostNode)
CANNOT(cudaGraphAddKernelNode)
CANNOT(cudaGraphRetainUserObject)
CANNOT(cudaUserObjectCreate)
CANNOT(cudaStreamUpdateCaptureDependencies)
CANNOT(cudaStreamUpdateCaptureDependencies_v2)
CANNOT(cudaMemcpyBatchAsync)
