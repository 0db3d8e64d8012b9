/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - NCCL's or RCCL's functions, found when the program runs. Neither is needed to build;
 * which library is tested is chosen by --nccl or by the loader's path.
 */
#ifndef COLLECTIVES_API_H
#define COLLECTIVES_API_H

#ifdef COLLECTIVES_NCCL_H
/* A comparison with NCCL's own header only. */
#include <nccl.h>
#else
#include "declarations.h"
#endif

#define API_EVERYWHERE(X)                                                                          \
	X(ncclGetVersion)                                                                          \
	X(ncclGetUniqueId)                                                                         \
	X(ncclGetErrorString)                                                                      \
	X(ncclCommInitRank)                                                                        \
	X(ncclCommDestroy)                                                                         \
	X(ncclCommAbort)                                                                           \
	X(ncclCommGetAsyncError)                                                                   \
	X(ncclAllReduce)                                                                           \
	X(ncclAllGather)                                                                           \
	X(ncclReduceScatter)                                                                       \
	X(ncclBroadcast)                                                                           \
	X(ncclReduce)                                                                              \
	X(ncclSend)                                                                                \
	X(ncclRecv)                                                                                \
	X(ncclGroupStart)                                                                          \
	X(ncclGroupEnd)

/* Not in every version: NULL where the library does not have it. */
#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
#define API_HAS_NEWER
#define API_NEWER(X)                                                                               \
	X(ncclCommSplit)                                                                           \
	X(ncclCommRegister)                                                                        \
	X(ncclCommDeregister)                                                                      \
	X(ncclMemAlloc)                                                                            \
	X(ncclMemFree)
#else
#define API_NEWER(X)
#endif

#define API_MEMBER(name) __typeof__(name) *name;

struct api {
	API_EVERYWHERE(API_MEMBER)
	API_NEWER(API_MEMBER)
	int version_code; /* as NCCL_VERSION() makes it */
	char version[32]; /* "2.28.9" */
};

/**
 * Loads @library, or the usual names if it is NULL. Says on stderr what is missing.
 *
 * Returns 0, or -ENOENT.
 */
int api_open(struct api *api, const char *library);

#endif
