/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declarations.h - what these programs call of NCCL's public API, declared by ourselves, so that
 * they are built and packaged without NCCL. Names, values and layouts are those of nccl.h since
 * 2.19, and of rccl.h; tests/functional/test_nccl_tools.sh compiles every file with NCCL's own
 * header as well, where api.c compares the values.
 */
#ifndef COLLECTIVES_DECLARATIONS_H
#define COLLECTIVES_DECLARATIONS_H

#include <stddef.h>

#define NCCL_UNIQUE_ID_BYTES 128

/* ncclGetVersion()'s number: versions before 2.9 counted otherwise. */
#define NCCL_VERSION(major, minor, patch)                                                          \
	((major) <= 2 && (minor) <= 8 ? (major)*1000 + (minor)*100 + (patch)                       \
				      : (major)*10000 + (minor)*100 + (patch))

typedef struct ncclComm *ncclComm_t;
typedef struct CUstream_st *cudaStream_t; /* or HIP's: both are pointers */
typedef struct ncclConfig ncclConfig_t;

typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclInProgress = 7
} ncclResult_t;
typedef enum {
	ncclUint32 = 3,
	ncclFloat = 7
} ncclDataType_t;
typedef enum {
	ncclSum = 0
} ncclRedOp_t;

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
const char *ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int num_ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *part,
			   ncclConfig_t *config);
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t ncclMemAlloc(void **memory, size_t bytes);
ncclResult_t ncclMemFree(void *memory);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
			   ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count, ncclDataType_t type,
			       ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
			ncclRedOp_t operation, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
			   int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
		      ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream);

#endif
