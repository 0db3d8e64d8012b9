/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - checks one link from end to end: the neighbour, frames of full size, latency, bandwidth.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "system/sysfs.h"

#include "common/finding.h"
#include "common/interrupt.h"
#include "common/ipv4_setting.h"
#include "common/progress.h"
#include "peer/checker.h"
#include "peer/dial.h"
#include "peer/explain.h"
#include "peer/facing.h"
#include "peer/link.h"
#include "peer/measure.h"
#include "peer/mtu.h"
#include "peer/stream.h"
#include "peer/wire.h"

#define ANSWER_MS 5000

/* ---- who is at both ends ------------------------------------------------------------------ */

/* The cable as the far NIC reports it, if it received our question. */
static const struct mesh_check_cable *far_cable(const struct peer_link *link)
{
	int i;

	for (i = 0; i < link->facing.num_cables; i++)
		if (link->facing.cables[i].node_id == link->checker->self.node_id &&
		    !strcmp(link->facing.cables[i].netdev, link->theirs->netdev))
			return &link->facing.cables[i];
	return NULL;
}

static void wrong_cable_say(const struct peer_link *link, const struct mesh_check_cable *heard,
			    struct check_result *result)
{
	char remote[MESH_ADDR_TEXT_MAX];

	check_say(result, CHECK_FAIL,
		  "%s faces %s of node %s, not %s of node %s, which has the address of its subnet "
		  "(%s)",
		  link->nic->netdev, heard->peer_netdev, heard->peer, link->theirs->netdev,
		  link->peer->name, mesh_addr_text(&link->remote, remote));
	check_fix(result, "move the cable to the other port, or exchange the addresses");
}

static void cable_check(struct peer_link *link, struct check_result *result)
{
	long index = link->nic - link->checker->self.table.nics;
	const struct peer_facing *facing = &link->checker->facing[index];
	const struct mesh_check_cable *far = far_cable(link);
	int i, near = -1;

	for (i = 0; i < facing->num_heard; i++)
		if (facing->heard[i].node_id == link->peer->hello.node_id &&
		    !strcmp(facing->heard[i].peer_netdev, link->theirs->netdev))
			near = i;
	if (near >= 0 && far)
		check_say(result, CHECK_PASS,
			  "cable %s - %s: seen from here, %s faces node %s; from there, %s faces "
			  "node %s%s",
			  link->nic->netdev, link->theirs->netdev, link->nic->netdev,
			  link->peer->name, link->theirs->netdev, link->checker->self.name,
			  facing->num_heard > 1 ? " (a switch: others are there, too)" : "");
	else if (near >= 0)
		check_say(result, CHECK_WARN,
			  "%s faces %s of node %s, but there it was not heard from %s",
			  link->nic->netdev, link->theirs->netdev, link->peer->name,
			  link->nic->netdev);
	else if (facing->num_heard)
		wrong_cable_say(link, &facing->heard[0], result);
	else
		check_say(
			result, CHECK_UNKNOWN,
			"which node %s faces could not be heard: %s; by its address it is node %s",
			link->nic->netdev,
			facing->error == -EADDRNOTAVAIL ? "it has no IPv6 link-local address"
			: facing->error			? strerror(-facing->error)
							: "no answer over IPv6",
			link->peer->name);
}

/* Another NIC of ours from which the far NIC also receives; NULL if there is none. */
static const char *wire_sharer(const struct peer_link *link)
{
	const struct mesh_check_cable *cable = link->facing.cables;
	int i;

	for (i = 0; i < link->facing.num_cables; i++, cable++)
		if (cable->node_id == link->checker->self.node_id &&
		    !strcmp(cable->netdev, link->theirs->netdev) &&
		    strcmp(cable->peer_netdev, link->nic->netdev))
			return cable->peer_netdev;
	return NULL;
}

/*
 * Two NICs on one wire, such as the halves of a DGX Spark's port, with a subnet each: Linux answers
 * ARP for both addresses on either NIC, and the first answer attracts all traffic.
 */
static void wire_check(const struct peer_link *link, struct check_result *result)
{
	const char *netdev = link->nic->netdev, *other = wire_sharer(link);
	struct mesh_sysfs files;

	if (!other || link->local.family != MESH_FAMILY_IPV4 || mesh_sysfs_open("/", &files))
		return;
	if (!check_ipv4_setting(&files, netdev, "arp_ignore")) {
		check_say(result, CHECK_WARN,
			  "%s and %s are on one wire, and %s answers for the address of either: "
			  "all that comes may take one of them",
			  netdev, other, netdev);
		check_seen(result, "%s of node %s hears both; arp_ignore of %s is 0",
			   link->theirs->netdev, link->peer->name, netdev);
		check_fix(result, "sysctl -w net.ipv4.conf.all.arp_ignore=1 "
				  "net.ipv4.conf.all.arp_announce=2");
	}
	mesh_sysfs_close(&files);
}

static void facing_ask(struct peer_link *link)
{
	struct mesh_check_frame frame;
	char text[MESH_CHECK_TEXT_MAX];

	memset(&frame, 0, sizeof(frame));
	if (!peer_stream_ask(&link->stream, &frame, MESH_CHECK_FACING, MESH_CHECK_FACING, ANSWER_MS,
			     NULL, text))
		link->facing = frame.facing;
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
	check_fix(result, "two nodes have one address, or `fi_mesh serve` was started again: give "
			  "each its own; `fi_mesh plan` does");
	peer_stream_close(&link->stream);
	return -EADDRINUSE;
}

void peer_link_check(struct peer_link *link, struct check_result *result)
{
	progress_say(link->checker->progress, "node %s: connecting over %s", link->peer->name,
		     link->nic->netdev);
	if (link_open(link, result))
		return;
	if (!link->routed) {
		facing_ask(link);
		cable_check(link, result);
		wire_check(link, result);
	}
	speeds_check(link, result);
	progress_say(link->checker->progress, "node %s: frames of full size over %s",
		     link->peer->name, link->nic->netdev);
	peer_mtu_check(link, result);
	progress_say(link->checker->progress, "node %s: latency and bandwidth over %s",
		     link->peer->name, link->nic->netdev);
	if (!interrupt_happened())
		peer_measure(link, result);
	peer_stream_close(&link->stream);
}
