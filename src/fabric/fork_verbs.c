/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_verbs.c - keeps RDMA memory whole when the host program forks, as PyTorch's data loaders do.
 *
 * After fork() parent and child share each page until one of them writes to it; the writer gets a
 * copy. On Linux before 5.12 that may be the parent, and the NIC goes on with the page that it had
 * pinned: what is sent is old, what is received is not seen. ibv_fork_init(3) prevents it, NCCL's
 * own network calls it, and libfabric's verbs does not. On newer kernels it does nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/log.h"
#include "fabric/fork_verbs.h"

static void protect(void)
{
	/* Stays open: libfabric uses it. Without it there is no verbs either. */
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
	/* EINVAL: somebody, MPI perhaps, has registered memory before. */
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
