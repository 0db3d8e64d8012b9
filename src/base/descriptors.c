/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - whether the process has run out of file descriptors. */
#include <errno.h>
#include <unistd.h>

#include <sys/eventfd.h>

#include "base/descriptors.h"

/* libfabric needs several at once: an endpoint of tcp needs about six. */
#define PROBES 8

bool mesh_descriptors_exhausted(void)
{
	int fds[PROBES], n, saved_errno = errno;
	bool exhausted = false;

	for (n = 0; n < PROBES && !exhausted; n++) {
		fds[n] = eventfd(0, EFD_CLOEXEC);
		exhausted = fds[n] < 0 && (errno == EMFILE || errno == ENFILE);
	}
	while (n--) {
		if (fds[n] >= 0)
			close(fds[n]);
	}
	errno = saved_errno;
	return exhausted;
}

const char *mesh_descriptors_hint(void)
{
	return mesh_descriptors_exhausted() ? "; out of file descriptors: " MESH_DESCRIPTORS_RAISE
					    : "";
}
