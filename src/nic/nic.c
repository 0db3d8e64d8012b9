/* SPDX-License-Identifier: Apache-2.0 */
/* nic.c - what the kernel's facts make of a NIC, and the table of a node's NICs. */
#define _GNU_SOURCE /* strverscmp */
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "nic/nic.h"

/* ---- what it is ------------------------------------------------------------------------------ */

/* Link kinds (rtnl_link_ops.kind of the kernel) that are not cables; all others are. */
static const char *const bridges[] = {"bridge", "openvswitch"};
static const char *const not_cables[] = {
	"bareudp",   "dummy",  "erspan",    "geneve", "gre",  "gretap", "gtp",	     "ifb",
	"ip6erspan", "ip6gre", "ip6gretap", "ip6tnl", "ipip", "ipvtap", "macvtap",   "ovpn",
	"sit",	     "tun",    "vrf",	    "vti",    "vti6", "vxlan",	"wireguard", "xfrm"};

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

static enum mesh_nic_kind kind_of(const char *link_kind)
{
	size_t i;

	for (i = 0; i < sizeof(bridges) / sizeof(bridges[0]); i++)
		if (!strcmp(link_kind, bridges[i]))
			return MESH_NIC_BRIDGE;
	for (i = 0; i < sizeof(not_cables) / sizeof(not_cables[0]); i++)
		if (!strcmp(link_kind, not_cables[i]))
			return MESH_NIC_CONTAINER;
	return MESH_NIC_VIRTUAL;
}

static enum mesh_nic_kind ethernet_kind(const struct mesh_nic *nic, const struct mesh_nic *master)
{
	bool bridged = master && kind_of(master->link_kind) == MESH_NIC_BRIDGE;

	if (nic->kind == MESH_NIC_WIRELESS)
		return MESH_NIC_WIRELESS;
	if (!*nic->link_kind)
		return MESH_NIC_PHYSICAL;
	if (is_pair(nic) && (bridged || has_host_end_name(nic->netdev)))
		return MESH_NIC_CONTAINER;
	return kind_of(nic->link_kind);
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
	if (is_pair(nic))
		return "host end of a container's network";
	return kind_of(nic->link_kind) == MESH_NIC_CONTAINER ? "no cable"
							     : "neither Ethernet nor InfiniBand";
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

/* ---- the table ------------------------------------------------------------------------------- */

/* The beginning of the reason of a NIC that is skipped. */
#define SKIPPED "skipped: "

static uint64_t hash(uint64_t seed, const char *text)
{
	return mesh_hash_add(MESH_HASH_START ^ seed, text, strlen(text));
}

/* EUI-64 from a MAC (RFC 4291 appendix A, without the inverted bit); IPoIB has 8 bytes already. */
static uint64_t guid_of_mac(const struct mesh_nic *nic)
{
	const uint8_t *mac = nic->mac;
	const uint8_t eui[8] = {mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	static const uint8_t zero[8];
	uint64_t guid = 0;
	int i;

	if (!memcmp(mac, zero, 8))
		return 0;
	for (i = 0; i < 8; i++)
		guid = guid << 8 | (nic->kind == MESH_NIC_INFINIBAND ? mac[i] : eui[i]);
	return guid;
}

static bool guid_is_used(const struct mesh_nic *nics, int num, const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < num; i++)
		if (nics[i].guid == nic->guid && nics[i].port == nic->port)
			return true;
	return false;
}

void mesh_nic_table_identify(struct mesh_nic_table *table)
{
	struct mesh_nic *nic;
	int i;

	for (i = 0; i < table->num_nics; i++) {
		nic = &table->nics[i];
		nic->port = *nic->rdma.device ? nic->rdma.port : 1;
		nic->guid = *nic->rdma.device ? nic->rdma.node_guid : 0;
		if (!nic->guid)
			nic->guid = guid_of_mac(nic);
		while (!nic->guid || guid_is_used(table->nics, i, nic))
			nic->guid = hash(nic->guid, nic->netdev);
	}
}

static int nic_compare(const void *left, const void *right)
{
	const struct mesh_nic *a = left, *b = right;
	int ret;

	if (mesh_nic_is_taken(a) != mesh_nic_is_taken(b))
		return mesh_nic_is_taken(a) ? -1 : 1;
	if (!*a->pci_path != !*b->pci_path)
		return *a->pci_path ? -1 : 1;
	ret = strcmp(a->pci_path, b->pci_path);
	if (!ret && *a->pci_path)
		ret = a->rdma.port - b->rdma.port;
	if (!ret)
		ret = strverscmp(a->netdev, b->netdev);
	if (!ret)
		ret = a->ifindex < b->ifindex ? -1 : a->ifindex > b->ifindex;
	return ret;
}

void mesh_nic_table_sort(struct mesh_nic_table *table)
{
	int i;

	if (table->num_nics)
		qsort(table->nics, (size_t)table->num_nics, sizeof(*table->nics), nic_compare);
	table->num_taken = 0;
	for (i = 0; i < table->num_nics; i++)
		table->num_taken += mesh_nic_is_taken(&table->nics[i]);
}

void mesh_nic_leave(struct mesh_nic *nic, enum mesh_nic_verdict verdict, const char *format, ...)
{
	va_list args;

	nic->verdict = verdict;
	memset(&nic->source, 0, sizeof(nic->source));
	memcpy(nic->reason, SKIPPED, sizeof(SKIPPED));
	va_start(args, format);
	vsnprintf(nic->reason + sizeof(SKIPPED) - 1, sizeof(nic->reason) - (sizeof(SKIPPED) - 1),
		  format, args);
	va_end(args);
}

const char *mesh_nic_bare_reason(const struct mesh_nic *nic)
{
	const size_t len = sizeof(SKIPPED) - 1;

	return nic->reason + (strncmp(nic->reason, SKIPPED, len) ? 0 : len);
}

/* The address of @nic that lies in a subnet of the peer's; NULL if there is none. */
static const struct mesh_addr *
shared_address(const struct mesh_nic *nic, const struct mesh_endpoint_addr *remote, int num_remote)
{
	int i, k;

	for (i = 0; i < nic->num_addrs; i++)
		for (k = 0; k < num_remote; k++)
			if (mesh_addr_same_subnet(&nic->addrs[i], &remote[k].addr) &&
			    !mesh_addr_is_link_local(&nic->addrs[i]) &&
			    !mesh_addr_is_loopback(&nic->addrs[i]))
				return &nic->addrs[i];
	return NULL;
}

/* The address to name; NULL if the NIC does not explain a missing path. */
static const struct mesh_addr *address_of(const struct mesh_nic *nic,
					  const struct mesh_endpoint_addr *remote, int num_remote)
{
	const struct mesh_addr *shared = shared_address(nic, remote, num_remote);

	if (mesh_nic_is_taken(nic))
		return NULL;
	if (shared || !nic->num_addrs || mesh_addr_is_loopback(&nic->addrs[0]))
		return shared;
	if (nic->state == MESH_NIC_RUNS && nic->verdict != MESH_NIC_NO_PROVIDER)
		return NULL;
	return &nic->addrs[0];
}

const char *mesh_nics_skipped_text(const struct mesh_nic_table *table,
				   const struct mesh_endpoint_addr *remote, int num_remote,
				   char *text, size_t size)
{
	const struct mesh_addr *address;
	char words[MESH_ADDR_TEXT_MAX];
	const struct mesh_nic *nic;
	size_t used = 0;
	int n;

	*text = '\0';
	for (nic = table->nics; nic < table->nics + table->num_nics && used < size; nic++) {
		address = address_of(nic, remote, num_remote);
		if (!address)
			continue;
		n = snprintf(text + used, size - used, "%s%s (%s): %s", used ? "; " : "",
			     nic->netdev, mesh_addr_text_prefix(address, words),
			     mesh_nic_bare_reason(nic));
		if (n < 0)
			break;
		used += (size_t)n;
	}
	return text;
}

/* ---- near each other ------------------------------------------------------------------------- */

/* Bytes of @path before its last '/'; 0 if there is none. */
static size_t parent_len(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len ? len - 1 : 0;
}

/* True if the last part of a path of this length is a PCI function: "0000:01:00.0". */
static bool ends_in_function(const char *path, size_t len)
{
	size_t parent = parent_len(path, len);

	return len - parent > 3 && path[len - 2] == '.';
}

/*
 * The PCIe switch above a NIC is its upstream port: .../root port/upstream port/downstream
 * port/function. Returns the bytes of the path up to that; 0 if the NIC is at a root port.
 */
static size_t switch_len(const struct mesh_nic *nic)
{
	const char *path = nic->pci_path;
	size_t downstream = parent_len(path, strlen(path)), upstream, root;

	upstream = parent_len(path, downstream);
	root = parent_len(path, upstream);
	return ends_in_function(path, downstream) && ends_in_function(path, upstream) &&
			       ends_in_function(path, root)
		       ? upstream
		       : 0;
}

static bool is_near(const struct mesh_nic *a, const struct mesh_nic *b, bool by_switch)
{
	size_t len = switch_len(a);

	if (!by_switch)
		return a->numa_node >= 0 && a->numa_node == b->numa_node;
	return len && len == switch_len(b) && !memcmp(a->pci_path, b->pci_path, len);
}

static uint32_t near_mask(const struct mesh_nic *const *nics, int num, int dev, bool by_switch)
{
	uint32_t mask = 0;
	int i;

	for (i = 0; i < num; i++) {
		if (is_near(nics[dev], nics[i], by_switch))
			mask |= 1u << i;
	}
	return mask;
}

/* True if each NIC has another one near it in this sense. */
static bool divides(const struct mesh_nic *const *nics, int num, bool by_switch)
{
	uint32_t mask;
	int i;

	for (i = 0; i < num; i++) {
		mask = near_mask(nics, num, i, by_switch);
		if (!(mask & (mask - 1)))
			return false;
	}
	return true;
}

uint32_t mesh_nics_near(const struct mesh_nic *const *nics, int num, int dev)
{
	if (divides(nics, num, true))
		return near_mask(nics, num, dev, true);
	return divides(nics, num, false) ? near_mask(nics, num, dev, false) : (1u << num) - 1;
}
