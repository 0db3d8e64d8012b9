/* SPDX-License-Identifier: Apache-2.0 */
/* socket_table.c - all TCP connections of this process. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/array.h"
#include "fabric/socket_table.h"
#include "system/tcp_look.h"

static bool entry_is_socket(int dir, const char *name)
{
	static const char prefix[] = "socket:";
	char target[sizeof(prefix) - 1];

	return readlinkat(dir, name, target, sizeof(target)) == (ssize_t)sizeof(target) &&
	       !memcmp(target, prefix, sizeof(target));
}

/*
 * It duplicates sockets only: closing any duplicate of a file releases the process's POSIX locks on
 * that file.
 */
int mesh_sockets_visit(bool (*look)(void *arg, int number, int copy), void *arg)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0, error = 0, number, copy;
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (!entry_is_socket(dirfd(dir), entry->d_name))
			continue;
		number = atoi(entry->d_name);
		copy = fcntl(number, F_DUPFD_CLOEXEC, 0);
		if (copy < 0) {
			if (errno != EBADF) /* EBADF: it was closed meanwhile */
				error = -errno;
			continue;
		}
		count += look(arg, number, copy);
		close(copy);
	}
	closedir(dir);
	return error ? error : count;
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
