/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider_sockets.c - the TCP sockets that libfabric's tcp providers do not expose: operations on
 * them, and facts about them, for which libfabric has no call.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/log.h"
#include "base/memory.h"
#include "fabric/endpoint.h"
#include "fabric/fence.h"
#include "fabric/poll.h"
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
/* Polls after a fence: the provider closes what was cut, and accepts what still waits. */
#define DRAIN_POLLS 8
/*
 * The longest wait until the provider has closed what was cut: rxm looks every 10 ms for
 * connections that have ended, and hands out one completion in each poll
 * (FI_OFI_RXM_CM_PROGRESS_INTERVAL, FI_OFI_RXM_COMP_PER_PROGRESS): 33 ms have been measured.
 */
#define DRAIN_MS 500

/* ---- the sockets of this process ------------------------------------------------------------ */

struct mesh_socket_entry {
	int fd; /* its owner may close it at any time */
	uint64_t cookie;
	/* Without a scope. No peer: family NONE. */
	struct mesh_addr local, peer;
	uint16_t local_port, peer_port;
	uint64_t received; /* bytes, ever, when unread_find() found it */
};

/*
 * What lists them. It is kept open, so that a fence works in a process that has run out of
 * descriptors. The lock is held only within this file, and inside of all others.
 */
static struct {
	pthread_mutex_t lock;
	int users;
	int folder; /* /proc/self/fd */
} scan = {.lock = PTHREAD_MUTEX_INITIALIZER};

int mesh_sockets_reserve(void)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int ret = 0;

	pthread_mutex_lock(&scan.lock);
	if (!scan.users)
		scan.folder = mesh_descriptor_hide(open("/proc/self/fd", flags));
	if (scan.folder < 0)
		ret = -errno;
	else
		scan.users++;
	pthread_mutex_unlock(&scan.lock);
	return ret;
}

void mesh_sockets_release(void)
{
	pthread_mutex_lock(&scan.lock);
	if (!--scan.users)
		mesh_descriptor_close(scan.folder);
	pthread_mutex_unlock(&scan.lock);
}

/* False if it is no socket with an IP address, or its owner closes it meanwhile. */
static bool entry_read(int fd, struct mesh_socket_entry *entry)
{
	struct sockaddr_storage name;
	struct sockaddr *named = (struct sockaddr *)&name;
	socklen_t len = sizeof(name);

	*entry = (struct mesh_socket_entry){.fd = fd, .cookie = mesh_socket_cookie(fd)};
	if (!entry->cookie || getsockname(fd, named, &len) ||
	    mesh_addr_from_sockaddr(named, len, &entry->local, &entry->local_port))
		return false;
	/*
	 * Unlike getpeername(), the option also works before the connection is made; it wants the
	 * very length, which is that of our own name.
	 */
	if (!getpeername(fd, named, &len) || !getsockopt(fd, SOL_SOCKET, SO_PEERNAME, named, &len))
		mesh_addr_from_sockaddr(named, len, &entry->peer, &entry->peer_port);
	return mesh_socket_cookie(fd) == entry->cookie;
}

static int entry_add(struct mesh_socket_table *table, const char *name)
{
	struct mesh_socket_entry *entries, entry;

	if (!isdigit((unsigned char)name[0]) || !entry_read(atoi(name), &entry))
		return 0;
	entries = mesh_array_room(table->entries, table->num, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	table->entries = entries;
	table->entries[table->num++] = entry;
	return 0;
}

static int folder_read(struct mesh_socket_table *table)
{
	_Alignas(struct dirent64) char list[LIST_BYTES];
	const struct dirent64 *entry;
	ssize_t size, i;
	int ret = 0;

	if (lseek(scan.folder, 0, SEEK_SET) < 0)
		return -errno;
	while (!ret && (size = getdents64(scan.folder, list, sizeof(list)))) {
		if (size < 0)
			return -errno;
		for (i = 0; i < size && !ret; i += entry->d_reclen) {
			entry = (const struct dirent64 *)(const void *)(list + i);
			ret = entry_add(table, entry->d_name);
		}
	}
	return ret;
}

/* Lists all sockets in @table, which is empty. It needs no descriptor. 0 or a negative errno. */
static int table_read(struct mesh_socket_table *table)
{
	int ret = -EBADF;

	pthread_mutex_lock(&scan.lock);
	if (scan.users)
		ret = folder_read(table);
	pthread_mutex_unlock(&scan.lock);
	return ret;
}

static void table_renew(struct mesh_socket_table *table, uint64_t now_ms)
{
	if (table->taken_ms && mesh_clock_elapsed_ms(table->taken_ms, now_ms) < MESH_SOCKETS_MS)
		return;
	mesh_socket_table_free(table);
	table_read(table);
	table->taken_ms = now_ms;
}

void mesh_socket_table_free(struct mesh_socket_table *table)
{
	free(table->entries);
	*table = (struct mesh_socket_table){.entries = NULL};
}

/* ---- those of one remote -------------------------------------------------------------------- */

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
	bool dialled = entry->peer_port == remote->flow->port;

	if (!dialled && entry->local_port != domain->port)
		return false; /* as most are: links read them often */
	return entry_joins(domain, remote->flow, entry) &&
	       (dialled || !port_is_anothers(domain, remote, entry->peer_port));
}

/*
 * Lists the remote's in @table, which is empty, also those that the provider is making: what waits
 * for one of them is sent otherwise as soon as the link works again. 0 or a negative errno.
 */
MESH_HOLDS(transmit)
static int remotes_list(const struct mesh_domain *domain, const struct mesh_remote *remote,
			struct mesh_socket_table *table)
{
	int ret = table_read(table);
	size_t i, num = 0;

	for (i = 0; i < table->num; i++) {
		if (entry_is_remotes(domain, remote, &table->entries[i]))
			table->entries[num++] = table->entries[i];
	}
	table->num = num;
	return ret;
}

/* ---- the fence of one remote ---------------------------------------------------------------- */

/* Those that hold bytes which the provider has not read. */
static void unread_list(struct mesh_domain *domain, struct mesh_remote *remote,
			struct mesh_socket_table *unread)
{
	struct mesh_socket_entry *entry;
	size_t i, num = 0;
	uint32_t bytes;

	mesh_transmit_lock(domain);
	remotes_list(domain, remote, unread);
	mesh_transmit_unlock(domain);
	for (i = 0; i < unread->num; i++) {
		entry = &unread->entries[i];
		if (mesh_tcp_received(entry->fd, &entry->received, &bytes) && bytes)
			unread->entries[num++] = *entry;
	}
	unread->num = num;
}

/* By its owner, who may have used the number again. */
static bool entry_is_closed(const struct mesh_socket_entry *entry)
{
	return mesh_socket_cookie(entry->fd) != entry->cookie;
}

/* True if somebody has read what had come over the connection then, or closed it. */
static bool entry_is_read(const struct mesh_socket_entry *entry)
{
	uint64_t received;
	uint32_t unread;

	if (!mesh_tcp_received(entry->fd, &received, &unread) || !unread)
		return true;
	if (received >= entry->received + STREAM_END + unread)
		return true;
	return entry_is_closed(entry); /* last: it may happen meanwhile */
}

static bool all_are(const struct mesh_socket_table *table,
		    bool (*is)(const struct mesh_socket_entry *entry))
{
	size_t i;

	for (i = 0; i < table->num && is(&table->entries[i]); i++)
		continue;
	return i == table->num;
}

static void unread_await(struct mesh_domain *domain, struct mesh_remote *remote)
{
	uint64_t begin_ms = mesh_clock_ms();
	struct mesh_socket_table unread = {.num = 0};

	unread_list(domain, remote, &unread);
	while (!all_are(&unread, entry_is_read) &&
	       mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms()) < MESH_FENCE_MS) {
		if (!mesh_domain_poll(domain))
			sched_yield(); /* another thread polls for us */
	}
	mesh_socket_table_free(&unread);
}

/*
 * The disconnect empties the socket's queue at once, under the kernel's lock; the shutdown wakes
 * the provider, which then closes the connection. Until then the number is this socket's: the
 * provider only closes one while it polls or posts, which needs one of the two locks.
 */
static int sockets_cut(struct mesh_domain *domain, struct mesh_remote *remote,
		       struct mesh_socket_table *cut)
{
	struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
	size_t i;
	int ret;

	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
	ret = remotes_list(domain, remote, cut);
	for (i = 0; i < cut->num; i++) {
		if (entry_is_closed(&cut->entries[i]))
			continue;
		connect(cut->entries[i].fd, &unspecified, sizeof(unspecified));
		shutdown(cut->entries[i].fd, SHUT_RDWR); /* fails with ENOTCONN, but wakes it */
	}
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
	return ret;
}

/* All comms with a peer may try to cut it, and a relay again and again. */
static void failure_warn(struct mesh_domain *domain, struct mesh_flow *flow, const char *theirs,
			 int error)
{
	char more[MESH_LOG_LIMIT_TEXT_MAX];

	mesh_domain_lock(domain);
	if (!mesh_log_limit_pass(&flow->uncut, 1, mesh_clock_ms(), more))
		theirs = NULL;
	mesh_domain_unlock(domain);
	if (theirs)
		mesh_warn("cannot cut the connection with %s: %s; what NCCL has over it fails, "
			  "because a late message may reach memory that is in use for something "
			  "else%s",
			  theirs, strerror(-error), more);
}

static void cut_await(struct mesh_domain *domain, const struct mesh_socket_table *cut,
		      const char *theirs)
{
	/* Another thread may be in a poll that began before the fence: one more. */
	uint64_t until = atomic_load(&domain->polls) + DRAIN_POLLS + 1;
	uint64_t begin_ms = mesh_clock_ms();
	bool closed = false, polled;

	while (!closed || atomic_load(&domain->polls) < until) {
		polled = mesh_domain_poll(domain);
		if (!polled)
			sched_yield(); /* that thread polls for us */
		closed = closed || all_are(cut, entry_is_closed);
		/* If this thread has the poll, a few more turns are the end of it. */
		if ((closed && polled) || mesh_clock_elapsed_ms(begin_ms, mesh_clock_ms()) <
						  (closed ? DRAIN_MS + MESH_ANSWER_MS : DRAIN_MS))
			continue;
		mesh_warn("%s: the provider %s the connection with %s that was cut; a late message "
			  "may reach memory that is in use for something else",
			  domain->nic->netdev,
			  closed ? "could not be polled for what had arrived over"
				 : "has not closed",
			  theirs);
		return;
	}
}

int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct mesh_socket_table cut = {.num = 0};
	char theirs[MESH_ADDR_TEXT_MAX];
	int ret;

	mesh_addr_text(&remote->flow->address, theirs);
	unread_await(domain, remote);
	ret = sockets_cut(domain, remote, &cut);
	if (ret) {
		failure_warn(domain, remote->flow, theirs, ret);
	} else {
		mesh_info("cut %zu connection%s with %s, so that nothing late arrives", cut.num,
			  cut.num == 1 ? "" : "s", theirs);
		cut_await(domain, &cut, theirs);
	}
	mesh_socket_table_free(&cut);
	return ret;
}

/* ---- facts about them ----------------------------------------------------------------------- */

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

int mesh_remote_sockets_look(struct mesh_socket_table *table, struct mesh_domain *domain,
			     const struct mesh_remote *remote, struct mesh_tcp_look *looks,
			     uint64_t now_ms)
{
	const struct mesh_socket_entry *entry;
	int num = 0;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return 0;
	table_renew(table, now_ms);
	mesh_transmit_lock(domain);
	for (entry = table->entries; entry < table->entries + table->num; entry++) {
		if (num == MESH_REMOTE_SOCKETS_MAX || !entry_is_remotes(domain, remote, entry))
			continue;
		looks[num].data = true;
		/* The provider may have closed it, and the number may have been reused. */
		if (!mesh_tcp_look(entry->fd, &looks[num]) && looks[num].cookie == entry->cookie)
			num++;
	}
	mesh_transmit_unlock(domain);
	return num;
}

/* ---- limiting the handshake ----------------------------------------------------------------- */

/* Returns false if that is not the provider's listening socket. */
static bool listener_limit(const struct mesh_domain *domain, const struct mesh_socket_entry *entry)
{
	const struct timeval limit = {.tv_usec = HANDSHAKE_LIMIT_US};
	socklen_t len = sizeof(int);
	int listening = 0;

	if (!entry_is_local(domain, entry) || entry->local_port != domain->port ||
	    getsockopt(entry->fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) || !listening)
		return false;
	/* On Linux accepted connections inherit the limit. */
	return !setsockopt(entry->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void mesh_handshakes_limit(struct mesh_domain *domain)
{
	struct mesh_socket_table table = {.num = 0};
	bool limited = false;
	size_t i;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	table_read(&table);
	for (i = 0; i < table.num; i++)
		limited |= listener_limit(domain, &table.entries[i]);
	mesh_socket_table_free(&table);
	if (!limited)
		mesh_info("%s: cannot find the provider's listening socket; an unknown client of "
			  "port %u can block traffic",
			  domain->nic->netdev, domain->port);
}
