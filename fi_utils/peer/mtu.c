/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mtu.c - checks whether a frame of full size passes in both directions. A port whose MTU is
 * smaller drops larger frames silently (a black hole): small messages work, large ones hang.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "peer/checker.h"
#include "peer/mtu.h"
#include "peer/stream.h"
#include "peer/udp.h"
#include "peer/wire.h"

/* A datagram that has not arrived after this is lost; each size has a few tries. */
#define ARRIVE_MS 150
#define TRIES 3
/* Packets of this size pass everywhere (RFC 791: every host accepts 576 bytes). */
#define SMALL_MTU 576
#define ANSWER_MS 3000

struct probing {
	struct peer_link *link;
	int fd;
	uint16_t port, their_port;
	uint64_t token;
	uint32_t id;
	bool back; /* from the peer to us */
};

/* Each returns 0 if it arrived, -ETIMEDOUT if it did not, -EMSGSIZE if the sender's own MTU is
 * smaller, or another negative errno: the check is over. */

static int up_once(struct probing *probing, size_t size)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	ret = peer_udp_send(probing->fd, &probing->link->remote, probing->their_port,
			    probing->token, ++probing->id, size);
	if (ret)
		return ret;
	return peer_stream_await(&probing->link->stream, MESH_CHECK_UDP_GOT, probing->id,
				 mesh_clock_ms() + ARRIVE_MS, NULL, &frame, text);
}

static int datagram_await(struct probing *probing)
{
	uint64_t until_ms = mesh_clock_ms() + ARRIVE_MS;
	uint32_t id, size;
	int ret;

	while (!(ret = interrupt_wait(probing->fd, POLLIN, until_ms)))
		if (!peer_udp_receive(probing->fd, &probing->link->remote, probing->token, &id,
				      &size) &&
		    id == probing->id)
			return 0;
	return ret;
}

static int back_once(struct probing *probing, size_t size)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.udp.port = probing->port;
	frame.udp.size = (uint32_t)size;
	frame.udp.id = ++probing->id;
	ret = peer_stream_ask(&probing->link->stream, &frame, MESH_CHECK_UDP_SEND,
			      MESH_CHECK_UDP_SENT, ANSWER_MS, NULL, text);
	if (ret)
		return ret == -ETIMEDOUT ? -EIO : ret;
	if (frame.udp.error)
		return frame.udp.error == EMSGSIZE ? -EMSGSIZE : -EIO;
	return datagram_await(probing);
}

/* Tests whether an IP packet of @mtu bytes arrives. Returns as above. */
static int passes(struct probing *probing, uint32_t mtu)
{
	const struct mesh_addr *from = probing->back ? &probing->link->remote
						     : &probing->link->local;
	size_t size = peer_udp_payload(from, mtu);
	int i, ret = -ETIMEDOUT;

	for (i = 0; i < TRIES && ret == -ETIMEDOUT; i++)
		ret = probing->back ? back_once(probing, size) : up_once(probing, size);
	return ret;
}

/* The largest that arrives, between @low, which does, and @high, which does not. */
static long largest(struct probing *probing, uint32_t low, uint32_t high)
{
	int ret;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		ret = passes(probing, middle);
		if (!ret)
			low = middle;
		else if (ret == -ETIMEDOUT || ret == -EMSGSIZE)
			high = middle;
		else
			return ret;
	}
	return low;
}

static int probing_open(struct probing *probing, struct check_result *result)
{
	struct peer_link *link = probing->link;
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX] = "";
	int ret;

	ret = mesh_random(&probing->token, sizeof(probing->token));
	probing->fd = ret ? ret : peer_udp_open(&link->local, &probing->port);
	ret = probing->fd < 0 ? probing->fd : 0;
	memset(&frame, 0, sizeof(frame));
	frame.udp.token = probing->token;
	if (!ret)
		ret = peer_stream_ask(&link->stream, &frame, MESH_CHECK_UDP_OPEN,
				      MESH_CHECK_UDP_READY, ANSWER_MS, NULL, text);
	probing->their_port = frame.udp.port;
	if (ret && ret != -EINTR)
		check_say(result, CHECK_UNKNOWN, "frames of full size were not tried: %s",
			  *text ? text : strerror(-ret));
	return ret;
}

/* Reports the likely cause if a frame of full size does not arrive. */
static void hole_say(const struct probing *probing, uint32_t mtu, long passed,
		     struct check_result *result)
{
	const struct peer_link *link = probing->link;
	const char *here = link->nic->netdev, *there = link->theirs->netdev;
	uint32_t their_mtu = link->theirs->mtu, our_mtu = (uint32_t)link->nic->mtu;
	const char *from = probing->back ? there : here, *to = probing->back ? here : there;

	check_say(
		result, CHECK_FAIL,
		"a frame of %u bytes from %s to %s does not arrive: the largest that does has %ld",
		mtu, from, to, passed);
	check_seen(result, "MTU of %s here: %u, of %s on node %s: %u", here, our_mtu, there,
		   link->peer->name, their_mtu);
	if (our_mtu < their_mtu)
		check_fix(result, "ip link set %s mtu %u", here, their_mtu);
	else if (their_mtu < our_mtu)
		check_fix(result, "on node %s: ip link set %s mtu %u", link->peer->name, there,
			  our_mtu);
	else
		check_fix(
			result,
			"what lies between the two (a switch, a bridge, a tunnel) takes less than "
			"their MTU: raise it there, or set the MTU of both to %ld",
			passed);
}

/* Bytes of the largest packet up to @mtu that arrives, or a negative errno. */
static long largest_find(struct probing *probing, uint32_t mtu)
{
	int ret = passes(probing, mtu);
	long found;

	if (!ret)
		return (long)mtu;
	if (ret != -ETIMEDOUT && ret != -EMSGSIZE)
		return ret;
	ret = passes(probing, SMALL_MTU);
	if (ret)
		return ret;
	found = largest(probing, SMALL_MTU, mtu);
	/* A node without CPU may have missed all tries of the first size: try it again. */
	return found < 0 || passes(probing, mtu) ? found : (long)mtu;
}

/* Checks one direction. Returns as largest_find(). */
static long direction_check(struct probing *probing, uint32_t mtu, struct check_result *result)
{
	const char *peer = probing->link->peer->name;
	long passed = largest_find(probing, mtu);

	if (passed == (long)mtu || passed == -EINTR)
		return passed;
	if (passed > 0) {
		hole_say(probing, mtu, passed, result);
	} else if (passed == -ETIMEDOUT) {
		check_say(result, CHECK_WARN, "no UDP datagram arrives %s node %s",
			  probing->back ? "from" : "at", peer);
		check_fix(result,
			  "a firewall drops them: trust the mesh's interfaces there and here; RoCE "
			  "needs UDP port 4791, `fi_mesh check` names the rule");
	} else {
		check_say(result, CHECK_UNKNOWN, "what arrives %s node %s could not be tried: %s",
			  probing->back ? "from" : "at", peer, strerror(-(int)passed));
	}
	return passed;
}

void peer_mtu_check(struct peer_link *link, struct check_result *result)
{
	struct probing probing = {.link = link, .fd = -1};

	if (!probing_open(&probing, result)) {
		link->numbers.to_mtu = direction_check(&probing, (uint32_t)link->nic->mtu, result);
		probing.back = true;
		link->numbers.from_mtu = direction_check(&probing, link->theirs->mtu, result);
		if (link->numbers.to_mtu == link->nic->mtu &&
		    link->numbers.from_mtu == (long)link->theirs->mtu)
			check_say(result, CHECK_PASS,
				  "frames of full size (%d bytes) pass in both directions",
				  link->nic->mtu);
	}
	if (probing.fd >= 0)
		close(probing.fd);
}
