/* SPDX-License-Identifier: Apache-2.0 */
/* nic_await.c - waits for NICs whose links have just come up. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "nic/nic_select.h"
#include "system/netlink.h"
#include "system/netlink_watch.h"
#include "system/nic_await.h"
#include "system/nic_table.h"

static bool any_starting(const struct mesh_nic_table *table)
{
	int i;

	for (i = 0; i < table->num_nics; i++)
		if (table->nics[i].starting)
			return true;
	return false;
}

/*
 * Selects as if every NIC that has a carrier were running. In the result, starting is set on the
 * taken NICs to wait for.
 */
static int awaited_find(const struct mesh_config *config, const struct mesh_nic_table *table,
			struct mesh_nic_table *awaited)
{
	size_t size = (size_t)table->num_nics * sizeof(*table->nics);
	int i, k, ret;

	*awaited = *table;
	awaited->nics = malloc(size);
	if (!awaited->nics)
		return -ENOMEM;
	memcpy(awaited->nics, table->nics, size);
	for (i = 0; i < awaited->num_nics; i++)
		awaited->nics[i].starting = false;
	ret = mesh_nic_select(config->nics, config->addresses, awaited);
	for (i = 0; i < awaited->num_nics && !ret; i++) {
		for (k = 0; k < table->num_nics; k++)
			if (table->nics[k].ifindex == awaited->nics[i].ifindex)
				awaited->nics[i].starting = table->nics[k].starting &&
							    awaited->nics[i].taken;
	}
	return ret;
}

/* Reads the awaited NICs again. Returns true if one of them is still starting. */
static bool awaited_look(struct mesh_nic_table *awaited)
{
	struct mesh_nic *now = NULL;
	int i, k, num;

	if (mesh_netlink_load(&now, &num))
		return false;
	for (i = 0; i < awaited->num_nics; i++) {
		struct mesh_nic *nic = &awaited->nics[i];
		bool starting = false;

		for (k = 0; k < num; k++)
			starting |= now[k].ifindex == nic->ifindex && now[k].starting;
		nic->starting &= starting;
	}
	free(now);
	return any_starting(awaited);
}

static void awaited_log(const struct mesh_nic_table *awaited, uint64_t wait_ms)
{
	int i;

	for (i = 0; i < awaited->num_nics; i++)
		if (awaited->nics[i].starting)
			mesh_info("waiting up to %llu ms for %s: its link has just come up",
				  (unsigned long long)wait_ms, awaited->nics[i].netdev);
}

/* Waits until none of the awaited NICs is starting, or until the time is over. */
static void awaited_wait(struct mesh_nic_table *awaited, uint64_t wait_ms)
{
	uint64_t start_ms = mesh_clock_ms(), waited_ms = 0;
	struct pollfd event = {.events = POLLIN};

	event.fd = mesh_netlink_watch_open();
	if (event.fd < 0) {
		mesh_info("cannot watch the links: %s", strerror(-event.fd));
		return;
	}
	awaited_log(awaited, wait_ms);
	/* The socket is open before the first reading, so no change is missed. */
	while (awaited_look(awaited) && waited_ms < wait_ms) {
		if (poll(&event, 1, (int)(wait_ms - waited_ms)) > 0)
			mesh_netlink_watch_drain(event.fd);
		waited_ms = mesh_clock_ms() - start_ms;
	}
	mesh_descriptor_close(event.fd);
	mesh_info("waited %llu ms for the links", (unsigned long long)waited_ms);
}

int mesh_nic_table_load_running(const char *sysfs_root, const struct mesh_config *config,
				uint64_t wait_ms, struct mesh_nic_table *table)
{
	struct mesh_nic_table found = {0}, awaited = {0};
	int ret;

	ret = mesh_nic_table_load(sysfs_root, config, &found);
	if (ret)
		return ret;
	if (any_starting(&found)) {
		ret = awaited_find(config, &found, &awaited);
		if (!ret && any_starting(&awaited)) {
			awaited_wait(&awaited, wait_ms);
			mesh_nic_table_free(&found);
			ret = mesh_nic_table_load(sysfs_root, config, &found);
		}
		mesh_nic_table_free(&awaited);
	}
	if (ret)
		mesh_nic_table_free(&found);
	else
		*table = found;
	return ret;
}
