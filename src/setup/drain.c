/* SPDX-License-Identifier: Apache-2.0 */
/* drain.c - takes the links of NICs out of use that a user has marked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/compiler.h"
#include "base/log.h"
#include "control/peer_send.h"
#include "setup/drain.h"
#include "setup/nic_watch.h"
#include "setup/setup.h"
#include "system/stats_file.h"

struct mesh_drain {
	struct mesh_watch watch;
	struct mesh_process *process;
	struct mesh_drain_marks marks MESH_GUARDED_BY(process);
};

/* True if the process has opened this NIC: then the user wants to know. */
MESH_HOLDS(process)
static bool has_domain(const struct mesh_process *process, const char *netdev)
{
	int i;

	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		if (process->domains[i] && !strcmp(process->domains[i]->nic->netdev, netdev))
			return true;
	}
	return false;
}

MESH_HOLDS(process)
static void changes_log(const struct mesh_process *process, const struct mesh_drain_marks *before,
			const struct mesh_drain_marks *now)
{
	int i;

	for (i = 0; i < now->num; i++) {
		if (!mesh_drain_marks_have(before, now->netdevs[i]) &&
		    has_domain(process, now->netdevs[i]))
			mesh_warn("%s is being drained: connections leave it that have another "
				  "path. `fi_mesh undrain %s` uses it again",
				  now->netdevs[i], now->netdevs[i]);
	}
	for (i = 0; i < before->num; i++) {
		if (!mesh_drain_marks_have(now, before->netdevs[i]) &&
		    has_domain(process, before->netdevs[i]))
			mesh_warn("%s is used again: it is no longer drained", before->netdevs[i]);
	}
}

static bool marks_equal(const struct mesh_drain_marks *a, const struct mesh_drain_marks *b)
{
	int i = 0;

	while (i < a->num && mesh_drain_marks_have(b, a->netdevs[i]))
		i++;
	return i == a->num && a->num == b->num;
}

MESH_HOLDS(process)
static void marks_follow(struct mesh_drain *drain)
{
	struct mesh_process *process = drain->process;
	struct mesh_drain_marks before = drain->marks;

	if (mesh_drain_marks_read(process->stats.folder_fd, &drain->marks))
		return; /* without a descriptor for that the marks stay as they are */
	if (marks_equal(&before, &drain->marks))
		return; /* other files come and go there: one for each process */
	changes_log(process, &before, &drain->marks);
	mesh_nic_watch_publish(process);
	mesh_peers_nics_changed(process);
}

MESH_HOLDS(process)
static void marks_changed(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	mesh_drain_watch_clear(watch->fd);
	marks_follow(mesh_container_of(watch, struct mesh_drain, watch));
}

/*
 * The descriptor stays open for the process's life, and the next use of the plugin has it again:
 * the kernel may take seconds to close one of inotify (10 s were seen on a busy machine).
 */
MESH_HOLDS(process)
static int watch_start(struct mesh_process *process, struct mesh_watch *watch)
{
	int *fd = &mesh_setup_of(process)->drain_fd, ret;

	mesh_process_assert_locked(process);
	if (*fd <= 0)
		*fd = mesh_drain_watch_open();
	ret = *fd < 0 ? *fd : mesh_drain_watch_add(*fd, process->stats.folder_fd);
	if (ret)
		return ret;
	*watch = (struct mesh_watch){.fd = *fd, .ready = marks_changed};
	return mesh_engine_watch(&process->engine, watch, EPOLLIN);
}

void mesh_drain_open(struct mesh_process *process)
{
	struct mesh_drain *drain;
	int ret;

	mesh_process_assert_locked(process);
	if (process->stats.folder_fd < 0)
		return;
	drain = calloc(1, sizeof(*drain));
	ret = drain ? watch_start(process, &drain->watch) : -ENOMEM;
	if (ret) {
		mesh_info("`fi_mesh drain` has no effect on this process: %s", strerror(-ret));
		free(drain);
		return;
	}
	drain->process = process;
	mesh_setup_of(process)->drain = drain;
	process->drain_marks = &drain->marks;
	marks_follow(drain);
}

void mesh_drain_close(struct mesh_process *process)
{
	struct mesh_drain *drain = mesh_setup_of(process)->drain;

	mesh_process_assert_locked(process);
	mesh_setup_of(process)->drain = NULL;
	process->drain_marks = NULL;
	free(drain); /* the engine's event queue ends as well */
}
