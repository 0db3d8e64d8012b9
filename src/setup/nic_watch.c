/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic_watch.c - reads the NICs again when a link or an address has changed, and what follows: NICs
 * that join, carriers that come and go, and NICs that a user drains.
 *
 * A NIC that joins gets a number behind NCCL's devices, which stay as they are, a domain and a
 * control listener, and carries paths of the comms that are made from then on. A NIC that a user
 * has marked with `fi_mesh drain` carries nothing that has another path.
 *
 * The engine sleeps on a netlink socket, and on the folder of the marks. A thread does the reading,
 * which takes milliseconds; while changes continue, it reads every 100 ms. Nothing runs while
 * nothing changes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/threads.h"
#include "control/link.h"
#include "control/peer_life.h"
#include "fabric/provider.h"
#include "neighbours/neighbours.h"
#include "nic/nic.h"
#include "relay/relay.h"
#include "setup/connecting.h"
#include "setup/nics.h"
#include "setup/setup.h"
#include "system/nic_table.h"
#include "system/node.h"
#include "system/stats_file.h"
#include "transport/comm_life.h"

/* From the start of one reading to the next. */
#define PAUSE_MS 100
/* A link is dead half a second after its limit at the latest. */
#define SLACK_MS 2000

/* ---- NICs that could not be used at init, and can now ---------------------------------------- */

/* The first dev that is bound to this address, or -1: the sockets below depend on nothing else. */
static int dev_find(const struct mesh_process *process, const struct mesh_addr *source)
{
	int dev;

	for (dev = 0; dev < process->num_devs; dev++) {
		if (mesh_addr_equal(&process->nics[dev]->source, source))
			return dev;
	}
	return -1;
}

static bool is_taken(const struct mesh_nic_table *table, const struct mesh_addr *source)
{
	int i;

	for (i = 0; i < table->num_taken; i++) {
		if (mesh_addr_equal(&table->nics[i].source, source))
			return true;
	}
	return false;
}

MESH_HOLDS(process)
static void dev_open(struct mesh_process *process, int dev)
{
	char address[MESH_ADDR_TEXT_MAX];
	int ret = mesh_opening_join(process, dev);

	if (!ret)
		return;
	/* It is not offered to peers; the next change of a link or an address tries it again. */
	process->dev_states[dev] = MESH_DEV_FAILED;
	mesh_info("%s cannot join: TCP port %u of %s, which all NICs of this process share: %s",
		  process->nics[dev]->netdev, process->control_port,
		  mesh_addr_text(&process->nics[dev]->source, address), strerror(-ret));
}

static void nic_add(struct mesh_process *process, const struct mesh_nic *nic,
		    enum mesh_provider_id provider)
{
	struct mesh_nic *added = malloc(sizeof(*added));
	int dev = process->num_devs;

	if (!added)
		return;
	*added = *nic;
	mesh_info("NIC %d: %s joins, %s", dev, nic->netdev, nic->reason);
	mesh_process_lock(process);
	process->nics[dev] = added;
	mesh_process_provider_set(process, dev, provider);
	process->dev_states[dev] = MESH_DEV_CLOSED;
	process->controls[dev].watch.fd = -1;
	process->dev_reserves[dev] = false;
	process->num_devs = dev + 1;
	dev_open(process, dev);
	mesh_process_unlock(process);
}

/* Returns false if the NIC is skipped: then the table has another one in its place. */
static bool nic_join(struct mesh_process *process, struct mesh_nic_table *table, int index)
{
	enum mesh_provider_id wanted = mesh_provider_id_parse(process->config.provider);
	const struct mesh_nic *nic = &table->nics[index];
	struct mesh_provider_verdict found;

	if (process->num_devs == MESH_NICS_MAX) {
		mesh_nic_leave(&table->nics[index], MESH_NIC_SKIPPED,
			       "it came up when %d NICs were in use: no more can be",
			       MESH_NICS_MAX);
		mesh_nic_table_sort(table);
		return false;
	}
	mesh_provider_rescan(nic);
	if (mesh_provider_assign(wanted, table, index, &found))
		return false;
	if (found.note[0])
		mesh_warn("%s came up late and joins with %s (before 2.2 libfabric lists the RDMA "
			  "devices only when a process starts: one that starts now may use them): "
			  "%s",
			  nic->netdev, mesh_provider_id_text(found.id), found.note);
	nic_add(process, nic, found.id);
	return true;
}

/* What a comm has over a NIC that has become a reserve, or is none any longer, counts anew. */
static void reserves_set(struct mesh_process *process, const struct mesh_nic_table *table)
{
	bool reserve, changed = false;
	struct mesh_comm *comm;
	int dev;

	mesh_process_lock(process);
	for (dev = 0; dev < process->num_devs; dev++) {
		reserve = !is_taken(table, &process->nics[dev]->source);
		changed |= process->dev_reserves[dev] != reserve;
		process->dev_reserves[dev] = reserve;
	}
	for (comm = changed ? LIST_FIRST(&process->comms) : NULL; comm;
	     comm = LIST_NEXT(comm, entry))
		mesh_comm_tiers_renew(comm);
	mesh_process_unlock(process);
}

/*
 * Adds the taken NICs of @table that the process does not have yet, and opens those again that it
 * could not open. Skips, in @table, those for which libfabric has no provider. Sets dev_reserves.
 * Called by one thread at a time, without locks; the process has started.
 */
MESH_EXCLUDES(process)
static void nics_join(struct mesh_process *process, struct mesh_nic_table *table)
{
	int i = 0, dev;

	while (i < table->num_taken) {
		dev = dev_find(process, &table->nics[i].source);
		if (dev < 0 && !nic_join(process, table, i))
			continue;
		mesh_process_lock(process);
		if (dev >= 0 && process->dev_states[dev] == MESH_DEV_FAILED)
			dev_open(process, dev);
		mesh_process_unlock(process);
		i++;
	}
	reserves_set(process, table);
}

void mesh_nics_forget(struct mesh_process *process)
{
	int dev;

	mesh_process_assert_locked(process);
	for (dev = process->num_lasting; dev < process->num_devs; dev++) {
		free((struct mesh_nic *)process->nics[dev]);
		process->nics[dev] = NULL;
	}
	process->num_devs = process->num_lasting;
	for (dev = 0; dev < MESH_NICS_MAX; dev++)
		process->dev_reserves[dev] = dev >= process->num_nics;
}

/* ---- carriers ------------------------------------------------------------------------------- */

MESH_HOLDS(process)
static bool link_is_resumed(const struct mesh_link *link)
{
	const struct mesh_peer *peer;

	LIST_FOREACH(peer, &link->peers, link_entry) {
		if (mesh_peer_is_resumed(peer))
			return true;
	}
	return false;
}

/* The next link of the NIC whose comms go on over other paths. */
MESH_HOLDS(process)
static struct mesh_link *resumed_find(const struct mesh_process *process,
				      const struct mesh_domain *domain)
{
	struct mesh_link *link;

	LIST_FOREACH(link, &process->links, entry) {
		if (link->domain == domain && link_is_resumed(link))
			break;
	}
	return link;
}

/*
 * Loses the links whose comms go on over other paths. The others are watched for longer than the
 * verdict takes: while nothing waits for them, the kernel alone would detect later that they are
 * dead.
 */
MESH_HOLDS(process)
static void links_lose(struct mesh_process *process, const struct mesh_domain *domain)
{
	uint64_t until_ms = mesh_clock_ms() + process->config.dead_peer_timeout_s * 1000 + SLACK_MS;
	struct mesh_link *link;

	/* From the start each time: to report one may end others, whose peers do not read. */
	while ((link = resumed_find(process, domain)))
		mesh_link_lose(LIST_FIRST(&link->peers), "the NIC here has no carrier",
			       MESH_REFUSAL_BROKEN);
	mesh_circuits_carrier_lost(process, domain);
	LIST_FOREACH(link, &process->links, entry) {
		if (link->domain == domain)
			mesh_link_want(LIST_FIRST(&link->peers), until_ms, false);
	}
}

/*
 * Looks at each NIC: a cable that is pulled is known at once, and not only when nothing has been
 * heard for long. Links whose comms have another path are lost; the others are only watched,
 * because the cable may come back.
 */
MESH_HOLDS(process)
static void carriers_check(struct mesh_process *process)
{
	const struct mesh_domain *domain;
	int dev, i;

	for (dev = 0; dev < process->num_devs; dev++)
		mesh_process_carrier_look(process, dev);
	for (i = 0; i < MESH_DOMAINS_MAX; i++) {
		domain = process->domains[i];
		if (!domain)
			continue;
		if (mesh_carrier_is_up(domain->nic)) {
			mesh_rejoins_hasten(process, domain);
			mesh_seekers_hasten(process, domain);
		} else {
			links_lose(process, domain);
		}
	}
	mesh_connects_hasten(process);
}

/* ---- what neighbours learn ------------------------------------------------------------------- */

const struct mesh_nic_table *mesh_nic_watch_table(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;

	mesh_process_assert_locked(process);
	return watch && watch->table.num_nics ? &watch->table : &process->table;
}

/* As the kernel lists it now; NULL: it is gone, or nothing has been read yet. */
MESH_HOLDS(process)
static const struct mesh_nic *present_find(const struct mesh_nic_watch *watch, unsigned int ifindex)
{
	return watch ? mesh_nic_find(watch->links, watch->num_links, ifindex) : NULL;
}

/* What was read of a NIC that is in use; NULL if it cannot be used now. */
MESH_HOLDS(process)
static const struct mesh_nic *nic_now(const struct mesh_nic_watch *watch,
				      const struct mesh_nic *nic,
				      const struct mesh_nic_table *table)
{
	const struct mesh_nic *found = present_find(watch, nic->ifindex);

	if (nic->kind == MESH_NIC_LOOPBACK)
		return NULL; /* it has no other end */
	if (watch && watch->num_links && (!found || !mesh_nic_is_usable(found)))
		return NULL;
	found = mesh_nic_find(table->nics, table->num_nics, nic->ifindex);
	return found ? found : nic;
}

/* A NIC whose address has changed is more than one device: the first one counts. */
static bool is_listed(const struct mesh_neighbour_link *links, int num_links, unsigned int ifindex)
{
	int i;

	for (i = 0; i < num_links; i++) {
		if (links[i].ifindex == ifindex)
			return true;
	}
	return false;
}

/*
 * The NICs whose link is down. @table judges those that this process has as it did when they could
 * be used; the present state shows these.
 */
MESH_HOLDS(process)
static int down_list(const struct mesh_nic_watch *watch, const struct mesh_nic_table *table,
		     const struct mesh_nic **down)
{
	const struct mesh_nic *nic, *now;
	int i, num = 0;

	for (i = 0; i < table->num_nics && num < MESH_NICS_MAX; i++) {
		nic = &table->nics[i];
		now = present_find(watch, nic->ifindex);
		if (nic->verdict == MESH_NIC_LINK_DOWN ||
		    (mesh_nic_is_taken(nic) && nic->kind != MESH_NIC_LOOPBACK && now &&
		     !mesh_nic_has_carrier(now)))
			down[num++] = nic;
	}
	return num;
}

/* A bit for each. */
static uint8_t providers_of(const struct mesh_process *process, int dev)
{
	return (uint8_t)(1u << process->providers[dev] |
			 (process->also_tcp[dev] ? 1u << MESH_PROVIDER_TCP : 0));
}

void mesh_nic_watch_publish(struct mesh_process *process)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;
	const struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	const struct mesh_nic_table *table = mesh_nic_watch_table(process);
	struct mesh_neighbour_link links[MESH_NICS_MAX];
	const struct mesh_nic *nic, *down[MESH_NICS_MAX];
	int dev, num_links = 0;

	mesh_process_assert_locked(process);
	if (!neighbours)
		return;
	for (dev = 0; dev < process->num_devs; dev++) {
		nic = nic_now(watch, process->nics[dev], table);
		if (!nic || process->dev_reserves[dev] || process->controls[dev].watch.fd < 0 ||
		    is_listed(links, num_links, nic->ifindex))
			continue;
		mesh_neighbour_link_describe(&neighbours->self, nic, dev,
					     providers_of(process, dev), &links[num_links]);
		if (mesh_process_is_drained(process, dev))
			links[num_links].about.flags = MESH_NEIGHBOUR_DRAINED;
		num_links++;
	}
	mesh_neighbours_links_set(neighbours, links, num_links, true);
	mesh_answering_down_set(&neighbours->answering, down, down_list(watch, table, down));
}

/* ---- NICs that a user has marked with `fi_mesh drain` ---------------------------------------- */

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
			mesh_warn("%s is being drained: connections with another path leave it. "
				  "`fi_mesh undrain %s` uses it again",
				  now->netdevs[i], now->netdevs[i]);
	}
	for (i = 0; i < before->num; i++) {
		if (!mesh_drain_marks_have(now, before->netdevs[i]) &&
		    has_domain(process, before->netdevs[i]))
			mesh_warn("%s is used again: it is no longer drained", before->netdevs[i]);
	}
}

MESH_HOLDS(process)
static void marks_follow(struct mesh_setup *setup)
{
	const struct mesh_drain_marks before = setup->drain_marks;
	struct mesh_process *process = &setup->process;

	if (mesh_drain_marks_read(process->stats.folder_fd, &setup->drain_marks))
		return; /* without a descriptor for that the marks stay as they are */
	if (!memcmp(&before, &setup->drain_marks, sizeof(before)))
		return; /* other files come and go there: one for each process */
	changes_log(process, &before, &setup->drain_marks);
	mesh_nic_watch_publish(process);
	mesh_peers_nics_changed(process);
}

MESH_HOLDS(process)
static void marks_changed(struct mesh_watch *watch, uint32_t events)
{
	(void)events;
	mesh_drain_watch_clear(watch->fd);
	marks_follow(mesh_container_of(watch, struct mesh_setup, drain_watch));
}

/*
 * Reads the marks, and watches them. Without the folder of the counters (NCCL_MESH_STATS_DIR=none),
 * or without a descriptor, no NIC can be drained. The descriptor stays open for the process's life,
 * and the next use of the plugin has it again: the kernel may take seconds to close one of inotify
 * (10 s were seen on a busy machine).
 */
MESH_HOLDS(process)
static void drain_open(struct mesh_setup *setup)
{
	struct mesh_process *process = &setup->process;
	struct mesh_watch *watch = &setup->drain_watch;
	int fd, ret;

	if (process->stats.folder_fd < 0)
		return;
	fd = watch->fd > 0 ? watch->fd : mesh_drain_watch_open();
	*watch = (struct mesh_watch){.fd = fd, .ready = marks_changed};
	ret = fd < 0 ? fd : mesh_drain_watch_add(fd, process->stats.folder_fd);
	if (!ret)
		ret = mesh_engine_watch(&process->engine, watch, EPOLLIN);
	if (ret) {
		mesh_info("`fi_mesh drain` has no effect on this process: %s", strerror(-ret));
		return;
	}
	setup->drain_marks.num = 0;
	process->drain_marks = &setup->drain_marks;
	marks_follow(setup);
}

/* ---- reading, in a thread ------------------------------------------------------------------ */

/*
 * Most changes are others, such as of statistics. Only this list, which takes tenths of a
 * millisecond, is read for them.
 */
MESH_EXCLUDES(process)
static bool links_read(struct mesh_nic_watch *watch)
{
	struct mesh_nic *links;
	bool changed;
	int num;

	if (mesh_netlink_load(&links, &num))
		return false;
	mesh_process_lock(watch->process);
	changed = num != watch->num_links ||
		  memcmp(links, watch->links, (size_t)num * sizeof(*links)) != 0;
	free(watch->links);
	watch->links = links;
	watch->num_links = num;
	mesh_process_unlock(watch->process);
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
	nics_join(process, &table);
	mesh_process_lock(process);
	mesh_nic_table_free(&watch->table);
	watch->table = table;
	mesh_process_unlock(process);
}

static void reading_main(void *arg)
{
	struct mesh_process *process = arg;
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;

	if (links_read(watch))
		table_read(process);
	mesh_process_lock(process);
	mesh_nic_watch_publish(process);
	watch->state = MESH_NIC_WATCH_RESTS;
	mesh_process_unlock(process);
}

/* ---- the engine's side --------------------------------------------------------------------- */

MESH_HOLDS(process)
static void reading_expired(struct mesh_timer *timer, uint64_t now_ms)
{
	struct mesh_nic_watch *watch = mesh_container_of(timer, struct mesh_nic_watch, timer);
	int ret;

	if (watch->state == MESH_NIC_WATCH_READS) {
		mesh_engine_timer_set(&watch->process->engine, timer, now_ms + PAUSE_MS);
		return;
	}
	watch->state = MESH_NIC_WATCH_READS;
	watch->read_ms = now_ms;
	ret = mesh_thread_start(reading_main, watch->process);
	if (!ret)
		return;
	watch->state = MESH_NIC_WATCH_RESTS;
	mesh_info("cannot start a thread to read the NICs: %s", strerror(-ret));
}

MESH_HOLDS(process)
static void watch_ready(struct mesh_watch *ready, uint32_t events)
{
	struct mesh_nic_watch *watch = mesh_container_of(ready, struct mesh_nic_watch, watch);

	(void)events;
	mesh_netlink_watch_drain(ready->fd);
	mesh_engine_timer_set(&watch->process->engine, &watch->timer, watch->read_ms + PAUSE_MS);
	carriers_check(watch->process);
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
	watch->timer.expired = reading_expired;
	watch->state = missed ? MESH_NIC_WATCH_MISSED : MESH_NIC_WATCH_RESTS;
	mesh_setup_of(process)->nic_watch = watch;
}

void mesh_nic_watch_start(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;
	int ret = 0;

	mesh_process_assert_locked(process);
	drain_open(mesh_setup_of(process));
	if (watch && watch->state == MESH_NIC_WATCH_MISSED)
		mesh_engine_timer_set(&process->engine, &watch->timer, 0);
	if (watch)
		ret = mesh_engine_watch(&process->engine, &watch->watch, EPOLLIN);
	if (ret)
		mesh_info("the engine cannot watch the links: %s", strerror(-ret));
}

MESH_NOT_ANALYSED
void mesh_nic_watch_close(struct mesh_process *process)
{
	struct mesh_nic_watch *watch = mesh_setup_of(process)->nic_watch;

	process->drain_marks = NULL;
	mesh_setup_of(process)->nic_watch = NULL;
	if (!watch)
		return;
	mesh_engine_timer_cancel(&process->engine, &watch->timer);
	mesh_descriptor_close(watch->watch.fd); /* the engine's event queue ends as well */
	mesh_nic_table_free(&watch->table);
	free(watch->links);
	free(watch);
}
