/* SPDX-License-Identifier: Apache-2.0 */
/* facing.c - asks and answers which node is at the other end of a cable. */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

#include "common/interrupt.h"
#include "peer/facing.h"
#include "peer/wire.h"

/* Datagrams handled in one call, so that a flood does not block other work. */
#define ANSWERS_MAX 32
/* A lost question is sent again after this. */
#define ASK_AGAIN_MS 250

/* The link-local address of @nic, or NULL. */
static const struct mesh_addr *link_local_address(const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < nic->num_addrs; i++)
		if (nic->addrs[i].family == MESH_FAMILY_IPV6 &&
		    mesh_addr_is_link_local(&nic->addrs[i]))
			return &nic->addrs[i];
	return NULL;
}

/* ff02::1, all nodes of the link (RFC 4291, 2.7.1). */
static struct sockaddr_in6 all_nodes(const struct mesh_nic *nic, uint16_t port)
{
	return (struct sockaddr_in6){
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_addr = {{{0xff, 0x02, [15] = 1}}},
		.sin6_scope_id = nic->ifindex,
	};
}

static int datagram_socket(const struct sockaddr_in6 *address)
{
	int fd, on = 1, off = 0, ret;

	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof(off));
	if (!bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

int peer_facing_listen(const struct mesh_nic *nic, uint16_t port)
{
	struct sockaddr_in6 address = all_nodes(nic, port);

	if (!link_local_address(nic))
		return -EADDRNOTAVAIL;
	return datagram_socket(&address);
}

static void who_fill(struct mesh_check_who *who, const struct mesh_nic *nic, uint64_t node_id,
		     const char *node, uint64_t token, bool answer)
{
	memset(who, 0, sizeof(*who));
	who->magic = MESH_CHECK_WHO_MAGIC;
	who->version = MESH_CHECK_DATAGRAM_VERSION;
	who->answer = answer;
	who->token = token;
	who->node_id = node_id;
	snprintf(who->netdev, sizeof(who->netdev), "%s", nic->netdev);
	snprintf(who->node, sizeof(who->node), "%s", node);
}

static void cable_fill(struct mesh_check_cable *cable, const struct mesh_nic *nic,
		       const struct mesh_check_who *who)
{
	memset(cable, 0, sizeof(*cable));
	cable->node_id = who->node_id;
	memcpy(cable->netdev, nic->netdev, sizeof(cable->netdev));
	memcpy(cable->peer_netdev, who->netdev, sizeof(cable->peer_netdev));
	memcpy(cable->peer, who->node, sizeof(cable->peer));
}

_Static_assert(sizeof(((struct mesh_nic *)0)->netdev) == MESH_CHECK_NETDEV_MAX, "IF_NAMESIZE");

/* The next valid datagram from a neighbour. Returns false if there is none. */
static bool who_receive(int fd, struct mesh_check_who *who, struct mesh_addr *from, uint16_t *port)
{
	struct sockaddr_in6 sender;
	struct mesh_check_who bytes;
	socklen_t len;
	ssize_t n;
	int i;

	for (i = 0; i < ANSWERS_MAX; i++) {
		len = sizeof(sender);
		n = recvfrom(fd, &bytes, sizeof(bytes), MSG_TRUNC, (struct sockaddr *)&sender,
			     &len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if ((size_t)n == sizeof(bytes) &&
		    !mesh_addr_from_sockaddr((struct sockaddr *)&sender, len, from, port) &&
		    mesh_addr_is_link_local(from) &&
		    !mesh_check_who_decode(&bytes, sizeof(bytes), who))
			return true;
	}
	return false;
}

void peer_facing_answer(int fd, const struct mesh_nic *nic, uint64_t node_id, const char *node,
			void (*heard)(void *arg, const struct mesh_check_cable *cable,
				      const struct mesh_addr *from),
			void *arg)
{
	struct mesh_check_who who, answer;
	struct mesh_check_cable cable;
	struct sockaddr_storage to;
	struct mesh_addr from;
	uint16_t port;
	socklen_t len;
	int i;

	for (i = 0; i < ANSWERS_MAX && who_receive(fd, &who, &from, &port); i++) {
		if (who.answer)
			continue;
		who_fill(&answer, nic, node_id, node, who.token, true);
		/*
		 * The answer is as large as the question, so that a forged source address amplifies
		 * nothing.
		 */
		len = mesh_addr_to_sockaddr(&from, port, &to);
		sendto(fd, &answer, sizeof(answer), 0, (struct sockaddr *)&to, len);
		cable_fill(&cable, nic, &who);
		heard(arg, &cable, &from);
	}
}

const struct mesh_check_cable *peer_facing_find(const struct peer_facing *facing, uint64_t node_id,
						const char *netdev)
{
	int i;

	for (i = 0; i < facing->num_heard; i++)
		if (facing->heard[i].node_id == node_id &&
		    (!netdev || !strcmp(facing->heard[i].peer_netdev, netdev)))
			return &facing->heard[i];
	return NULL;
}

void peer_facing_enter(struct peer_facing *facing, const struct mesh_check_cable *cable,
		       const struct mesh_addr *from)
{
	const struct mesh_check_cable *known =
		peer_facing_find(facing, cable->node_id, cable->peer_netdev);
	long i = known ? known - facing->heard : facing->num_heard;

	if (i == PEER_FACING_MAX) { /* the oldest entry is replaced */
		memmove(&facing->heard[0], &facing->heard[1], (size_t)--i * sizeof(*cable));
		memmove(&facing->from[0], &facing->from[1], (size_t)i * sizeof(*from));
	} else if (i == facing->num_heard) {
		facing->num_heard++;
	}
	facing->heard[i] = *cable;
	facing->from[i] = *from;
}

/* ---- asking ------------------------------------------------------------------------------- */

struct asker {
	int fds[MESH_NICS_MAX];
	uint64_t token;
	uint64_t node_id;
	const char *node;
	uint16_t port;
};

static int asker_open(const struct mesh_nic *nic)
{
	const struct mesh_addr *address = link_local_address(nic);
	struct sockaddr_storage from;

	if (!address)
		return -EADDRNOTAVAIL;
	mesh_addr_to_sockaddr(address, 0, &from);
	((struct sockaddr_in6 *)&from)->sin6_scope_id = nic->ifindex;
	return datagram_socket((struct sockaddr_in6 *)&from);
}

static void questions_send(const struct asker *asker, const struct mesh_nic *nics, int num_nics,
			   struct peer_facing *facing)
{
	struct mesh_check_who who;
	struct sockaddr_in6 to;
	int i;

	for (i = 0; i < num_nics; i++) {
		if (asker->fds[i] < 0 || facing[i].num_heard)
			continue;
		who_fill(&who, &nics[i], asker->node_id, asker->node, asker->token, false);
		to = all_nodes(&nics[i], asker->port);
		if (sendto(asker->fds[i], &who, sizeof(who), 0, (struct sockaddr *)&to,
			   sizeof(to)) < 0)
			facing[i].error = -errno;
		else
			facing[i].asked = true;
	}
}

static void answers_take(const struct asker *asker, const struct mesh_nic *nics, int num_nics,
			 struct peer_facing *facing)
{
	struct mesh_check_cable cable;
	struct mesh_check_who who;
	struct mesh_addr from;
	int i, count;

	for (i = 0; i < num_nics; i++) {
		for (count = 0; asker->fds[i] >= 0 && count < ANSWERS_MAX &&
				who_receive(asker->fds[i], &who, &from, NULL);
		     count++) {
			if (!who.answer || who.token != asker->token)
				continue;
			cable_fill(&cable, &nics[i], &who);
			peer_facing_enter(&facing[i], &cable, &from);
		}
	}
}

static bool all_answered(const struct asker *asker, int num_nics, const struct peer_facing *facing)
{
	int i;

	for (i = 0; i < num_nics; i++)
		if (asker->fds[i] >= 0 && !facing[i].num_heard)
			return false;
	return true;
}

static int answers_wait(const struct asker *asker, int num_nics, uint64_t deadline_ms)
{
	struct pollfd poll_fds[MESH_NICS_MAX + 1];
	int i;

	for (i = 0; i < num_nics; i++)
		poll_fds[i] = (struct pollfd){.fd = asker->fds[i], .events = POLLIN};
	return interrupt_poll(poll_fds, num_nics, deadline_ms);
}

void peer_facing_ask(const struct mesh_nic *nics, int num_nics, uint16_t port, uint64_t node_id,
		     const char *node, uint32_t ms, struct peer_facing *facing)
{
	struct asker asker = {.node_id = node_id, .node = node, .port = port};
	uint64_t until_ms = mesh_clock_ms() + ms, again_ms = 0, now;
	int i, ret = 0;

	memset(facing, 0, (size_t)num_nics * sizeof(*facing));
	if (num_nics > MESH_NICS_MAX || mesh_random(&asker.token, sizeof(asker.token)))
		return;
	for (i = 0; i < num_nics; i++) {
		asker.fds[i] = mesh_nic_has_carrier(&nics[i]) ? asker_open(&nics[i]) : -ENETDOWN;
		facing[i].error = asker.fds[i] < 0 ? asker.fds[i] : 0;
	}
	while ((now = mesh_clock_ms()) < until_ms && ret != -EINTR &&
	       !all_answered(&asker, num_nics, facing)) {
		if (now >= again_ms) {
			questions_send(&asker, nics, num_nics, facing);
			again_ms = now + ASK_AGAIN_MS;
		}
		ret = answers_wait(&asker, num_nics, again_ms < until_ms ? again_ms : until_ms);
		answers_take(&asker, nics, num_nics, facing);
	}
	for (i = 0; i < num_nics; i++)
		if (asker.fds[i] >= 0)
			close(asker.fds[i]);
}
