/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_fp16.h - stands in for CUDA's: nccl.h includes it and uses nothing of it. */
