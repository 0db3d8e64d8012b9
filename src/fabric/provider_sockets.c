/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider_sockets.c - the TCP sockets that libfabric's tcp providers do not expose: operations on
 * them, and facts about them, for which libfabric has no call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/memory.h"
#include "fabric/provider_sockets.h"
#include "system/tcp_look.h"

/*
 * The longest time that an unknown client which stops in the middle of libfabric's handshake may
 * block the endpoint: the provider reads the handshake with a blocking receive, from inside
 * fi_cq_read() (net of 1.17, xnet_cm.c:92; tcp of 2.6, xnet_cm.c:95). A peer sends its handshake in
 * one piece.
 */
#define HANDSHAKE_LIMIT_US 250000
/* What the kernel counts for the end of a stream among the bytes received, and not as unread. */
#define STREAM_END 2
/* Bytes of one read of the folder. */
#define LIST_BYTES 4096

/* ---- the sockets of this process ------------------------------------------------------------ */

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

/*
 * Calls @look for every socket of the process, each time with its number and with a duplicate, so
 * that @look examines and changes the same socket even if its owner closes it meanwhile. It needs
 * no further descriptor, and no memory. Threads wait for each other; @look visits nothing.
 *
 * Returns how often @look returned true, or a negative errno if it could not visit all sockets.
 */
static int sockets_visit(bool (*look)(void *arg, int number, int copy), void *arg)
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

/* The local address of a socket, or that of its peer; false if it has none. */
static bool socket_name(int fd, bool peer, struct mesh_addr *address, uint16_t *port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int ret;

	ret = peer ? getpeername(fd, (struct sockaddr *)&name, &len)
		   : getsockname(fd, (struct sockaddr *)&name, &len);
	return !ret && !mesh_addr_from_sockaddr((struct sockaddr *)&name, len, address, port);
}

/* The same for the other end of a TCP socket, also while the connection is being made. */
static bool socket_destination(int fd, struct mesh_addr *address, uint16_t *port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	if (socket_name(fd, true, address, port))
		return true;
	/*
	 * Unlike getpeername(), this also works before the connection is made; it wants the very
	 * length, which is that of our own name.
	 */
	return !getsockname(fd, (struct sockaddr *)&name, &len) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERNAME, &name, &len) &&
	       !mesh_addr_from_sockaddr((struct sockaddr *)&name, len, address, port);
}

/* ---- the table ------------------------------------------------------------------------------ */

static bool connection_note(void *arg, int number, int copy)
{
	struct mesh_socket_table *table = arg;
	struct mesh_socket_entry *entries, found = {.fd = number};

	/* The peer first: most sockets of a host process have none. */
	if (!socket_name(copy, true, &found.peer, &found.peer_port) ||
	    !socket_name(copy, false, &found.local, &found.local_port))
		return false;
	entries = mesh_array_room(table->entries, table->num, sizeof(*entries));
	if (!entries)
		return false;
	found.cookie = mesh_socket_cookie(copy);
	table->entries = entries;
	table->entries[table->num++] = found;
	return true;
}

static void table_renew(struct mesh_socket_table *table, uint64_t now_ms)
{
	if (table->taken_ms && mesh_clock_elapsed_ms(table->taken_ms, now_ms) < MESH_SOCKETS_MS)
		return;
	mesh_socket_table_free(table);
	sockets_visit(connection_note, table);
	table->taken_ms = now_ms;
}

void mesh_socket_table_free(struct mesh_socket_table *table)
{
	free(table->entries);
	*table = (struct mesh_socket_table){.entries = NULL};
}

/* ---- cutting off one peer ------------------------------------------------------------------- */

/* One pass over all sockets of the process. */
struct visit {
	struct mesh_domain *domain;
	const struct mesh_remote *remote;
	struct mesh_found_sockets *found;
};

/* True for a socket that is bound to the domain's NIC. */
static bool entry_is_local(const struct mesh_domain *domain, const struct mesh_socket_entry *entry)
{
	struct mesh_addr local = entry->local;

	local.scope_id = domain->nic->source.scope_id;
	return mesh_addr_equal(&local, &domain->nic->source);
}

/* True for a connection between the domain's NIC and the flow's. */
static bool entry_joins(const struct mesh_domain *domain, const struct mesh_flow *flow,
			const struct mesh_socket_entry *entry)
{
	struct mesh_addr peer = entry->peer;

	peer.scope_id = flow->address.scope_id;
	return mesh_addr_equal(&peer, &flow->address) && entry_is_local(domain, entry);
}

/* True if another remote, which is not lost, has reported that it connected from this port. */
MESH_HOLDS(transmit)
static bool port_is_anothers(const struct mesh_domain *domain, const struct mesh_remote *remote,
			     uint16_t port)
{
	const struct mesh_remote *other;

	mesh_transmit_assert_locked(domain);
	LIST_FOREACH(other, &domain->remotes, entry) {
		if (!other->lost && other->dialled_from == port && other->flow != remote->flow)
			return true;
	}
	return false;
}

/*
 * True for a connection between the local endpoint and the remote's, opened by either side. The
 * port of a connection that the other side opened does not identify its process; ports that other
 * processes at the same address have reported as theirs are excluded.
 */
MESH_HOLDS(transmit)
static bool entry_is_remotes(const struct mesh_domain *domain, const struct mesh_remote *remote,
			     const struct mesh_socket_entry *entry)
{
	if (!entry_joins(domain, remote->flow, entry))
		return false;
	return entry->peer_port == remote->flow->port ||
	       (entry->local_port == domain->port &&
		!port_is_anothers(domain, remote, entry->peer_port));
}

/*
 * Also for one that the provider is making: what waits for it is sent otherwise as soon as the link
 * works again.
 */
MESH_HOLDS(transmit)
static bool socket_is_remotes(const struct visit *visit, int fd)
{
	struct mesh_socket_entry entry = {.fd = fd};

	return socket_name(fd, false, &entry.local, &entry.local_port) &&
	       socket_destination(fd, &entry.peer, &entry.peer_port) &&
	       entry_is_remotes(visit->domain, visit->remote, &entry);
}

static void socket_note(struct mesh_found_sockets *found, int number, int fd, uint64_t received)
{
	if (found->num < MESH_FOUND_SOCKETS_MAX)
		found->sockets[found->num] =
			(struct mesh_remote_socket){number, mesh_socket_cookie(fd), received};
	found->num++;
}

/*
 * The disconnect empties the socket's queue at once, under the kernel's lock; the shutdown wakes
 * the provider, which then closes the connection.
 */
MESH_HOLDS(transmit)
static bool socket_cut(void *arg, int number, int fd)
{
	struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
	const struct visit *visit = arg;
	int ret;

	if (!socket_is_remotes(visit, fd))
		return false;
	socket_note(visit->found, number, fd, 0);
	ret = connect(fd, &unspecified, sizeof(unspecified));
	shutdown(fd, SHUT_RDWR); /* fails with ENOTCONN, but wakes the provider */
	return !ret;
}

int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote,
		       struct mesh_found_sockets *cut)
{
	struct visit visit = {.domain = domain, .remote = remote, .found = cut};
	int count;

	cut->num = 0;
	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
	count = sockets_visit(socket_cut, &visit);
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
	return count;
}

bool mesh_cut_sockets_are_closed(const struct mesh_found_sockets *cut)
{
	int i;

	if (cut->num > MESH_FOUND_SOCKETS_MAX)
		return false;
	for (i = 0; i < cut->num; i++) {
		if (mesh_socket_cookie(cut->sockets[i].fd) == cut->sockets[i].cookie)
			return false;
	}
	return true;
}

/* ---- what they hold ------------------------------------------------------------------------- */

MESH_HOLDS(transmit)
static bool socket_unread(void *arg, int number, int fd)
{
	const struct visit *visit = arg;
	uint64_t received;
	uint32_t unread;

	if (socket_is_remotes(visit, fd) && mesh_tcp_received(fd, &received, &unread) && unread)
		socket_note(visit->found, number, fd, received);
	return false;
}

void mesh_sockets_unread(struct mesh_domain *domain, struct mesh_remote *remote,
			 struct mesh_found_sockets *unread)
{
	struct visit visit = {.domain = domain, .remote = remote, .found = unread};

	unread->num = 0;
	mesh_transmit_lock(domain);
	sockets_visit(socket_unread, &visit);
	mesh_transmit_unlock(domain);
}

/* True if somebody has read what had come over the connection then, or closed it. */
static bool socket_is_read(const struct mesh_remote_socket *socket)
{
	uint64_t received;
	uint32_t unread;

	if (!mesh_tcp_received(socket->fd, &received, &unread) || !unread)
		return true;
	if (received >= socket->received + STREAM_END + unread)
		return true;
	/* Last: the provider may close it meanwhile, and the number may be used again. */
	return mesh_socket_cookie(socket->fd) != socket->cookie;
}

bool mesh_unread_is_read(const struct mesh_found_sockets *unread)
{
	int i;

	for (i = 0; i < unread->num && i < MESH_FOUND_SOCKETS_MAX; i++) {
		if (!socket_is_read(&unread->sockets[i]))
			return false;
	}
	return true;
}

uint16_t mesh_remote_dialled_port(struct mesh_socket_table *table, const struct mesh_domain *domain,
				  const struct mesh_remote *remote, uint64_t now_ms)
{
	const struct mesh_flow *flow = remote->flow;
	const struct mesh_socket_entry *entry;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return 0;
	table_renew(table, now_ms);
	for (entry = table->entries; entry < table->entries + table->num; entry++) {
		if (entry->peer_port == flow->port && entry->local_port != domain->port &&
		    entry_joins(domain, flow, entry))
			return entry->local_port;
	}
	return 0;
}

void mesh_remote_dialled_from(struct mesh_domain *domain, struct mesh_remote *remote, uint16_t port)
{
	mesh_transmit_lock(domain);
	remote->dialled_from = port;
	mesh_transmit_unlock(domain);
}

/* ---- reading their state -------------------------------------------------------------------- */

void mesh_remote_sockets_find(struct mesh_socket_table *table, struct mesh_domain *domain,
			      const struct mesh_remote *remote, struct mesh_remote_sockets *sockets,
			      uint64_t now_ms)
{
	const struct mesh_socket_entry *entry;

	sockets->num = 0;
	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	table_renew(table, now_ms);
	mesh_transmit_lock(domain);
	for (entry = table->entries; entry < table->entries + table->num; entry++) {
		if (sockets->num < MESH_REMOTE_SOCKETS_MAX &&
		    entry_is_remotes(domain, remote, entry))
			sockets->sockets[sockets->num++] = (struct mesh_remote_socket){
				.fd = entry->fd, .cookie = entry->cookie};
	}
	mesh_transmit_unlock(domain);
}

int mesh_remote_sockets_look(const struct mesh_remote_sockets *sockets, struct mesh_tcp_look *looks)
{
	int i, num = 0;

	for (i = 0; i < sockets->num; i++) {
		looks[num].data = true;
		/* The provider may have closed it, and the number may have been reused. */
		if (!mesh_tcp_look(sockets->sockets[i].fd, &looks[num]) &&
		    looks[num].cookie == sockets->sockets[i].cookie)
			num++;
	}
	return num;
}

/* ---- limiting the handshake ----------------------------------------------------------------- */

static bool listener_limit(void *arg, int number, int fd)
{
	const struct mesh_domain *domain = arg;
	struct timeval limit = {.tv_usec = HANDSHAKE_LIMIT_US};
	struct mesh_socket_entry entry = {.fd = fd};
	socklen_t len = sizeof(int);
	int listening = 0;

	(void)number;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) || !listening ||
	    !socket_name(fd, false, &entry.local, &entry.local_port) ||
	    !entry_is_local(domain, &entry) || entry.local_port != domain->port)
		return false;
	/* On Linux accepted connections inherit the limit. */
	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void mesh_handshakes_limit(struct mesh_domain *domain)
{
	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	if (sockets_visit(listener_limit, domain) < 1)
		mesh_info("%s: cannot find the provider's listening socket; an unknown client of "
			  "port %u can block traffic",
			  domain->nic->netdev, domain->port);
}
