/* SPDX-License-Identifier: Apache-2.0 */
/* hip_runtime_api.h - stands in for HIP's where only rccl.h is at hand: all that rccl.h needs. */
#ifndef STAND_IN_HIP_RUNTIME_API_H
#define STAND_IN_HIP_RUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

typedef struct ihipStream_t *hipStream_t;

#endif
