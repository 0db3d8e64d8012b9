/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime.h - stands in for CUDA's where only nccl.h is at hand: all that nccl.h needs. */
#ifndef STAND_IN_CUDA_RUNTIME_H
#define STAND_IN_CUDA_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

typedef struct CUstream_st *cudaStream_t;

#endif
