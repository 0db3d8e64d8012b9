/* SPDX-License-Identifier: Apache-2.0 */
/* dial.c - connects to `fi_mesh serve` of a peer and exchanges HELLO, or explains why not. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "wire/neighbour.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "common/progress.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/self.h"
#include "peer/stream.h"
#include "peer/wire.h"

/*
 * A node on a cable answers within a millisecond; the kernel retransmits a lost SYN after 1 and 3
 * s.
 */
#define CONNECT_MS 4000
/* Opening an endpoint takes 0.1 s; a slow machine with many cores, longer. */
#define OPEN_MS 20000
/* Another node is measuring at the peer: retry after this. */
#define BUSY_MS 60000
#define BUSY_AGAIN_MS 300

static int connection_wait(int fd, uint64_t deadline_ms)
{
	socklen_t len = sizeof(int);
	int error = 0, ret;

	ret = interrupt_wait(fd, POLLOUT, deadline_ms);
	if (ret)
		return ret;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? -errno : -error;
}

static void error_text(int error, char *text)
{
	const char *words = strerror(-error);

	switch (error) {
	case -ECONNREFUSED:
		words = "connection refused: nothing listens on that port";
		break;
	case -ETIMEDOUT:
		words = "no answer";
		break;
	case -EHOSTUNREACH:
		words = "no node on this cable has that address";
		break;
	case -ENETUNREACH:
		words = "no route to it";
		break;
	case -EPROTO:
		words = "something other than `fi_mesh serve` is listening on that port";
		break;
	}
	snprintf(text, MESH_CHECK_TEXT_MAX, "%s", words);
}

static void version_text(uint8_t theirs, char *text)
{
	snprintf(
		text, MESH_CHECK_TEXT_MAX,
		"`fi_mesh serve` there uses version %u of the check protocol, this node version %d",
		theirs, MESH_CHECK_VERSION);
}

static int hello_exchange(const struct peer_checker *checker, struct peer_stream *stream,
			  struct mesh_check_hello *hello, char *text)
{
	struct mesh_check_frame frame;
	int ret;

	memset(&frame, 0, sizeof(frame));
	peer_self_hello(&checker->self, &frame.hello);
	ret = peer_stream_ask(stream, &frame, MESH_CHECK_HELLO, MESH_CHECK_HELLO, PEER_ANSWER_MS,
			      text);
	if (!ret)
		*hello = frame.hello;
	if (ret == -EPROTONOSUPPORT && !*text)
		version_text(peer_stream_version(stream), text);
	return ret;
}

/* Returns a negative errno; a descriptor that is to be closed otherwise. */
static int socket_open(const struct peer_checker *checker, const struct mesh_addr *local,
		       const struct mesh_addr *remote)
{
	int fd = peer_socket_connect(local, remote, checker->options->port), ret;

	ret = fd < 0 ? fd : connection_wait(fd, mesh_clock_ms() + CONNECT_MS);
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	return ret;
}

int peer_dial(const struct peer_checker *checker, const struct mesh_addr *local,
	      const struct mesh_addr *remote, struct peer_stream *stream,
	      struct mesh_check_hello *hello, char *text)
{
	int fd, ret;

	*text = '\0';
	fd = socket_open(checker, local, remote);
	ret = fd < 0 ? fd : peer_stream_open(stream, fd);
	if (!ret) {
		ret = hello_exchange(checker, stream, hello, text);
		if (ret)
			peer_stream_close(stream);
	}
	if (ret && !*text)
		error_text(ret, text);
	return ret;
}

int peer_ask_to_measure(const struct peer_checker *checker, const struct peer *peer,
			struct peer_stream *stream, struct mesh_check_frame *frame,
			enum mesh_check_type question, enum mesh_check_type answer, char *text)
{
	const struct mesh_check_frame asked = *frame;
	uint64_t until_ms = mesh_clock_ms() + BUSY_MS;
	int ret;

	for (;;) {
		*frame = asked;
		ret = peer_stream_ask(stream, frame, question, answer, OPEN_MS, text);
		if (ret != -EBUSY || mesh_clock_ms() >= until_ms)
			return ret;
		progress_say(checker->progress, "another node is checking node %s", peer->name);
		if (interrupt_wait(-1, 0, mesh_clock_ms() + BUSY_AGAIN_MS) == -EINTR)
			return -EINTR;
	}
}

/* ---- why it failed ---------------------------------------------------------------------- */

/* The NIC of the address's zone, or in whose subnet it lies, taken or not; NULL: there is none. */
static const struct mesh_nic *nic_of_subnet(const struct peer_checker *checker,
					    const struct mesh_addr *addr)
{
	const struct mesh_nic_table *table = &checker->self.table;
	int i, k;

	for (i = 0; i < table->num_nics; i++)
		for (k = 0; k < table->nics[i].num_addrs; k++)
			if (mesh_addr_in_subnet(addr, &table->nics[i].addrs[k]) &&
			    (!addr->scope_id || addr->scope_id == table->nics[i].ifindex))
				return &table->nics[i];
	return NULL;
}

int peer_cable_find(const struct peer_checker *checker, const struct mesh_nic *nic,
		    struct mesh_asked_cable *cable)
{
	int link = mesh_asking_link_find(&checker->asking, nic->ifindex);

	if (link >= 0)
		mesh_cable_find(&checker->asking, link, cable);
	return link;
}

const struct mesh_heard *peer_cable_heard(const struct peer_checker *checker,
					  const struct mesh_nic *nic, uint64_t node_id,
					  const char *netdev)
{
	struct mesh_asked_cable cable;
	int i, link = peer_cable_find(checker, nic, &cable);

	for (i = 0; link >= 0 && i < cable.num_heard; i++) {
		const struct mesh_heard *heard = cable.heard[i];

		if (heard->error || heard->about.node_id != node_id)
			continue;
		if (!netdev)
			return mesh_cable_partner(&checker->asking, &cable, link, heard);
		if (!strcmp(heard->about.netdev, netdev))
			return heard;
	}
	return NULL;
}

const struct mesh_heard *peer_cable_far(const struct peer_checker *checker,
					const struct mesh_nic *nic)
{
	const struct mesh_heard *partner;
	struct mesh_asked_cable cable;
	int i, link = peer_cable_find(checker, nic, &cable);

	for (i = 0; link >= 0 && i < cable.num_heard; i++) {
		if (cable.heard[i]->error)
			continue; /* another version */
		partner = mesh_cable_partner(&checker->asking, &cable, link, cable.heard[i]);
		return partner ? partner : cable.heard[i];
	}
	return NULL;
}

/* Adds to the error what the state of that NIC's cable shows. */
static void cable_explain(const struct peer_checker *checker, const struct mesh_nic *nic,
			  const char *addr, struct check_result *result)
{
	const struct mesh_heard *far = peer_cable_far(checker, nic);

	if (!mesh_nic_has_carrier(nic)) {
		check_seen(result, "%s has no carrier", nic->netdev);
		check_fix(result,
			  nic->state != MESH_NIC_DOWN
				  ? "reseat the cable of %s at both ends; the other end must "
				    "be up as well"
				  : "ip link set %s up",
			  nic->netdev);
		return;
	}
	if (!far) {
		check_seen(result,
			   "%s has a carrier; the node at its other end does not identify itself",
			   nic->netdev);
		check_fix(result,
			  "on the node with %s: run `fi_mesh serve`, and let its firewall pass TCP "
			  "port %u and UDP port %d; else %s is cabled to another node",
			  addr, checker->options->port, MESH_NEIGHBOUR_PORT, nic->netdev);
		return;
	}
	check_seen(result, "%s is cabled to node %s (%s)", nic->netdev, far->about.node,
		   far->about.netdev);
	check_fix(result,
		  "if %s is not node %s's, `fi_mesh up` or move the cable; if it is, let the "
		  "firewall of node %s pass port %u",
		  addr, far->about.node, far->about.node, checker->options->port);
}

void peer_explain(const struct peer_checker *checker, const struct mesh_addr *addr, int error,
		  const char *text, struct check_result *result)
{
	const struct mesh_nic *nic = nic_of_subnet(checker, addr);
	char at[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(addr, at);
	check_say(result, CHECK_FAIL, "%s cannot be checked%s%s: %s", at, nic ? " over " : "",
		  nic ? nic->netdev : "", text);
	if (error == -ECONNREFUSED) {
		check_fix(result, "run `fi_mesh serve` there; or a firewall there refuses port %u",
			  checker->options->port);
		return;
	}
	if (error == -EPROTO || error == -EPROTONOSUPPORT) {
		check_fix(result, "run the same version of fi_mesh on both nodes");
		return;
	}
	if (nic) {
		cable_explain(checker, nic, at, result);
		return;
	}
	check_seen(result, "no NIC of this node has an address in its subnet");
	check_fix(
		result,
		"name an address that this node reaches, for example one of the management network "
		"with `fi_mesh serve --listen` there; `fi_mesh up` gives addresses that fit");
}
