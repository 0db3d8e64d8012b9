/* SPDX-License-Identifier: Apache-2.0 */
/* other_files.c - what the plugin opens beside TCP and UDP, and which interfaces libfabric sees. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "kernel.h"

WORLD_REAL_OF(open)
WORLD_REAL_OF(lseek)
WORLD_REAL_OF(getdents64)
WORLD_REAL_OF(getifaddrs)

/* ---- what only brings news: a netlink socket, and inotify ------------------------------------ */

struct news_file {
	struct world_file file;
	bool news;
};

static uint32_t news_events(struct world_file *file)
{
	return ((struct news_file *)file)->news ? EPOLLIN : 0;
}

static ssize_t news_receive(struct world_file *file, struct msghdr *message, int flags)
{
	struct news_file *news = (struct news_file *)file;

	if (!news->news)
		return -EAGAIN;
	news->news = false;
	return 1;
}

static int news_bind(struct world_file *file, const struct sockaddr *name, socklen_t len)
{
	return 0;
}

static const struct world_file_kind news_kind = {
	.name = "socket:[netlink]",
	.events = news_events,
	.receive = news_receive,
	.close = world_file_free,
	.bind = news_bind,
};

static const struct world_file_kind inotify_kind = {
	.name = "anon_inode:inotify",
	.events = news_events,
	.receive = news_receive,
	.close = world_file_free,
};

struct world_file *world_news_new(struct world_node *node)
{
	return world_file_new(&news_kind, node, sizeof(struct news_file));
}

static void news_give(struct world_node *node, const struct world_file_kind *kind)
{
	for (int i = 0; i < WORLD_FILES_MAX; i++) {
		if (node->files[i] && node->files[i]->kind == kind)
			((struct news_file *)node->files[i])->news = true;
	}
}

void world_links_changed(struct world_node *node)
{
	news_give(node, &news_kind);
}

void world_folder_changed(struct world_node *node)
{
	news_give(node, &inotify_kind);
}

int inotify_init1(int flags)
{
	return world_result(world_file_open(
		world_file_new(&inotify_kind, world_acting(), sizeof(struct news_file))));
}

int inotify_add_watch(int fd, const char *name, uint32_t mask)
{
	return 1;
}

/* ---- what nothing ever comes from: the socket of a node's speaker --------------------------- */

static uint32_t quiet_events(struct world_file *file)
{
	return 0;
}

static int quiet_listen(struct world_file *file, int backlog)
{
	return 0;
}

static ssize_t quiet_receive(struct world_file *file, struct msghdr *message, int flags)
{
	return -EAGAIN;
}

static int quiet_connect(struct world_file *file, const struct sockaddr *name, socklen_t len)
{
	return -ECONNREFUSED;
}

static const struct world_file_kind quiet_kind = {
	.name = "socket:[quiet]",
	.events = quiet_events,
	.receive = quiet_receive,
	.close = world_file_free,
	.bind = news_bind,
	.listen = quiet_listen,
	.connect = quiet_connect,
};

struct world_file *world_quiet_new(struct world_node *node)
{
	return world_file_new(&quiet_kind, node, sizeof(struct world_file));
}

int open(const char *name, int flags, ...)
{
	mode_t mode;
	va_list args;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (world_acting() && !strcmp(name, "/proc/self/fd"))
		return world_folder_open();
	return WORLD_REAL(open)(name, flags, mode);
}

/* ---- /proc/self/fd ------------------------------------------------------------------------- */

struct folder_file {
	struct world_file file;
	int next;
};

static const struct world_file_kind folder_kind = {
	.name = "/proc/self/fd",
	.events = quiet_events,
	.close = world_file_free,
};

int world_folder_open(void)
{
	struct folder_file *file = world_file_new(&folder_kind, world_acting(), sizeof(*file));

	return world_result(world_file_open(&file->file));
}

/* NULL: it is not one of this kernel's folders. */
static struct folder_file *folder_of(int fd)
{
	struct world_file *file = world_file_of(fd);

	return file && file->kind == &folder_kind ? (struct folder_file *)file : NULL;
}

off_t lseek(int fd, off_t offset, int from)
{
	struct folder_file *folder = folder_of(fd);

	if (!folder)
		return WORLD_REAL(lseek)(fd, offset, from);
	folder->next = 0;
	return 0;
}

ssize_t getdents64(int fd, void *list, size_t size)
{
	struct folder_file *folder = folder_of(fd);
	struct dirent64 *entry;
	size_t used = 0;

	if (!folder)
		return WORLD_REAL(getdents64)(fd, list, size);
	for (; folder->next < WORLD_FILES_MAX && used + 32 <= size; folder->next++) {
		if (!folder->file.node->files[folder->next])
			continue;
		entry = (struct dirent64 *)(void *)((char *)list + used);
		entry->d_reclen = 32;
		snprintf(entry->d_name, 12, "%d", WORLD_FD_FIRST + folder->next);
		used += entry->d_reclen;
	}
	return (ssize_t)used;
}

/* ---- libfabric's list of interfaces --------------------------------------------------------- */

struct interface {
	struct ifaddrs list;
	struct sockaddr_in addr, mask;
	char name[16];
};

static void interface_fill(struct interface *interface, const char *name, struct in_addr addr,
			   uint32_t mask, bool runs)
{
	strcpy(interface->name, name);
	interface->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = addr};
	interface->mask.sin_family = AF_INET;
	interface->mask.sin_addr.s_addr = htonl(mask);
	interface->list = (struct ifaddrs){
		.ifa_next = &interface[1].list,
		.ifa_name = interface->name,
		.ifa_flags = IFF_UP | (runs ? IFF_RUNNING : 0),
		.ifa_addr = (struct sockaddr *)&interface->addr,
		.ifa_netmask = (struct sockaddr *)&interface->mask,
	};
}

int getifaddrs(struct ifaddrs **list)
{
	struct world_node *node = world_acting();
	struct interface *interfaces;
	int i, used = 0;

	if (!node)
		return WORLD_REAL(getifaddrs)(list);
	interfaces = calloc((size_t)node->num_nics + 1, sizeof(*interfaces));
	if (!interfaces)
		world_die("no memory");
	interface_fill(&interfaces[0], "lo", (struct in_addr){htonl(INADDR_LOOPBACK)}, 0xff000000,
		       true);
	interfaces[0].list.ifa_flags |= IFF_LOOPBACK;
	for (i = 0; i < node->num_nics; i++) {
		if (!node->nics[i].bare)
			interface_fill(&interfaces[++used], node->nics[i].name, node->nics[i].addr,
				       0xffffff00, world_nic_runs(&node->nics[i]));
	}
	interfaces[used].list.ifa_next = NULL;
	*list = &interfaces[0].list;
	return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
	free(list); /* the first one begins the block */
}
