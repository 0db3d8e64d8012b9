/* SPDX-License-Identifier: Apache-2.0 */
/*
 * provider_sockets.c - the TCP sockets that libfabric's tcp providers keep to themselves. Two
 * things have to be done to them that libfabric has no call for.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <mesh/base/log.h>
#include <mesh/fabric/domain.h>

#include "fabric_internal.h"

/*
 * How long a stranger who opens libfabric's handshake and says no more may hold up everybody: the
 * provider reads the handshake with a blocking receive, from inside fi_cq_read() (net of 1.17,
 * xnet_cm.c:92; tcp of 2.6, xnet_cm.c:95). A peer sends its handshake in one piece.
 */
#define HANDSHAKE_LIMIT_US 250000

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

/*
 * Calls @visit for every descriptor of the process, each time with a copy, so that the socket
 * that was looked at is the one that is changed, even if its owner closes it meanwhile.
 *
 * Returns how often @visit returned true, or a negative errno.
 */
static int descriptors_visit(struct mesh_domain *domain, const struct mesh_remote *remote,
			     bool (*visit)(const struct mesh_domain *domain,
					   const struct mesh_remote *remote, int fd))
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0, copy;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		copy = dup(atoi(entry->d_name));
		if (copy < 0)
			continue;
		count += visit(domain, remote, copy);
		close(copy);
	}
	closedir(dir);
	return count;
}

/* ---- cutting off one peer ------------------------------------------------------------------ */

/* True for a connection of our endpoint with the remote, whoever of the two dialled. */
static bool socket_is_remotes(const struct mesh_domain *domain, const struct mesh_remote *remote,
			      int fd)
{
	uint16_t local_port, peer_port, their_port;
	struct mesh_addr peer, theirs;

	if (mesh_addr_from_sockaddr((const struct sockaddr *)remote->name, remote->name_len,
				    &theirs, &their_port))
		return false;
	if (!socket_is_local(domain, fd, &local_port) || !socket_name(fd, true, &peer, &peer_port))
		return false;
	peer.scope_id = theirs.scope_id;
	if (!mesh_addr_equal(&peer, &theirs))
		return false;
	return peer_port == their_port || local_port == domain->port;
}

/*
 * Disconnecting empties the socket's queue at once, under the kernel's lock; the shutdown wakes
 * the provider, which then sees the end.
 */
static bool socket_cut(const struct mesh_domain *domain, const struct mesh_remote *remote, int fd)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	bool cut;

	if (!socket_is_remotes(domain, remote, fd))
		return false;
	cut = !connect(fd, &nobody, sizeof(nobody));
	shutdown(fd, SHUT_RDWR); /* -ENOTCONN by now, and still wakes */
	return cut;
}

void mesh_remote_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr theirs;
	int count;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return; /* ibv_dereg_mr fences */
	mesh_lock_take(&domain->lock);
	mesh_lock_take(&domain->transmit_lock);
	count = descriptors_visit(domain, remote, socket_cut);
	mesh_lock_release(&domain->transmit_lock);
	mesh_lock_release(&domain->lock);
	if (mesh_addr_from_sockaddr((const struct sockaddr *)remote->name, remote->name_len,
				    &theirs, NULL))
		return;
	if (count < 0)
		mesh_warn("cannot cut the connection with %s: %s; a late message may reach memory "
			  "that is in use again",
			  mesh_addr_text(&theirs, text), strerror(-count));
	else
		mesh_info("cut %d connection%s with %s, which did not stop in time", count,
			  count == 1 ? "" : "s", mesh_addr_text(&theirs, text));
}

/* ---- strangers ----------------------------------------------------------------------------- */

static bool listener_limit(const struct mesh_domain *domain, const struct mesh_remote *remote,
			   int fd)
{
	struct timeval limit = {.tv_usec = HANDSHAKE_LIMIT_US};
	socklen_t len = sizeof(int);
	int listening = 0;
	uint16_t port;

	(void)remote;
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) || !listening)
		return false;
	if (!socket_is_local(domain, fd, &port) || port != domain->port)
		return false;
	/* Linux hands the limit down to the connections that are accepted from here. */
	return !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void mesh_handshakes_limit(struct mesh_domain *domain)
{
	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return;
	if (descriptors_visit(domain, NULL, listener_limit) < 1)
		mesh_info("%s: the provider's listening socket was not found; a stranger who "
			  "connects to port %u can hold up traffic",
			  domain->nic->netdev, domain->port);
}
