/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_verbs.c - protects RDMA memory if the host program forks, as PyTorch's data loaders do.
 *
 * After fork() parent and child share each page until one of them writes to it; the writer gets a
 * copy. On Linux before 5.12 the parent may get the copy, while the NIC still uses the page that it
 * had pinned: it sends old data, and the parent does not see what it receives. ibv_fork_init(3)
 * prevents this. NCCL's own network calls it; libfabric's verbs does not. On newer kernels it does
 * nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "fabric/fork_verbs.h"

static void protect(void)
{
	/* Never closed: libfabric uses it. If it is missing, libfabric has no verbs either. */
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*fork_init)(void) = NULL;
	int ret;

	if (!library)
		return;
	*(void **)&fork_init = dlsym(library, "ibv_fork_init");
	if (!fork_init) {
		dlclose(library);
		return;
	}
	ret = fork_init();
	/* EINVAL: another library, such as MPI, has already registered memory. */
	if (ret)
		mesh_info(
			"RDMA memory may be damaged if this program forks (ibv_fork_init: %s): set "
			"RDMAV_FORK_SAFE=1 before it starts",
			strerror(ret));
}

void mesh_verbs_fork_protect(void)
{
	static pthread_once_t done = PTHREAD_ONCE_INIT;

	pthread_once(&done, protect);
}
