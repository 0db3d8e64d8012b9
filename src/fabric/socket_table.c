/* SPDX-License-Identifier: Apache-2.0 */
/* socket_table.c - all TCP connections of this process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/memory.h"
#include "fabric/socket_table.h"
#include "system/tcp_look.h"

/* Bytes of one read of the folder. */
#define LIST_BYTES 4096

/*
 * What a look at all sockets needs. It is kept open, so that a fence works in a process that has
 * run out of descriptors. The lock is held only within this file, and inside of all others.
 */
static struct {
	pthread_mutex_t lock;
	int users;
	int folder; /* /proc/self/fd */
	int copy;   /* becomes a duplicate of each socket in turn; else of the folder */
} scan = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int scan_open(void)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

	scan.folder = mesh_descriptor_hide(open("/proc/self/fd", flags));
	if (scan.folder < 0)
		return -errno;
	scan.copy = mesh_descriptor_hide(fcntl(scan.folder, F_DUPFD_CLOEXEC, 0));
	if (scan.copy >= 0)
		return 0;
	mesh_descriptor_close(scan.folder);
	return -errno;
}

int mesh_sockets_reserve(void)
{
	int ret = 0;

	pthread_mutex_lock(&scan.lock);
	if (!scan.users)
		ret = scan_open();
	scan.users += !ret;
	pthread_mutex_unlock(&scan.lock);
	return ret;
}

void mesh_sockets_release(void)
{
	pthread_mutex_lock(&scan.lock);
	if (!--scan.users) {
		mesh_descriptor_close(scan.copy);
		mesh_descriptor_close(scan.folder);
	}
	pthread_mutex_unlock(&scan.lock);
}

static bool entry_is_socket(const char *name)
{
	static const char prefix[] = "socket:";
	char target[sizeof(prefix) - 1];

	return readlinkat(scan.folder, name, target, sizeof(target)) == (ssize_t)sizeof(target) &&
	       !memcmp(target, prefix, sizeof(target));
}

/*
 * Returns 1 if @look returned true for the descriptor, 0 if not, or a negative errno. It duplicates
 * sockets only: closing any duplicate of a file releases the process's POSIX locks on that file.
 */
static int entry_visit(const char *name, bool (*look)(void *arg, int number, int copy), void *arg)
{
	int number = atoi(name);

	if (number == scan.copy || !entry_is_socket(name))
		return 0;
	if (dup3(number, scan.copy, O_CLOEXEC) >= 0)
		return look(arg, number, scan.copy);
	/* Also EBADF if the limit of open files has sunk below our own; or it was closed. */
	return fcntl(number, F_GETFD) < 0 ? 0 : -EMFILE;
}

static int folder_visit(bool (*look)(void *arg, int number, int copy), void *arg)
{
	_Alignas(struct dirent64) char list[LIST_BYTES];
	int count = 0, error = 0, ret;
	const struct dirent64 *entry;
	ssize_t size, i;

	if (lseek(scan.folder, 0, SEEK_SET) < 0)
		return -errno;
	while ((size = getdents64(scan.folder, list, sizeof(list))) > 0) {
		for (i = 0; i < size; i += entry->d_reclen) {
			entry = (const struct dirent64 *)(const void *)(list + i);
			ret = entry_visit(entry->d_name, look, arg);
			if (ret < 0)
				error = ret;
			else
				count += ret;
		}
	}
	if (size < 0)
		return -errno;
	return error ? error : count;
}

int mesh_sockets_visit(bool (*look)(void *arg, int number, int copy), void *arg)
{
	int ret = -EBADF;

	pthread_mutex_lock(&scan.lock);
	if (scan.users) {
		ret = folder_visit(look, arg);
		dup3(scan.folder, scan.copy, O_CLOEXEC); /* a copy would keep its socket open */
	}
	pthread_mutex_unlock(&scan.lock);
	return ret;
}

bool mesh_socket_name(int fd, bool peer, struct mesh_addr *address, uint16_t *port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int ret;

	ret = peer ? getpeername(fd, (struct sockaddr *)&name, &len)
		   : getsockname(fd, (struct sockaddr *)&name, &len);
	return !ret && !mesh_addr_from_sockaddr((struct sockaddr *)&name, len, address, port);
}

bool mesh_socket_destination(int fd, struct mesh_addr *address, uint16_t *port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	if (mesh_socket_name(fd, true, address, port))
		return true;
	/*
	 * Unlike getpeername(), this also works before the connection is made; it wants the very
	 * length, which is that of our own name.
	 */
	return !getsockname(fd, (struct sockaddr *)&name, &len) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &name, &len) &&
	       !mesh_addr_from_sockaddr((struct sockaddr *)&name, len, address, port);
}

/* ---- the table ----------------------------------------------------------------------------- */

static bool connection_note(void *arg, int number, int copy)
{
	struct mesh_socket_table *table = arg;
	struct mesh_socket_entry *entries, found = {.fd = number};

	/* The peer first: most sockets of a host process have none. */
	if (!mesh_socket_name(copy, true, &found.peer, &found.peer_port) ||
	    !mesh_socket_name(copy, false, &found.local, &found.local_port))
		return false;
	entries = mesh_array_room(table->entries, table->num, sizeof(*entries));
	if (!entries)
		return false;
	found.cookie = mesh_socket_cookie(copy);
	table->entries = entries;
	table->entries[table->num++] = found;
	return true;
}

static int address_compare(const struct mesh_addr *a, const struct mesh_addr *b)
{
	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	return memcmp(a->bytes, b->bytes, mesh_addr_size(a->family));
}

static int entry_compare(const void *a, const void *b)
{
	const struct mesh_socket_entry *one = a, *other = b;
	int order = address_compare(&one->peer, &other->peer);

	return order ? order : (int)one->peer_port - (int)other->peer_port;
}

void mesh_socket_table_take(struct mesh_socket_table *table, uint64_t now_ms)
{
	mesh_socket_table_free(table);
	mesh_sockets_visit(connection_note, table);
	if (table->num)
		qsort(table->entries, table->num, sizeof(*table->entries), entry_compare);
	table->taken_ms = now_ms;
}

void mesh_socket_table_free(struct mesh_socket_table *table)
{
	free(table->entries);
	*table = (struct mesh_socket_table){.entries = NULL};
}

/* The first entry that is not before @key. */
static size_t lower_bound(const struct mesh_socket_table *table,
			  const struct mesh_socket_entry *key)
{
	size_t low = 0, high = table->num, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (entry_compare(&table->entries[middle], key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct mesh_socket_entry *mesh_socket_table_find(const struct mesh_socket_table *table,
						       const struct mesh_addr *peer, uint16_t port,
						       size_t *num)
{
	struct mesh_socket_entry key = {.peer = *peer, .peer_port = port};
	size_t first = lower_bound(table, &key), end = first;

	while (end < table->num && !address_compare(&table->entries[end].peer, peer) &&
	       (!port || table->entries[end].peer_port == port))
		end++;
	*num = end - first;
	return &table->entries[first];
}
