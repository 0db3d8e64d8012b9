/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider_sockets.c - the TCP sockets that libfabric's tcp providers do not expose: operations on
 * them, and facts about them, for which libfabric has no call.
 */
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

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
/* What the kernel counts for the end of a stream among the bytes received, and not as unread. */
#define STREAM_END 2

/* The ends of a TCP connection between the local NIC and the remote's. */
struct ports {
	uint16_t local;
	uint16_t peer;
	uint16_t endpoint; /* of the remote's endpoint */
};

/* One pass over all sockets of the process. */
struct visit {
	struct mesh_domain *domain;
	const struct mesh_remote *remote;
	struct mesh_cut_sockets *cut;
	struct mesh_unread_sockets *unread;
};

/* True for a socket that is bound to the domain's NIC. */
static bool socket_is_local(const struct mesh_domain *domain, int fd, uint16_t *port)
{
	struct mesh_addr local;

	if (!mesh_socket_name(fd, false, &local, port))
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

/*
 * True for a connection with the remote's address, also for one that the provider is making: what
 * waits for it is sent otherwise as soon as the link works again. Other processes may share it.
 */
static bool socket_ports(const struct visit *visit, int fd, struct ports *ports)
{
	struct mesh_addr peer, theirs;

	if (!remote_address(visit->remote, &theirs, &ports->endpoint) ||
	    !socket_is_local(visit->domain, fd, &ports->local) ||
	    !mesh_socket_destination(fd, &peer, &ports->peer))
		return false;
	peer.scope_id = theirs.scope_id;
	return mesh_addr_equal(&peer, &theirs);
}

/* ---- cutting off one peer ------------------------------------------------------------------ */

/* True if another remote, which is not lost, has reported that it connected from this port. */
MESH_HOLDS(transmit)
static bool port_is_anothers(const struct mesh_domain *domain, const struct mesh_remote *remote,
			     uint16_t port)
{
	const struct mesh_remote *other;

	mesh_transmit_assert_locked(domain);
	LIST_FOREACH(other, &domain->remotes, entry) {
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
static bool ports_are_remotes(const struct mesh_domain *domain, const struct mesh_remote *remote,
			      const struct ports *ports)
{
	if (ports->peer == ports->endpoint)
		return true;
	return ports->local == domain->port && !port_is_anothers(domain, remote, ports->peer);
}

MESH_HOLDS(transmit)
static bool socket_is_remotes(const struct visit *visit, int fd)
{
	struct ports ports;

	return socket_ports(visit, fd, &ports) &&
	       ports_are_remotes(visit->domain, visit->remote, &ports);
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
	bool cut;

	if (!socket_is_remotes(visit, fd))
		return false;
	if (visit->cut->num < MESH_CUT_SOCKETS_MAX)
		visit->cut->sockets[visit->cut->num] =
			(struct mesh_remote_socket){number, mesh_socket_cookie(fd)};
	visit->cut->num++;
	cut = !connect(fd, &unspecified, sizeof(unspecified));
	shutdown(fd, SHUT_RDWR); /* fails with ENOTCONN, but wakes the provider */
	return cut;
}

int mesh_sockets_fence(struct mesh_domain *domain, struct mesh_remote *remote,
		       struct mesh_cut_sockets *cut)
{
	struct visit visit = {.domain = domain, .remote = remote, .cut = cut};
	int count;

	cut->num = 0;
	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
	count = mesh_sockets_visit(socket_cut, &visit);
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
	return count;
}

bool mesh_cut_sockets_are_closed(const struct mesh_cut_sockets *cut)
{
	int i;

	if (cut->num > MESH_CUT_SOCKETS_MAX)
		return false;
	for (i = 0; i < cut->num; i++) {
		if (mesh_socket_cookie(cut->sockets[i].fd) == cut->sockets[i].cookie)
			return false;
	}
	return true;
}

/* ---- what they hold ------------------------------------------------------------------------ */

MESH_HOLDS(transmit)
static bool socket_unread(void *arg, int number, int fd)
{
	const struct visit *visit = arg;
	struct mesh_unread_sockets *list = visit->unread;
	uint64_t received;
	uint32_t unread;

	if (list->num == MESH_CUT_SOCKETS_MAX || !socket_is_remotes(visit, fd) ||
	    !mesh_tcp_received(fd, &received, &unread) || !unread)
		return false;
	list->sockets[list->num].socket =
		(struct mesh_remote_socket){number, mesh_socket_cookie(fd)};
	list->sockets[list->num++].received = received;
	return true;
}

void mesh_sockets_unread(struct mesh_domain *domain, struct mesh_remote *remote,
			 struct mesh_unread_sockets *unread)
{
	struct visit visit = {.domain = domain, .remote = remote, .unread = unread};

	unread->num = 0;
	mesh_transmit_lock(domain);
	mesh_sockets_visit(socket_unread, &visit);
	mesh_transmit_unlock(domain);
}

/* True if somebody has read the first @until bytes that came over the connection, or closed it. */
static bool socket_is_read(const struct mesh_remote_socket *socket, uint64_t until)
{
	uint64_t received;
	uint32_t unread;

	if (!mesh_tcp_received(socket->fd, &received, &unread) || !unread)
		return true;
	if (received >= until + STREAM_END + unread)
		return true;
	/* Last: the provider may close it meanwhile, and the number may be used again. */
	return mesh_socket_cookie(socket->fd) != socket->cookie;
}

bool mesh_unread_is_read(const struct mesh_unread_sockets *unread)
{
	int i;

	for (i = 0; i < unread->num; i++) {
		if (!socket_is_read(&unread->sockets[i].socket, unread->sockets[i].received))
			return false;
	}
	return true;
}

/* True for a connection of the domain's NIC. */
static bool entry_is_local(const struct mesh_domain *domain, const struct mesh_socket_entry *entry)
{
	struct mesh_addr local = entry->local;

	local.scope_id = domain->nic->source.scope_id;
	return mesh_addr_equal(&local, &domain->nic->source);
}

uint16_t mesh_remote_dialled_port(const struct mesh_socket_table *table,
				  const struct mesh_domain *domain,
				  const struct mesh_remote *remote)
{
	const struct mesh_socket_entry *entry;
	struct mesh_addr address;
	uint16_t port;
	size_t num;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM || !remote_address(remote, &address, &port))
		return 0;
	for (entry = mesh_socket_table_find(table, &address, port, &num); num; num--, entry++) {
		if (entry->local_port != domain->port && entry_is_local(domain, entry))
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

/* ---- reading their state ----------------------------------------------------------------- */

void mesh_remote_sockets_find(const struct mesh_socket_table *table, struct mesh_domain *domain,
			      const struct mesh_remote *remote, struct mesh_remote_sockets *sockets)
{
	const struct mesh_socket_entry *entry;
	struct mesh_addr address;
	struct ports ports;
	size_t num;

	sockets->num = 0;
	if (domain->provider == MESH_PROVIDER_VERBS_RXM ||
	    !remote_address(remote, &address, &ports.endpoint))
		return;
	entry = mesh_socket_table_find(table, &address, 0, &num);
	mesh_transmit_lock(domain);
	for (; num && sockets->num < MESH_REMOTE_SOCKETS_MAX; num--, entry++) {
		ports.local = entry->local_port;
		ports.peer = entry->peer_port;
		if (entry_is_local(domain, entry) && ports_are_remotes(domain, remote, &ports))
			sockets->sockets[sockets->num++] =
				(struct mesh_remote_socket){entry->fd, entry->cookie};
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

static bool listener_limit(void *arg, int number, int fd)
{
	const struct visit *visit = arg;
	struct timeval limit = {.tv_usec = HANDSHAKE_LIMIT_US};
	socklen_t len = sizeof(int);
	int listening = 0;
	uint16_t port;

	(void)number;
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
	if (mesh_sockets_visit(listener_limit, &visit) < 1)
		mesh_info("%s: cannot find the provider's listening socket; an unknown client of "
			  "port %u can block traffic",
			  domain->nic->netdev, domain->port);
}
