/* SPDX-License-Identifier: Apache-2.0 */
/* thread.c - starts the plugin's own threads. */
#include <signal.h>

#include "base/thread.h"

int mesh_thread_create(pthread_t *thread, const char *name, void *(*main)(void *arg), void *arg)
{
	sigset_t all, before;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = -pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_setname_np(*thread, name);
	return ret;
}
