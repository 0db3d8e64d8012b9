/* SPDX-License-Identifier: Apache-2.0 */
/* hip_fp16.h - stands in for HIP's: rccl.h includes it and uses nothing of it. */
