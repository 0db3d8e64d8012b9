/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - loads NCCL or RCCL. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api.h"

#ifdef COLLECTIVES_RCCL
static const char *const names[] = {"librccl.so.1", "librccl.so"};
#else
static const char *const names[] = {"libnccl.so.2", "libnccl.so"};
#endif

_Static_assert(ncclSuccess == 0 && ncclInProgress == 7, "ncclResult_t");
_Static_assert(ncclUint32 == 3 && ncclFloat == 7 && ncclSum == 0, "types and operations");
_Static_assert(sizeof(ncclUniqueId) == 128 && sizeof(ncclResult_t) == 4, "layouts");
_Static_assert(NCCL_VERSION(2, 8, 4) == 2804 && NCCL_VERSION(2, 30, 7) == 23007, "versions");

static void *load(const char *library)
{
	void *handle = NULL;

	if (library)
		return dlopen(library, RTLD_NOW);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !handle; i++)
		handle = dlopen(names[i], RTLD_NOW);
	return handle;
}

/* ncclGetVersion: 2.9 and later count 10000 a major, earlier ones 1000. */
static void set_version(struct api *api)
{
	int code = 0, major;

	api->ncclGetVersion(&code);
	api->version_code = code;
	major = code >= 10000 ? 10000 : 1000;
	snprintf(api->version, sizeof(api->version), "%d.%d.%d", code / major, code % major / 100,
		 code % 100);
}

#define LOAD(name) memcpy(&api->name, &(void *){dlsym(handle, #name)}, sizeof(void *));
#define LOAD_REQUIRED(name) LOAD(name) if (!api->name) missing = #name;

int api_open(struct api *api, const char *library)
{
	const char *missing = NULL;
	void *handle = load(library);

	if (!handle) {
		fprintf(stderr, "nccl_collectives: %s\n", dlerror());
		return -ENOENT;
	}
	API_EVERYWHERE(LOAD_REQUIRED)
	API_NEWER(LOAD)
	if (missing) {
		fprintf(stderr, "nccl_collectives: the library has no %s\n", missing);
		return -ENOENT;
	}
	set_version(api);
	return 0;
}
