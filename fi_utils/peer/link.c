/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - checks one link from end to end: the neighbour, frames of full size, latency, bandwidth.
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "system/sysfs.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "common/progress.h"
#include "common/subnet.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/measure.h"
#include "peer/stream.h"
#include "peer/udp.h"
#include "peer/wire.h"

/* ---- frames of full size ---------------------------------------------------------------- */

/* A datagram that has not arrived after this is lost; each size has a few tries. */
#define ARRIVE_MS 150
#define TRIES 3
/* Packets of this size pass everywhere (RFC 791: every host accepts 576 bytes). */
#define SMALL_MTU 576

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
				 mesh_clock_ms() + ARRIVE_MS, &frame, text);
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
			      MESH_CHECK_UDP_SENT, PEER_ANSWER_MS, text);
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
				      MESH_CHECK_UDP_READY, PEER_ANSWER_MS, text);
	probing->their_port = frame.udp.port;
	if (ret && ret != -EINTR)
		check_say(result, CHECK_UNKNOWN, "frames of full size were not tested: %s",
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
		check_fix(result, "`fi_mesh up`, or by hand: ip link set %s mtu %u", here,
			  their_mtu);
	else if (their_mtu < our_mtu)
		check_fix(result, "`fi_mesh up`, or by hand on node %s: ip link set %s mtu %u",
			  link->peer->name, there, our_mtu);
	else
		check_fix(result,
			  "a switch, bridge or tunnel between the two has a smaller MTU: raise it "
			  "there, or set the MTU of both to %ld",
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
		check_say(result, CHECK_UNKNOWN, "could not test what arrives %s node %s: %s",
			  probing->back ? "from" : "at", peer, strerror(-(int)passed));
	}
	return passed;
}

/* Checks whether a frame of full size passes in both directions. The stream is open. */
static void peer_mtu_check(struct peer_link *link, struct check_result *result)
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

/* ---- who is at both ends ------------------------------------------------------------------ */

/*
 * Two NICs on one wire, such as the halves of a DGX Spark's port, with a subnet each: Linux answers
 * ARP for both addresses on either NIC, and the first answer attracts all traffic.
 */
static void wire_check(const struct peer_link *link, const char *other, struct check_result *result)
{
	const char *netdev = link->nic->netdev;
	struct mesh_sysfs files;

	if (link->local.family != MESH_FAMILY_IPV4 || mesh_sysfs_open("/", &files))
		return;
	if (!check_ipv4_setting(&files, netdev, "arp_ignore")) {
		check_say(result, CHECK_WARN,
			  "%s and %s are on one link, and %s answers for both addresses: all "
			  "incoming traffic may use one of them",
			  netdev, other, netdev);
		check_seen(result, "%s of node %s hears both; arp_ignore of %s is 0",
			   link->theirs->netdev, link->peer->name, netdev);
		check_fix(result,
			  "`fi_mesh up`, or by hand: sysctl -w net.ipv4.conf.all.arp_ignore=1 "
			  "net.ipv4.conf.all.arp_announce=2");
	}
	mesh_sysfs_close(&files);
}

static void wrong_cable_say(const struct peer_link *link, const struct mesh_heard *far,
			    struct check_result *result)
{
	char remote[MESH_ADDR_TEXT_MAX];

	check_say(result, CHECK_FAIL,
		  "%s is cabled to %s of node %s, not %s of node %s, which has the address of its "
		  "subnet (%s)",
		  link->nic->netdev, far->about.netdev, far->about.node, link->theirs->netdev,
		  link->peer->name, mesh_addr_text(&link->remote, remote));
	check_fix(
		result,
		"`fi_mesh up`, which takes the cables as they are; or move the cable to the other "
		"port");
}

static void cable_check(struct peer_link *link, struct check_result *result)
{
	const struct mesh_asking *asking = &link->checker->asking;
	const struct mesh_heard *far = peer_cable_far(link->checker, link->nic);
	struct mesh_asked_cable cable = {.far = MESH_CABLE_SILENT};
	int index = peer_cable_find(link->checker, link->nic, &cable);
	const char *netdev = link->nic->netdev;
	int half = -1, error = index < 0 ? -EADDRNOTAVAIL : asking->asked[index].error;

	if (index >= 0)
		half = mesh_cable_half(asking, &cable, index);
	/* Its answer shows that the question was heard at the far end. */
	if (peer_cable_heard(link->checker, link->nic, link->peer->hello.node_id,
			     link->theirs->netdev))
		check_say(result, CHECK_PASS, "cable %s - %s: %s is cabled to node %s%s%s%s",
			  netdev, link->theirs->netdev, netdev, link->peer->name,
			  half < 0 ? "" : "; the other half of this cable is ",
			  half < 0 ? "" : asking->links[half].about.netdev,
			  cable.far == MESH_CABLE_SWITCH ? " (a switch: others are there, too)"
							 : "");
	else if (far)
		wrong_cable_say(link, far, result);
	else
		check_say(result, CHECK_UNKNOWN,
			  "could not verify what %s is cabled to: %s; its subnet suggests node %s",
			  netdev, error ? strerror(-error) : "no answer", link->peer->name);
	if (cable.num_nics > 1)
		wire_check(link,
			   asking->links[mesh_cable_other(asking, &cable, index)].about.netdev,
			   result);
}

static void speeds_check(const struct peer_link *link, struct check_result *result)
{
	uint32_t ours = (uint32_t)link->nic->speed_mbps, theirs = link->theirs->speed_mbps;

	if (!ours || !theirs || ours == theirs)
		return;
	check_say(result, CHECK_WARN,
		  "the ends run at different speeds: %s at %u Mb/s, %s of node "
		  "%s at %u Mb/s",
		  link->nic->netdev, ours, link->theirs->netdev, link->peer->name, theirs);
	check_fix(result, "set both ports to the same speed, or to auto-negotiation (ethtool %s)",
		  link->nic->netdev);
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Returns 0 if the link can be measured. */
static int link_open(struct peer_link *link, struct check_result *result)
{
	char text[MESH_CHECK_TEXT_MAX], local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_check_hello hello;
	int ret;

	ret = peer_dial(link->checker, &link->local, &link->remote, &link->stream, &hello, text);
	if (ret) {
		peer_explain(link->checker, &link->remote, ret, text, result);
		return ret;
	}
	if (hello.node_id == link->peer->hello.node_id) {
		check_say(result, CHECK_PASS, "%s reaches %s", mesh_addr_text(&link->local, local),
			  mesh_addr_text(&link->remote, remote));
		return 0;
	}
	check_say(result, CHECK_FAIL,
		  "%s is answered by node %s, not by node %s, which has that address, too",
		  mesh_addr_text(&link->remote, remote), hello.node, link->peer->name);
	check_fix(result,
		  "two nodes have one address: `fi_mesh up` gives each its own; or `fi_mesh "
		  "serve` was restarted there: run this again");
	peer_stream_close(&link->stream);
	return -EADDRINUSE;
}

void peer_link_check(struct peer_link *link, struct check_result *result)
{
	progress_say(link->checker->progress, "node %s: connecting over %s", link->peer->name,
		     link->nic->netdev);
	if (link_open(link, result))
		return;
	if (!link->routed)
		cable_check(link, result);
	speeds_check(link, result);
	progress_say(link->checker->progress, "node %s: frames of full size over %s",
		     link->peer->name, link->nic->netdev);
	peer_mtu_check(link, result);
	progress_say(link->checker->progress, "node %s: latency and bandwidth over %s",
		     link->peer->name, link->nic->netdev);
	if (!interrupt_happened())
		peer_link_measure(link, result);
	peer_stream_close(&link->stream);
}
