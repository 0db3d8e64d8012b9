/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider_sockets.c - the TCP sockets that libfabric's tcp providers do not expose: operations on
 * them, and facts about them, for which libfabric has no call.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "fabric/provider_sockets.h"
#include "system/tcp_look.h"

/*
 * The longest time that an unknown client which stops in the middle of libfabric's handshake may
 * block the endpoint: the provider reads the handshake with a blocking receive, from inside
 * fi_cq_read() (net of 1.17, xnet_cm.c:92; tcp of 2.6, xnet_cm.c:95). A peer sends its handshake in
 * one piece.
 */
#define HANDSHAKE_LIMIT_US 250000

/* The ends of a TCP connection between the local NIC and the remote's. */
struct ports {
	uint16_t local;
	uint16_t peer;
	uint16_t endpoint; /* of the remote's endpoint */
};

/* The most connections between two addresses, including those of other processes. */
#define FOUND_MAX 32

struct found {
	struct mesh_remote_socket socket;
	struct ports ports;
};

/* One pass over all sockets of the process. */
struct visit {
	struct mesh_domain *domain;
	const struct mesh_remote *remote;
	int number;    /* descriptor of the socket; the callback gets a duplicate of it */
	uint16_t port; /* the result of a search for a port */
	struct found *found;
	int num_found;
};

static bool socket_name(int fd, bool peer, struct mesh_addr *address, uint16_t *port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int ret;

	ret = peer ? getpeername(fd, (struct sockaddr *)&name, &len)
		   : getsockname(fd, (struct sockaddr *)&name, &len);
	return !ret && !mesh_addr_from_sockaddr((struct sockaddr *)&name, len, address, port);
}

/* True for a socket that is bound to the domain's NIC. */
static bool socket_is_local(const struct mesh_domain *domain, int fd, uint16_t *port)
{
	struct mesh_addr local;

	if (!socket_name(fd, false, &local, port))
		return false;
	local.scope_id = domain->nic->source.scope_id;
	return mesh_addr_equal(&local, &domain->nic->source);
}

static bool remote_address(const struct mesh_remote *remote, struct mesh_addr *address,
			   uint16_t *port)
{
	return !mesh_addr_from_sockaddr((const struct sockaddr *)remote->name, remote->name_len,
					address, port);
}

/* True for a connection with the remote's address; other processes may share it. */
static bool socket_ports(const struct visit *visit, int fd, struct ports *ports)
{
	struct mesh_addr peer, theirs;

	if (!remote_address(visit->remote, &theirs, &ports->endpoint) ||
	    !socket_is_local(visit->domain, fd, &ports->local) ||
	    !socket_name(fd, true, &peer, &ports->peer))
		return false;
	peer.scope_id = theirs.scope_id;
	return mesh_addr_equal(&peer, &theirs);
}

static bool entry_is_socket(int dir, const char *name)
{
	static const char prefix[] = "socket:";
	char target[sizeof(prefix) - 1];

	return readlinkat(dir, name, target, sizeof(target)) == (ssize_t)sizeof(target) &&
	       !memcmp(target, prefix, sizeof(target));
}

/*
 * Calls @look for every socket of the process, each time with a duplicate, so that @look examines
 * and changes the same socket even if its owner closes it meanwhile. It duplicates sockets only:
 * closing any duplicate of a file releases the process's POSIX locks on that file.
 *
 * Returns how often @look returned true, or a negative errno if it could not visit all sockets.
 */
static int sockets_visit(struct visit *visit, bool (*look)(struct visit *visit, int fd))
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0, error = 0, copy;
	struct dirent *entry;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (!entry_is_socket(dirfd(dir), entry->d_name))
			continue;
		visit->number = atoi(entry->d_name);
		copy = fcntl(visit->number, F_DUPFD_CLOEXEC, 0);
		if (copy < 0) {
			if (errno != EBADF) /* EBADF: it was closed meanwhile */
				error = -errno;
			continue;
		}
		count += look(visit, copy);
		close(copy);
	}
	closedir(dir);
	return error ? error : count;
}

/* ---- cutting off one peer ------------------------------------------------------------------ */

/* True if another remote, which is not lost, has reported that it connected from this port. */
MESH_HOLDS(transmit)
static bool port_is_anothers(const struct visit *visit, uint16_t port)
{
	const struct mesh_remote *remote = visit->remote, *other;

	mesh_transmit_assert_locked(visit->domain);
	LIST_FOREACH(other, &visit->domain->remotes, entry) {
		if (!other->lost && other->dialled_from == port &&
		    (other->name_len != remote->name_len ||
		     memcmp(other->name, remote->name, remote->name_len) != 0))
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
static bool ports_are_remotes(const struct visit *visit, const struct ports *ports)
{
	if (ports->peer == ports->endpoint)
		return true;
	return ports->local == visit->domain->port && !port_is_anothers(visit, ports->peer);
}

MESH_HOLDS(transmit)
static bool socket_is_remotes(const struct visit *visit, int fd)
{
	struct ports ports;

	return socket_ports(visit, fd, &ports) && ports_are_remotes(visit, &ports);
}

/*
 * The disconnect empties the socket's queue at once, under the kernel's lock; the shutdown wakes
 * the provider, which then closes the connection.
 */
MESH_HOLDS(transmit)
static bool socket_cut(struct visit *visit, int fd)
{
	struct sockaddr unspecified = {.sa_family = AF_UNSPEC};
	bool cut;

	if (!socket_is_remotes(visit, fd))
		return false;
	cut = !connect(fd, &unspecified, sizeof(unspecified));
	shutdown(fd, SHUT_RDWR); /* fails with ENOTCONN, but wakes the provider */
	return cut;
}

int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct visit visit = {.domain = domain, .remote = remote};
	int count;

	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
	count = sockets_visit(&visit, socket_cut);
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
	return count;
}

static bool dialled_port_find(struct visit *visit, int fd)
{
	struct ports ports;

	if (!socket_ports(visit, fd, &ports) || ports.peer != ports.endpoint ||
	    ports.local == visit->domain->port)
		return false;
	visit->port = ports.local;
	return true;
}

uint16_t mesh_remote_dialled_port(struct mesh_domain *domain, struct mesh_remote *remote)
{
	struct visit visit = {.domain = domain, .remote = remote};

	if (domain->provider != MESH_PROVIDER_VERBS_RXM)
		sockets_visit(&visit, dialled_port_find);
	return visit.port;
}

void mesh_remote_dialled_from(struct mesh_domain *domain, struct mesh_remote *remote, uint16_t port)
{
	mesh_transmit_lock(domain);
	remote->dialled_from = port;
	mesh_transmit_unlock(domain);
}

/* ---- reading their state ----------------------------------------------------------------- */

static bool connection_note(struct visit *visit, int fd)
{
	struct found *found = &visit->found[visit->num_found];

	if (visit->num_found == FOUND_MAX || !socket_ports(visit, fd, &found->ports))
		return false;
	found->socket.fd = visit->number;
	found->socket.cookie = mesh_socket_cookie(fd);
	visit->num_found++;
	return true;
}

void mesh_remote_sockets_find(struct mesh_domain *domain, const struct mesh_remote *remote,
			      struct mesh_remote_sockets *sockets)
{
	struct found found[FOUND_MAX];
	struct visit visit = {.domain = domain, .remote = remote, .found = found};
	int i;

	sockets->num = 0;
	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	/* The visit does not delay posting or polling: only the choice takes the lock. */
	sockets_visit(&visit, connection_note);
	mesh_transmit_lock(domain);
	for (i = 0; i < visit.num_found && sockets->num < MESH_REMOTE_SOCKETS_MAX; i++) {
		if (ports_are_remotes(&visit, &found[i].ports))
			sockets->sockets[sockets->num++] = found[i].socket;
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

/* ---- limiting the handshake ---------------------------------------------------------------- */

static bool listener_limit(struct visit *visit, int fd)
{
	struct timeval limit = {.tv_usec = HANDSHAKE_LIMIT_US};
	socklen_t len = sizeof(int);
	int listening = 0;
	uint16_t port;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) || !listening)
		return false;
	if (!socket_is_local(visit->domain, fd, &port) || port != visit->domain->port)
		return false;
	/* On Linux accepted connections inherit the limit. */
	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void mesh_handshakes_limit(struct mesh_domain *domain)
{
	struct visit visit = {.domain = domain};

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	if (sockets_visit(&visit, listener_limit) < 1)
		mesh_info("%s: cannot find the provider's listening socket; an unknown client of "
			  "port %u can block traffic",
			  domain->nic->netdev, domain->port);
}
