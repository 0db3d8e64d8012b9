/* SPDX-License-Identifier: Apache-2.0 */
/* host_memory.c - the host program's memory and code, which libfabric must not harm. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "fabric/host_memory.h"

/*
 * Keeps libfabric from changing libc's code while threads run it.
 *
 * libfabric's verbs caches registrations (1.17 to 2.6 at least) and must know when memory is
 * unmapped. Its default monitor, "memhooks", overwrites the first 13 bytes of libc's mmap(),
 * munmap(), mremap(), madvise(), shmat(), shmdt() and brk() when the first domain is opened. On
 * x86-64 that is the whole function: another thread that is inside munmap() at that moment returns
 * from the system call into the middle of a new instruction, and the process ends with SIGSEGV.
 * glibc calls munmap() when a thread first allocates memory, so threads that start while a domain
 * is opened are the likely victims (3 of 100 processes in the virtual machine).
 *
 * The plugin's registrations bypass that cache (mr.c), so it is switched off as a whole: the
 * monitor never starts then. libfabric offers only its environment variables for this. setenv() is
 * not safe beside another thread's getenv() before glibc 2.41, but NCCL itself calls setenv() for
 * each line of nccl.conf before it initializes a network plugin.
 */

static void prevent(void)
{
	/* fi_mr(3): a cache without entries is not opened, and starts no monitor. */
	if (!getenv("FI_MR_CACHE_MONITOR") && setenv("FI_MR_CACHE_MAX_COUNT", "0", 0))
		mesh_info("cannot switch off libfabric's cache of registrations: set "
			  "FI_MR_CACHE_MAX_COUNT=0 before the program starts");
}

void mesh_memory_hooks_prevent(void)
{
	static pthread_once_t done = PTHREAD_ONCE_INIT;

	pthread_once(&done, prevent);
}

/*
 * Protects RDMA memory if the host program forks, as PyTorch's data loaders do.
 *
 * After fork() parent and child share each page until one of them writes to it; the writer gets a
 * copy. On Linux before 5.12 the parent may get the copy, while the NIC still uses the page that it
 * had pinned: it sends old data, and the parent does not see what it receives. ibv_fork_init(3)
 * prevents this. NCCL's own network calls it; libfabric's verbs does not. On newer kernels it does
 * nothing.
 */

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
