/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_gpu.h - a simulated GPU: the part of the CUDA runtime and of NVML that NCCL's host
 * code calls, with host memory as the GPU's and a thread for each stream. An NCCL that takes its
 * CUDA runtime from a shared library runs on it with its own setup, topology search, bootstrap,
 * proxy threads and net-plugin loader, unchanged. Its kernels do not run: a launch ends at once,
 * unless a program that does their work on the CPU has registered with fake_gpu_kernels().
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

/* A function that gives @answer and does not look at its arguments, which its caller removes. */
#define FAKE_ANSWER(type, name, answer)                                                            \
	FAKE_EXPORT type name(void);                                                               \
	FAKE_EXPORT type name(void)                                                                \
	{                                                                                          \
		return answer;                                                                     \
	}

/* A function that succeeds and writes @number where its first argument points. */
#define FAKE_NUMBER(type, name, number)                                                            \
	FAKE_EXPORT type name(int *value)                                                          \
	{                                                                                          \
		*value = number;                                                                   \
		return (type)0;                                                                    \
	}

/* Another name of a function of the same file, which does not look at what is passed besides. */
#define FAKE_ALIAS(name, of) FAKE_EXPORT __typeof__(of) name __attribute__((alias(#of)));

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

/**
 * Does the work of @kernel, as it was launched, and returns when it is done. It is called from the
 * thread of the kernel's stream.
 * @grid, @block: numbers of blocks, and of threads in each, in three dimensions
 * @arguments: the buffer of CU_LAUNCH_PARAM_BUFFER_POINTER, a copy that lives during the call
 */
typedef void fake_kernel_fn(const void *kernel, const unsigned int grid[3],
			    const unsigned int block[3], const void *arguments, size_t bytes);

/** From now on @run does the work of every kernel that is launched with a buffer of arguments. */
void fake_gpu_kernels(fake_kernel_fn *run);

/* CUlaunchConfig, as far as we read it. */
struct fake_launch {
	unsigned int grid[3], block[3], shared_bytes;
	struct fake_stream *stream;
};

/** The driver's cuLaunchKernel. */
enum fake_error fake_cu_launch(const void *kernel, unsigned int grid_x, unsigned int grid_y,
			       unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			       unsigned int block_z, unsigned int shared_bytes,
			       struct fake_stream *stream, void **arguments, void **extra);

/** The driver's cuLaunchKernelEx. */
enum fake_error fake_cu_launch_extended(const struct fake_launch *launch, const void *kernel,
					void **arguments, void **extra);

/** Waits until every stream is empty. */
void fake_streams_synchronize(void);

/* Functions of the runtime that the driver has, too. */
enum fake_error cudaGetDevice(int *device);
enum fake_error cudaSetDevice(int device);
enum fake_error cudaDeviceGetAttribute(int *value, int attribute, int device);
const char *cudaGetErrorString(enum fake_error error);

#endif
