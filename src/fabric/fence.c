/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.c - cuts the provider's connections to one peer, so that nothing half received is
 * written on into memory that NCCL has back.
 *
 * libfabric offers no call for this: fi_cancel() does nothing for writes, fi_av_remove() keeps
 * the connection on tcp, and closing the endpoint would end everybody else's traffic. Measured in
 * docs/protocol.md.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mesh/base/log.h>
#include <mesh/fabric/domain.h>

static bool socket_name(int fd, bool peer, struct mesh_addr *address, uint16_t *port)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int ret;

	ret = peer ? getpeername(fd, (struct sockaddr *)&name, &len)
		   : getsockname(fd, (struct sockaddr *)&name, &len);
	return !ret && !mesh_addr_from_sockaddr((struct sockaddr *)&name, len, address, port);
}

/* True for a connection of our endpoint with the remote, whoever of the two dialled. */
static bool socket_is_providers(const struct mesh_domain *domain, const struct mesh_remote *remote,
				int fd)
{
	struct mesh_addr local, peer, theirs;
	uint16_t local_port, peer_port, their_port;

	if (mesh_addr_from_sockaddr((const struct sockaddr *)remote->name, remote->name_len,
				    &theirs, &their_port))
		return false;
	if (!socket_name(fd, false, &local, &local_port) ||
	    !socket_name(fd, true, &peer, &peer_port))
		return false;
	local.scope_id = domain->nic->source.scope_id;
	peer.scope_id = theirs.scope_id;
	if (!mesh_addr_equal(&local, &domain->nic->source) || !mesh_addr_equal(&peer, &theirs))
		return false;
	return peer_port == their_port || local_port == domain->port;
}

/*
 * Disconnecting empties the socket's queue at once, under the kernel's lock; the shutdown wakes
 * the provider, which then sees the end. We work on a copy of the descriptor, so that the socket
 * we looked at is the one we cut, even if the provider closes its own meanwhile.
 */
static bool socket_cut(const struct mesh_domain *domain, const struct mesh_remote *remote, int fd)
{
	struct sockaddr nobody = {.sa_family = AF_UNSPEC};
	int copy = dup(fd);
	bool cut = false;

	if (copy < 0)
		return false;
	if (socket_is_providers(domain, remote, copy)) {
		cut = !connect(copy, &nobody, sizeof(nobody));
		shutdown(copy, SHUT_RDWR); /* -ENOTCONN by now, and still wakes */
	}
	close(copy);
	return cut;
}

static int sockets_cut(const struct mesh_domain *domain, const struct mesh_remote *remote)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int count = 0, fd;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		fd = atoi(entry->d_name);
		if (entry->d_name[0] != '.' && fd != dirfd(dir))
			count += socket_cut(domain, remote, fd);
	}
	closedir(dir);
	return count;
}

void mesh_remote_fence(struct mesh_domain *domain, struct mesh_remote *remote)
{
	char text[MESH_ADDR_TEXT_MAX];
	struct mesh_addr theirs;
	int count;

	if (domain->provider == MESH_PROVIDER_VERBS_RXM)
		return; /* ibv_dereg_mr fences */
	mesh_lock_take(&domain->lock);
	count = sockets_cut(domain, remote);
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
