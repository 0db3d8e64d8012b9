/* SPDX-License-Identifier: Apache-2.0 */
/* nic_kind.c - distinguishes cables from bridges, tunnels and containers' interfaces. */
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>

#include "nic/nic_kind.h"

/* Link kinds (rtnl_link_ops.kind of the kernel) that are not cables; all others are. */
static const struct {
	const char *link_kind;
	enum mesh_nic_kind kind;
	const char *words;
} not_cables[] = {
	{"bridge", MESH_NIC_BRIDGE, "bridge"},
	{"openvswitch", MESH_NIC_BRIDGE, "bridge"},
	{"bareudp", MESH_NIC_CONTAINER, "tunnel"},
	{"dummy", MESH_NIC_CONTAINER, "no cable"},
	{"erspan", MESH_NIC_CONTAINER, "tunnel"},
	{"geneve", MESH_NIC_CONTAINER, "tunnel"},
	{"gre", MESH_NIC_CONTAINER, "tunnel"},
	{"gretap", MESH_NIC_CONTAINER, "tunnel"},
	{"gtp", MESH_NIC_CONTAINER, "tunnel"},
	{"ifb", MESH_NIC_CONTAINER, "no cable"},
	{"ip6erspan", MESH_NIC_CONTAINER, "tunnel"},
	{"ip6gre", MESH_NIC_CONTAINER, "tunnel"},
	{"ip6gretap", MESH_NIC_CONTAINER, "tunnel"},
	{"ip6tnl", MESH_NIC_CONTAINER, "tunnel"},
	{"ipip", MESH_NIC_CONTAINER, "tunnel"},
	{"ipvtap", MESH_NIC_CONTAINER, "virtual machine's"},
	{"macvtap", MESH_NIC_CONTAINER, "virtual machine's"},
	{"ovpn", MESH_NIC_CONTAINER, "tunnel"},
	{"sit", MESH_NIC_CONTAINER, "tunnel"},
	{"tun", MESH_NIC_CONTAINER, "tunnel or virtual machine's"},
	{"vrf", MESH_NIC_CONTAINER, "no cable"},
	{"vti", MESH_NIC_CONTAINER, "tunnel"},
	{"vti6", MESH_NIC_CONTAINER, "tunnel"},
	{"vxlan", MESH_NIC_CONTAINER, "tunnel"},
	{"wireguard", MESH_NIC_CONTAINER, "tunnel"},
	{"xfrm", MESH_NIC_CONTAINER, "tunnel"},
};

/* Names of host ends: Calico, Cilium, Amazon VPC CNI, Google GKE, systemd-nspawn, Weave. */
static const char *const host_end_prefixes[] = {
	"cali", "lxc", "cilium_", "eni", "gke", "ve-", "vb-", "vethwe",
};

const struct mesh_nic *mesh_nic_find(const struct mesh_nic *nics, int num_nics,
				     unsigned int ifindex)
{
	int i;

	for (i = 0; i < num_nics; i++)
		if (nics[i].ifindex == ifindex)
			return &nics[i];
	return NULL;
}

static bool is_pair(const struct mesh_nic *nic)
{
	return !strcmp(nic->link_kind, "veth") || !strcmp(nic->link_kind, "netkit");
}

/* An administrator chooses names like veth0; Docker, LXD and CNI plugins choose veth1a2b3c4. */
static bool has_host_end_name(const char *netdev)
{
	size_t i;

	for (i = 0; i < sizeof(host_end_prefixes) / sizeof(host_end_prefixes[0]); i++)
		if (!strncmp(netdev, host_end_prefixes[i], strlen(host_end_prefixes[i])))
			return true;
	return !strncmp(netdev, "veth", 4) && strspn(netdev + 4, "0123456789abcdefABCDEF") >= 6;
}

static bool is_bridge(const struct mesh_nic *nic)
{
	return !strcmp(nic->link_kind, "bridge") || !strcmp(nic->link_kind, "openvswitch");
}

static enum mesh_nic_kind ethernet_kind(const struct mesh_nic *nic, const struct mesh_nic *master)
{
	size_t i;

	if (nic->wireless)
		return MESH_NIC_WIRELESS;
	if (!*nic->link_kind)
		return MESH_NIC_PHYSICAL;
	if (is_pair(nic) && ((master && is_bridge(master)) || has_host_end_name(nic->netdev)))
		return MESH_NIC_CONTAINER;
	for (i = 0; i < sizeof(not_cables) / sizeof(not_cables[0]); i++)
		if (!strcmp(nic->link_kind, not_cables[i].link_kind))
			return not_cables[i].kind;
	return MESH_NIC_VIRTUAL;
}

void mesh_nic_classify(struct mesh_nic *nics, int num_nics)
{
	const struct mesh_nic *master;
	int i;

	for (i = 0; i < num_nics; i++) {
		master = nics[i].master ? mesh_nic_find(nics, num_nics, nics[i].master) : NULL;
		switch (nics[i].link_type) {
		case ARPHRD_LOOPBACK:
			nics[i].kind = MESH_NIC_LOOPBACK;
			break;
		case ARPHRD_INFINIBAND:
			nics[i].kind = MESH_NIC_INFINIBAND;
			break;
		case ARPHRD_ETHER:
			nics[i].kind = ethernet_kind(&nics[i], master);
			break;
		default: /* tunnels, CAN, modems */
			nics[i].kind = MESH_NIC_CONTAINER;
		}
	}
}

static const char *container_words(const struct mesh_nic *nic)
{
	size_t i;

	if (is_pair(nic))
		return "host end of a container's network";
	for (i = 0; i < sizeof(not_cables) / sizeof(not_cables[0]); i++)
		if (!strcmp(nic->link_kind, not_cables[i].link_kind))
			return not_cables[i].words;
	return "neither Ethernet nor InfiniBand";
}

const char *mesh_nic_kind_text(const struct mesh_nic *nic, char *text, size_t size)
{
	static const char *const words[] = {
		[MESH_NIC_PHYSICAL] = "physical",     [MESH_NIC_VIRTUAL] = "virtual",
		[MESH_NIC_INFINIBAND] = "InfiniBand", [MESH_NIC_LOOPBACK] = "loopback",
		[MESH_NIC_BRIDGE] = "bridge",	      [MESH_NIC_WIRELESS] = "Wi-Fi",
	};
	const char *word = nic->kind == MESH_NIC_CONTAINER ? container_words(nic)
							   : words[nic->kind];

	/* Avoids "bridge (bridge)". */
	if (*nic->link_kind && strcmp(nic->link_kind, word))
		snprintf(text, size, "%s (%s)", word, nic->link_kind);
	else
		snprintf(text, size, "%s", word);
	return text;
}
