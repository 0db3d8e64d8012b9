/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - what is wrong with a link, from what both of its ends say. */
#include <errno.h>
#include <string.h>

#include "base/version.h"
#include "neighbours/asking.h"
#include "nic/nic_select.h"

#include "neighbours/show.h"

/* One neighbour on one of our NICs. */
struct judged {
	const struct mesh_neighbour *ours;
	const struct mesh_heard *heard;
	struct check_result *result;
	int half; /* our NIC that is the other half of the cable, or -1 */
	const struct mesh_asking *asking;
};

/* ---- one neighbour ------------------------------------------------------------------------- */

/* Returns false if nothing else of this neighbour can be judged. */
static bool version_judge(const struct judged *judged)
{
	const struct mesh_neighbour *theirs = &judged->heard->about;

	if (!judged->heard->error && theirs->protocol == MESH_PROTOCOL_VERSION)
		return true;
	if (judged->heard->error)
		check_say(judged->result, CHECK_FAIL,
			  "node %s at %s has nccl-net-mesh %s, whose answers this one (%s) cannot "
			  "read",
			  theirs->node, judged->ours->netdev, theirs->product, mesh_version());
	else
		check_say(judged->result, CHECK_FAIL,
			  "node %s at %s has nccl-net-mesh %s with protocol %u, this node %s with "
			  "protocol %d",
			  theirs->node, judged->ours->netdev, theirs->product, theirs->protocol,
			  mesh_version(), MESH_PROTOCOL_VERSION);
	check_fix(judged->result, "install the same version on all nodes");
	return !judged->heard->error;
}

static void mtu_judge(const struct judged *judged)
{
	const struct mesh_neighbour *ours = judged->ours, *theirs = &judged->heard->about;
	bool here = ours->mtu < theirs->mtu;

	if (ours->mtu == theirs->mtu || !ours->mtu || !theirs->mtu)
		return;
	check_say(judged->result, CHECK_WARN, "the MTU of %s is %u, that of %s on node %s %u",
		  ours->netdev, ours->mtu, theirs->netdev, theirs->node, theirs->mtu);
	if (here)
		check_fix(judged->result, "`fi_mesh up`, or by hand: ip link set %s mtu %u",
			  ours->netdev, theirs->mtu);
	else
		check_fix(judged->result,
			  "`fi_mesh up`, or by hand on node %s: ip link set %s mtu %u",
			  theirs->node, theirs->netdev, ours->mtu);
}

static void speed_judge(const struct judged *judged)
{
	const struct mesh_neighbour *ours = judged->ours, *theirs = &judged->heard->about;
	char here[MESH_NIC_SPEED_TEXT_MAX], there[MESH_NIC_SPEED_TEXT_MAX];

	if (ours->speed_mbps == theirs->speed_mbps || !ours->speed_mbps || !theirs->speed_mbps)
		return;
	check_say(judged->result, CHECK_WARN,
		  "%s has %s, %s on node %s %s: the link carries the lower one", ours->netdev,
		  mesh_nic_speed_text((int)ours->speed_mbps, here), theirs->netdev, theirs->node,
		  mesh_nic_speed_text((int)theirs->speed_mbps, there));
}

/* The first address of each is the one that its endpoint is bound to. */
static void address_judge(const struct mesh_neighbour *ours, const struct mesh_neighbour *theirs,
			  struct check_result *result)
{
	struct mesh_addr local, remote;
	char text[MESH_ADDR_TEXT_MAX];

	if (!ours->num_addrs || !theirs->num_addrs)
		return;
	mesh_neighbour_addr_get(&ours->addrs[0], &local);
	mesh_neighbour_addr_get(&theirs->addrs[0], &remote);
	if (!mesh_addr_equal(&local, &remote))
		return;
	check_say(result, CHECK_FAIL, "%s and %s of node %s have the same address, %s",
		  ours->netdev, theirs->netdev, theirs->node, mesh_addr_text_prefix(&local, text));
	check_fix(result, "`fi_mesh up`, or give one of them another address of this subnet");
}

static void subnet_judge(const struct judged *judged)
{
	const struct mesh_neighbour *ours = judged->ours, *theirs = &judged->heard->about;
	char here[MESH_ADDR_TEXT_MAX], there[MESH_ADDR_TEXT_MAX];
	struct mesh_addr local, remote;

	if (!ours->num_addrs || !theirs->num_addrs)
		return;
	mesh_neighbour_addr_get(&ours->addrs[0], &local);
	mesh_neighbour_addr_get(&theirs->addrs[0], &remote);
	if (mesh_addr_same_subnet(&local, &remote))
		return;
	check_say(judged->result, CHECK_FAIL,
		  "%s and %s of node %s are on one link, but %s and %s have no subnet in common",
		  ours->netdev, theirs->netdev, theirs->node, mesh_addr_text_prefix(&local, here),
		  mesh_addr_text_prefix(&remote, there));
	check_fix(judged->result,
		  "`fi_mesh up`, or give both NICs addresses of one subnet; if the addresses are "
		  "right, the cable is in the wrong port");
}

static void provider_judge(const struct judged *judged)
{
	const struct mesh_neighbour *ours = judged->ours, *theirs = &judged->heard->about;

	if (!ours->providers || !theirs->providers || ours->providers & theirs->providers)
		return;
	check_say(judged->result, CHECK_FAIL,
		  "%s and %s of node %s have no libfabric provider in common", ours->netdev,
		  theirs->netdev, theirs->node);
	check_fix(judged->result, "set NCCL_MESH_PROVIDER to the same on all nodes; `fi_mesh nics` "
				  "says why a NIC has no better provider");
}

static void neighbour_judge(const struct judged *judged)
{
	const struct mesh_neighbour *theirs = &judged->heard->about;

	if (!version_judge(judged))
		return;
	check_say(judged->result, CHECK_PASS, "%s is cabled to %s of node %s%s%s",
		  judged->ours->netdev, theirs->netdev, theirs->node,
		  judged->half < 0 ? "" : "; the other half of this cable is ",
		  judged->half < 0 ? "" : judged->asking->links[judged->half].about.netdev);
	provider_judge(judged);
	subnet_judge(judged);
	mtu_judge(judged);
	speed_judge(judged);
}

/* ---- the NIC ------------------------------------------------------------------------------- */

static void silence_judge(const struct mesh_asked *asked, const char *netdev,
			  struct check_result *result)
{
	if (asked->error == -EADDRNOTAVAIL) {
		check_say(result, CHECK_FAIL,
			  "%s cannot ask: it has neither an IPv6 link-local nor an IPv4 address",
			  netdev);
		check_fix(result,
			  "`fi_mesh up`, or by hand: sysctl net.ipv6.conf.%s.disable_ipv6=0",
			  netdev);
	} else if (asked->error) {
		check_say(result, CHECK_FAIL, "%s cannot ask: %s", netdev, strerror(-asked->error));
	} else {
		check_say(result, CHECK_WARN, "no node answers on %s", netdev);
		check_fix(result,
			  "run `fi_mesh serve` (or a job) on the node at its other end, and let "
			  "its firewall pass UDP port %d on the mesh interfaces",
			  MESH_NEIGHBOUR_PORT);
	}
}

/* No other node answers, but another NIC of ours. */
static void own_judge(const struct mesh_asking *asking, const struct mesh_asked_cable *cable,
		      int index, struct check_result *result)
{
	const char *netdev = asking->links[index].about.netdev;
	const char *other = asking->links[mesh_cable_other(asking, cable, index)].about.netdev;

	if (cable->far == MESH_CABLE_LOOP) {
		check_say(result, CHECK_FAIL, "both ends of this cable are on this node: %s and %s",
			  netdev, other);
		check_fix(result, "move one end to another node");
		return;
	}
	check_say(result, CHECK_WARN,
		  "no node answers on %s: it and %s of this node hear each other", netdev, other);
	check_fix(result,
		  "if they are two halves of one port, run `fi_mesh serve` (or a job) on the node "
		  "at its other end; if they are the ends of one cable, move one to another node");
}

/* The node has fewer NICs there than we: a half of its port is missing, or there is a bridge. */
static void left_over_judge(const struct mesh_asking *asking, const struct mesh_asked_cable *cable,
			    int index, const struct mesh_neighbour *about,
			    struct check_result *result)
{
	int other = mesh_cable_other(asking, cable, index);
	uint64_t port = mesh_neighbour_link_port(&asking->links[index]);

	if (port && port == mesh_neighbour_link_port(&asking->links[other])) {
		check_say(result, CHECK_WARN,
			  "%s has no NIC at its other end: of the port of node %s only %s answers",
			  asking->links[index].about.netdev, about->node, about->netdev);
		check_fix(result,
			  "`fi_mesh up`, or by hand on node %s: set the other NIC of that port up, "
			  "with an address in the subnet of %s",
			  about->node, asking->links[index].about.netdev);
		return;
	}
	check_say(result, CHECK_WARN,
		  "%s and %s are both cabled to %s of node %s: two cables in one bridge, or both "
		  "NICs on one switch, or halves of one port, of which only one is up there",
		  asking->links[index].about.netdev, asking->links[other].about.netdev,
		  about->netdev, about->node);
	check_fix(
		result,
		"on node %s: take the ports out of the bridge, so that each cable has a NIC and a "
		"subnet of its own; set the other NIC of a port that has two up",
		about->node);
}

void neighbours_judge_down(const struct mesh_nic *nic, struct check_result *result)
{
	check_say(result, CHECK_FAIL, "%s: %s", nic->netdev, mesh_nic_bare_reason(nic));
	check_fix(result, "reseat the cable at both ends; is the port at the other end up?");
}

void neighbours_judge(const struct mesh_asking *asking, int index, struct check_result *result)
{
	const struct mesh_neighbour *ours = &asking->links[index].about;
	const struct mesh_heard *node, *partner;
	struct mesh_asked_cable cable;
	int at = 0, i;

	mesh_cable_find(asking, index, &cable);
	if (!asking->asked[index].num_heard || cable.far == MESH_CABLE_SILENT)
		silence_judge(&asking->asked[index], ours->netdev, result);
	else if (!cable.num_heard)
		own_judge(asking, &cable, index, result);
	else
		while ((node = mesh_cable_node_next(&cable, &at))) {
			partner = mesh_cable_partner(asking, &cable, index, node);
			if (!partner && cable.far == MESH_CABLE_LEADS)
				left_over_judge(asking, &cable, index, &node->about, result);
			else if (partner)
				neighbour_judge(&(struct judged){
					ours, partner, result,
					mesh_cable_half(asking, &cable, index), asking});
		}
	for (i = 0; i < cable.num_heard; i++) {
		if (!cable.heard[i]->error)
			address_judge(ours, &cable.heard[i]->about, result);
	}
}
