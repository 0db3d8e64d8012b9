/* SPDX-License-Identifier: Apache-2.0 */
/* judge.c - what is wrong with a link, from what both of its ends say. */
#include <errno.h>
#include <string.h>

#include "base/version.h"
#include "neighbours/asking.h"
#include "nic/nic_select.h"

#include "neighbours/judge.h"

/* One neighbour on one of our NICs. */
struct judged {
	const struct mesh_neighbour *ours;
	const struct mesh_heard *heard;
	struct check_result *result;
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
		check_fix(judged->result, "ip link set %s mtu %u", ours->netdev, theirs->mtu);
	else
		check_fix(judged->result, "on node %s: ip link set %s mtu %u", theirs->node,
			  theirs->netdev, ours->mtu);
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
static bool subnet_shared(const struct mesh_neighbour *ours, const struct mesh_neighbour *theirs,
			  struct mesh_addr *local, struct mesh_addr *remote)
{
	mesh_neighbour_addr_get(&ours->addrs[0], local);
	mesh_neighbour_addr_get(&theirs->addrs[0], remote);
	return mesh_addr_same_subnet(local, remote);
}

/*
 * A port may be several NICs, which all hear the other port's, with a subnet for each pair: ours
 * and theirs need none in common if each has a partner among our NICs and what they hear of that
 * node.
 */
static bool halves_are_paired(const struct judged *judged)
{
	const struct mesh_neighbour *ours, *theirs = &judged->heard->about;
	const struct mesh_asking *asking = judged->asking;
	bool ours_paired = false, theirs_paired = false;
	const struct mesh_neighbour *about;
	struct mesh_addr local, remote;
	int i, k;

	for (i = 0; i < asking->num_links; i++) {
		ours = &asking->links[i].about;
		for (k = 0; k < asking->asked[i].num_heard; k++) {
			about = &asking->asked[i].heard[k]->about;
			if (asking->asked[i].heard[k]->error || about->node_id != theirs->node_id ||
			    !about->num_addrs || !ours->num_addrs ||
			    !subnet_shared(ours, about, &local, &remote))
				continue;
			ours_paired |= ours == judged->ours;
			theirs_paired |= !strcmp(about->netdev, theirs->netdev);
		}
	}
	return ours_paired && theirs_paired;
}

static void subnet_judge(const struct judged *judged)
{
	const struct mesh_neighbour *ours = judged->ours, *theirs = &judged->heard->about;
	char here[MESH_ADDR_TEXT_MAX], there[MESH_ADDR_TEXT_MAX];
	struct mesh_addr local, remote;

	if (!ours->num_addrs || !theirs->num_addrs)
		return;
	if (subnet_shared(ours, theirs, &local, &remote)) {
		if (!mesh_addr_equal(&local, &remote))
			return;
		check_say(judged->result, CHECK_FAIL,
			  "%s and %s of node %s have the same address, %s", ours->netdev,
			  theirs->netdev, theirs->node, mesh_addr_text_prefix(&local, here));
		check_fix(judged->result,
			  "give one of them another address of this subnet; `fi_mesh plan` writes "
			  "addresses for all nodes");
		return;
	}
	if (halves_are_paired(judged))
		return;
	check_say(judged->result, CHECK_FAIL,
		  "%s and %s of node %s are on one link, but %s and %s have no subnet in common",
		  ours->netdev, theirs->netdev, theirs->node, mesh_addr_text_prefix(&local, here),
		  mesh_addr_text_prefix(&remote, there));
	check_fix(judged->result,
		  "give both NICs addresses of one subnet; if the addresses are right, the cable "
		  "is in the wrong port");
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
	check_say(judged->result, CHECK_PASS, "%s leads to %s of node %s", judged->ours->netdev,
		  theirs->netdev, theirs->node);
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
			  "give it an address, or allow IPv6 (sysctl "
			  "net.ipv6.conf.%s.disable_ipv6=0)",
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

/* The other NICs of this node that are heard here. Returns true if no other node is. */
static bool own_judge(const struct mesh_asking *asking, int index, struct check_result *result)
{
	int others;
	const struct mesh_heard *own = mesh_asked_own(asking, index, &others);

	if (!own)
		return false;
	if (others) {
		check_say(result, CHECK_PASS, "%s and %s of this node are on one wire",
			  asking->links[index].about.netdev, own->about.netdev);
		return false;
	}
	check_say(result, CHECK_FAIL, "both ends of this cable are on this node: %s and %s",
		  asking->links[index].about.netdev, own->about.netdev);
	check_fix(result, "if they are two halves of one port, run `fi_mesh serve` on the node at "
			  "its other end; if not, move one end to another node");
	return true;
}

/* Two of our NICs that hear one and the same NIC, and no other: a bridge, or a switch. */
static void shared_judge(const struct mesh_asking *asking, int index, struct check_result *result)
{
	const struct mesh_neighbour *about;
	int other = mesh_asked_shared(asking, index, &about);

	if (other < 0)
		return;
	check_say(result, CHECK_WARN,
		  "%s and %s lead to one NIC, %s of node %s: two cables in one bridge, or "
		  "both NICs on one switch",
		  asking->links[index].about.netdev, asking->links[other].about.netdev,
		  about->netdev, about->node);
	check_fix(result,
		  "on node %s: take the ports out of the bridge, so that each cable has a "
		  "NIC and a subnet of its own",
		  about->node);
}

void neighbours_judge_down(const struct mesh_nic *nic, struct check_result *result)
{
	check_say(result, CHECK_FAIL, "%s: %s", nic->netdev, mesh_nic_bare_reason(nic));
	check_fix(result, "reseat the cable at both ends; is the port at the other end up?");
}

void neighbours_judge(const struct mesh_asking *asking, int index, struct check_result *result)
{
	const struct mesh_asked *asked = &asking->asked[index];
	int i;

	if (!asked->num_heard) {
		silence_judge(asked, asking->links[index].about.netdev, result);
		return;
	}
	if (own_judge(asking, index, result))
		return;
	for (i = 0; i < asked->num_heard; i++) {
		struct judged judged = {&asking->links[index].about, asked->heard[i], result,
					asking};

		if (!mesh_heard_is_own(asking, asked->heard[i]))
			neighbour_judge(&judged);
	}
	shared_judge(asking, index, result);
}
