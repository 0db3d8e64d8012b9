/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_gpu.h - a simulated GPU: the part of the CUDA runtime and of NVML that NCCL's host
 * code calls, with host memory as the GPU's and a thread for each stream. An NCCL that takes its
 * CUDA runtime from a shared library runs on it with its own setup, topology search, bootstrap,
 * proxy threads and net-plugin loader, unchanged. Its kernels do not run: a launch ends at once.
 *
 * Signatures, numbers and layouts are those of CUDA's cuda_runtime_api.h and NVML's nvml.h,
 * declared anew here so that neither has to be installed.
 */
#ifndef FAKE_GPU_H
#define FAKE_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* cudaError_t. */
enum fake_error {
	FAKE_OK = 0,
	FAKE_INVALID_VALUE = 1,
	FAKE_OUT_OF_MEMORY = 2,
	FAKE_SYMBOL_NOT_FOUND = 500,
	FAKE_NOT_READY = 600,
	FAKE_NOT_SUPPORTED = 801,
};

/* The library exports these and nothing else. */
#define FAKE_EXPORT __attribute__((visibility("default"), used))

/* The only GPU, as NCCL names it in its log. */
#define FAKE_PCI_ADDRESS "0000:65:00.0"
/* cudaUUID_t. All ranks of a machine have this GPU, as with a real one that they share. */
#define FAKE_UUID "the fake GPU 000"
#define FAKE_UUID_BYTES 16
#define FAKE_CAPABILITY_MAJOR 8
#define FAKE_CAPABILITY_MINOR 0

struct fake_stream;

/** A piece of work for a stream's thread. */
typedef void fake_work_fn(void *argument);

/** Appends work to @stream (NULL: the default one). Returns FAKE_OK or FAKE_OUT_OF_MEMORY. */
enum fake_error fake_stream_append(struct fake_stream *stream, fake_work_fn *work, void *argument);

/** True if @address is in memory that this runtime gave out: the GPU's, or the host's for it. */
bool fake_memory_ours(const void *address);

/** True if the driver's virtual memory has this address mapped. */
bool fake_mapping_ours(const void *address);

/** The driver's function of virtual memory that has this name, or NULL. */
void (*fake_mapping_function(const char *name))(void);

/** Waits until every stream is empty. */
void fake_streams_synchronize(void);

/* Functions of the runtime that the driver has, too. */
enum fake_error cudaDriverGetVersion(int *version);
enum fake_error cudaSetDevice(int device);
enum fake_error cudaDeviceGetAttribute(int *value, int attribute, int device);
const char *cudaGetErrorString(enum fake_error error);

#endif
