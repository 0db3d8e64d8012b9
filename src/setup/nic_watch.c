/* SPDX-License-Identifier: Apache-2.0 */
/* nic_watch.c - reads the NICs again when a link or an address has changed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/compiler.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/threads.h"
#include "nic/nic.h"
#include "setup/carriers.h"
#include "setup/neighbour_hints.h"
#include "setup/nic_join.h"
#include "setup/nic_neighbours.h"
#include "setup/nic_watch.h"
#include "setup/setup.h"
#include "system/node.h"
#include "system/nic_table.h"

/* From the start of one reading to the next. */
#define PAUSE_MS 100

/* ---- reading, in a thread ------------------------------------------------------------------ */

/* As far as others see it. */
static bool nics_equal(const struct mesh_nic *a, const struct mesh_nic *b)
{
	int i;

	if (a->num_addrs != b->num_addrs || a->mtu != b->mtu)
		return false;
	for (i = 0; i < a->num_addrs; i++)
		if (!mesh_addr_equal(&a->addrs[i], &b->addrs[i]))
			return false;
	return true;
}

/* True if each NIC of the first list that can be used is in the second one as it was. */
static bool usable_are_in(const struct mesh_nic *nics, int num, const struct mesh_nic *in,
			  int num_in)
{
	int i, k;

	for (i = 0; i < num; i++) {
		for (k = 0; k < num_in && in[k].ifindex != nics[i].ifindex; k++)
			continue;
		if (mesh_nic_is_usable(&nics[i]) &&
		    (k == num_in || !mesh_nic_is_usable(&in[k]) || !nics_equal(&nics[i], &in[k])))
			return false;
	}
	return true;
}

/*
 * Most changes are others: of statistics, of containers' interfaces. Only this list, which takes
 * tenths of a millisecond, is read for them.
 */
static bool links_changed(struct mesh_nic_watch *watch)
{
	struct mesh_nic *links;
	bool changed;
	int num;

	if (mesh_netlink_load(&links, &num))
		return false;
	changed = !usable_are_in(links, num, watch->links, watch->num_links) ||
		  !usable_are_in(watch->links, watch->num_links, links, num);
	free(watch->links);
	watch->links = links;
	watch->num_links = num;
	return changed;
}

/* No other thread changes nics and num_devs while this one reads. */
static void table_read(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	struct mesh_nic_table table;

	if (mesh_nic_table_load_with("/sys", &process->config, process->nics, process->num_devs,
				     &table))
		return;
	mesh_nics_join(process, &table);
	mesh_process_lock(process);
	mesh_nic_table_free(&watch->table);
	watch->table = table;
	mesh_process_unlock(process);
}

static void reading_main(void *arg)
{
	struct mesh_process *process = arg;
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	bool changed = links_changed(watch);

	if (changed)
		table_read(process);
	mesh_process_lock(process);
	if (changed) {
		mesh_nic_neighbours_refresh(process, mesh_nic_watch_table(process), watch->links,
					    watch->num_links);
		mesh_neighbour_hints_forget(process);
	}
	watch->reading = false;
	mesh_engine_wake(&process->engine); /* something may have changed meanwhile */
	mesh_process_unlock(process);
}

/* ---- the engine's side --------------------------------------------------------------------- */

MESH_HOLDS(process)
static void watch_ready(struct mesh_watch *ready, uint32_t events)
{
	struct mesh_nic_watch *watch = mesh_container_of(ready, struct mesh_nic_watch, watch);

	(void)events;
	mesh_netlink_watch_drain(ready->fd);
	watch->changed = true;
	mesh_carriers_check(watch->process);
}

MESH_NOT_ANALYSED
void mesh_nic_watch_open(struct mesh_process *process, bool missed)
{
	struct mesh_nic_watch *watch = calloc(1, sizeof(*watch));
	int fd = watch ? mesh_netlink_watch_open() : -ENOMEM;

	if (fd < 0) {
		mesh_info("cannot watch the links, so NICs that come up later are not used: %s",
			  strerror(-fd));
		free(watch);
		return;
	}
	watch->watch = (struct mesh_watch){.fd = fd, .ready = watch_ready};
	watch->process = process;
	watch->changed = missed;
	mesh_setup_of(process)->nic_watch = watch;
}

void mesh_nic_watch_start(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	int ret = 0;

	mesh_process_assert_locked(process);
	if (watch)
		ret = mesh_engine_watch(&process->engine, &watch->watch, EPOLLIN);
	if (ret)
		mesh_info("the engine cannot watch the links: %s", strerror(-ret));
}

MESH_NOT_ANALYSED
void mesh_nic_watch_close(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;

	mesh_setup_of(process)->nic_watch = NULL;
	if (!watch)
		return;
	mesh_descriptor_close(watch->watch.fd); /* the engine's event queue ends as well */
	mesh_nic_table_free(&watch->table);
	free(watch->links);
	free(watch);
}

int mesh_nic_watch_timeout(struct mesh_process *process, uint64_t now_ms)
{
	const struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	uint64_t due_ms;

	mesh_process_assert_locked(process);
	if (!watch || !watch->changed || watch->reading)
		return -1;
	due_ms = watch->read_ms + PAUSE_MS;
	return now_ms < due_ms ? (int)(due_ms - now_ms) : 0;
}

void mesh_nic_watch_tick(struct mesh_process *process, uint64_t now_ms)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	int ret;

	if (mesh_nic_watch_timeout(process, now_ms))
		return;
	watch->changed = false;
	watch->reading = true;
	watch->read_ms = now_ms;
	ret = mesh_thread_start(reading_main, process);
	if (!ret)
		return;
	watch->reading = false;
	mesh_info("cannot start a thread to read the NICs: %s", strerror(-ret));
}

const struct mesh_nic_table *mesh_nic_watch_table(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;

	mesh_process_assert_locked(process);
	return watch && watch->table.num_nics ? &watch->table : &process->table;
}
