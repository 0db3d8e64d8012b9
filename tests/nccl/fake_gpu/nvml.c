/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c - NVML's view of the one GPU: no NVLink, no fabric, no confidential computing. */
#include <string.h>

#include "fake_gpu.h"

/* nvmlReturn_t. */
enum nvml_result {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
};

static int device; /* its address is the handle of the only GPU */

FAKE_ANSWER(enum nvml_result, nvmlInit_v2, NVML_OK)
FAKE_ANSWER(enum nvml_result, nvmlInit, NVML_OK)
FAKE_ANSWER(enum nvml_result, nvmlShutdown, NVML_OK)
FAKE_NUMBER(enum nvml_result, nvmlDeviceGetCount_v2, 1)
FAKE_NUMBER(enum nvml_result, nvmlDeviceGetCount, 1)

FAKE_EXPORT enum nvml_result nvmlDeviceGetHandleByIndex(unsigned int index, void **handle)
{
	*handle = &device;
	return NVML_OK;
}

FAKE_ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByIndex)

FAKE_EXPORT enum nvml_result nvmlDeviceGetIndex(void *handle, unsigned int *index)
{
	*index = 0;
	return NVML_OK;
}

FAKE_EXPORT const char *nvmlErrorString(enum nvml_result result)
{
	return result ? "the fake GPU does not have this" : "no error";
}

FAKE_EXPORT enum nvml_result nvmlDeviceGetCudaComputeCapability(void *handle, int *major,
								int *minor)
{
	*major = FAKE_CAPABILITY_MAJOR;
	*minor = FAKE_CAPABILITY_MINOR;
	return NVML_OK;
}

FAKE_EXPORT enum nvml_result nvmlDeviceGetP2PStatus(void *one, void *other, int capability,
						    int *status)
{
	*status = 3; /* NVML_P2P_STATUS_GPU_NOT_SUPPORTED */
	return NVML_OK;
}

#define CANNOT(name) FAKE_ANSWER(enum nvml_result, name, NVML_NOT_SUPPORTED)

CANNOT(nvmlDeviceGetNvLinkState)
CANNOT(nvmlDeviceGetNvLinkRemotePciInfo)
CANNOT(nvmlDeviceGetNvLinkCapability)
CANNOT(nvmlDeviceGetFieldValues)
CANNOT(nvmlDeviceGetPciInfo_v3)
CANNOT(nvmlDeviceGetPciInfoExt)
CANNOT(nvmlDeviceGetPcieLinkMaxSpeed)
CANNOT(nvmlDeviceGetCurrPcieLinkGeneration)
CANNOT(nvmlDeviceGetCurrPcieLinkWidth)
CANNOT(nvmlDeviceGetPlatformInfo)
CANNOT(nvmlDeviceGetGpuFabricInfoV)
CANNOT(nvmlSystemGetConfComputeState)
CANNOT(nvmlSystemGetConfComputeSettings)
