/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs_rdma.c - finds the RDMA port behind each NIC. */
#include <errno.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "nic/rdma_port.h"
#include "system/sysfs.h"

#define CLASS "class/infiniband"
/* A port number is a byte (rdma_is_port_valid); a GID index fits 16 bits. */
#define PORT_MAX 255
#define GID_INDEX_MAX 65535

/* An entry of a GID table, and its netdev. */
struct port_gid {
	struct mesh_gid gid;
	char netdev[IF_NAMESIZE]; /* "" if the kernel does not report it */
};

struct rdma_port {
	struct mesh_rdma_port rdma; /* without its gids */
	char pci_path[PATH_MAX];    /* "" for soft-RoCE */
	char parent[IF_NAMESIZE];   /* netdev of soft-RoCE, else "" */
	int num_siblings;	    /* ports of the device, including this one */
	struct port_gid *gids;	    /* owned; the entries that are not empty */
	int num_gids;
};

struct rdma_ports {
	struct rdma_port *ports; /* owned */
	int num;
};

/* Why a port belongs to a NIC, from the weakest reason to the strongest. */
enum evidence {
	EVIDENCE_NONE,
	EVIDENCE_PARENT,
	EVIDENCE_HARDWARE, /* the same PCI function; a GID names the netdev, or the number fits */
	EVIDENCE_ADDRESS,  /* a GID is derived from an address of the NIC */
};

static enum mesh_link_layer link_layer_parse(const char *text)
{
	if (!strcmp(text, "InfiniBand"))
		return MESH_LINK_LAYER_INFINIBAND;
	if (!strcmp(text, "Ethernet"))
		return MESH_LINK_LAYER_ETHERNET;
	return MESH_LINK_LAYER_NONE;
}

/* InfiniBand's own GIDs have the name of RoCE v1. */
static enum mesh_gid_type gid_type_of(const char *text, enum mesh_link_layer link_layer)
{
	if (!strcmp(text, "RoCE v2"))
		return MESH_GID_ROCE_V2;
	if (strcmp(text, "IB/RoCE v1"))
		return MESH_GID_UNKNOWN;
	return link_layer == MESH_LINK_LAYER_INFINIBAND ? MESH_GID_IB : MESH_GID_ROCE_V1;
}

/* Reads entry @index of the GID table; false if it is empty or unreadable. */
static bool gid_read(const struct mesh_sysfs *sysfs, const struct mesh_rdma_port *port, int index,
		     struct port_gid *result)
{
	static const uint8_t zero[16];
	char text[64];

	memset(result, 0, sizeof(*result));
	result->gid.index = index;
	if (mesh_sysfs_read(sysfs, text, sizeof(text), CLASS "/%s/ports/%d/gids/%d", port->device,
			    port->port, index) ||
	    mesh_sysfs_gid_parse(text, result->gid.bytes) ||
	    !memcmp(result->gid.bytes, zero, sizeof(zero)))
		return false;
	/* Reading both files fails (EINVAL) for some entries, and old kernels lack them. */
	if (!mesh_sysfs_read(sysfs, text, sizeof(text), CLASS "/%s/ports/%d/gid_attrs/types/%d",
			     port->device, port->port, index))
		result->gid.type = gid_type_of(text, port->link_layer);
	mesh_sysfs_read(sysfs, result->netdev, sizeof(result->netdev),
			CLASS "/%s/ports/%d/gid_attrs/ndevs/%d", port->device, port->port, index);
	return true;
}

/* Reads the GID table, which has holes in containers. Returns 0 or -ENOMEM. */
static int gids_read(const struct mesh_sysfs *sysfs, struct rdma_port *port)
{
	struct dirent **entries = NULL;
	char path[2 * MESH_RDMA_NAME_MAX];
	uint64_t index;
	int num, i;

	snprintf(path, sizeof(path), CLASS "/%s/ports/%d/gids", port->rdma.device, port->rdma.port);
	num = mesh_sysfs_list(sysfs, path, &entries);
	if (num < 0)
		return num == -ENOMEM ? num : 0;
	port->gids = calloc((size_t)num + 1, sizeof(*port->gids));
	for (i = 0; port->gids && i < num; i++) {
		if (mesh_sysfs_number_parse(entries[i]->d_name, GID_INDEX_MAX, &index))
			continue;
		port->num_gids +=
			gid_read(sysfs, &port->rdma, (int)index, &port->gids[port->num_gids]);
	}
	mesh_sysfs_list_free(entries, num);
	return port->gids ? 0 : -ENOMEM;
}

/* Finds the character device that programs open to use @device. */
static void uverbs_read(const struct mesh_sysfs *sysfs, struct mesh_rdma_port *rdma)
{
	struct dirent **entries = NULL;
	char device[MESH_RDMA_NAME_MAX];
	int i, num;

	num = mesh_sysfs_list(sysfs, "class/infiniband_verbs", &entries);
	for (i = 0; i < num; i++) {
		if (strlen(entries[i]->d_name) < sizeof(rdma->uverbs) &&
		    !mesh_sysfs_read(sysfs, device, sizeof(device),
				     "class/infiniband_verbs/%s/ibdev", entries[i]->d_name) &&
		    !strcmp(device, rdma->device))
			strcpy(rdma->uverbs, entries[i]->d_name);
	}
	mesh_sysfs_list_free(entries, num);
}

static void device_read(const struct mesh_sysfs *sysfs, struct rdma_port *port)
{
	const char *device = port->rdma.device;
	char path[2 * MESH_RDMA_NAME_MAX], text[64];
	unsigned int guid[4]; /* "0002:c903:00ef:1234" */

	if (!mesh_sysfs_read(sysfs, text, sizeof(text), CLASS "/%s/node_guid", device) &&
	    sscanf(text, "%4x:%4x:%4x:%4x", &guid[0], &guid[1], &guid[2], &guid[3]) == 4)
		port->rdma.node_guid = (uint64_t)guid[0] << 48 | (uint64_t)guid[1] << 32 |
				       (uint64_t)guid[2] << 16 | guid[3];
	/* "4: RNIC" of the kernel's node_type_show(). */
	if (!mesh_sysfs_read(sysfs, text, sizeof(text), CLASS "/%s/node_type", device) &&
	    text[0] == '4' && text[1] == ':')
		port->rdma.link_layer = MESH_LINK_LAYER_IWARP;
	uverbs_read(sysfs, &port->rdma);
	mesh_sysfs_read(sysfs, port->parent, sizeof(port->parent), CLASS "/%s/parent", device);
	snprintf(path, sizeof(path), CLASS "/%s/device", device);
	mesh_sysfs_pci_path(sysfs, path, port->pci_path);
}

/* Fills in all but the names. Returns 0, -EINVAL for an unusable port, -ENOMEM. */
static int port_read(const struct mesh_sysfs *sysfs, struct rdma_port *port)
{
	struct mesh_rdma_port *rdma = &port->rdma;
	unsigned int gbps, tenth = 0; /* "2.5 Gb/sec (1X SDR)", "100 Gb/sec (4X EDR)" */
	char text[64];

	if (!mesh_sysfs_read(sysfs, text, sizeof(text), CLASS "/%s/ports/%d/link_layer",
			     rdma->device, rdma->port))
		rdma->link_layer = link_layer_parse(text);
	if (rdma->link_layer == MESH_LINK_LAYER_NONE)
		return -EINVAL;
	mesh_sysfs_read(sysfs, rdma->state, sizeof(rdma->state), CLASS "/%s/ports/%d/state",
			rdma->device, rdma->port);
	if (!mesh_sysfs_read(sysfs, text, sizeof(text), CLASS "/%s/ports/%d/rate", rdma->device,
			     rdma->port) &&
	    sscanf(text, "%5u.%1u", &gbps, &tenth) >= 1)
		rdma->speed_mbps = (int)(gbps * 1000 + tenth * 100);
	device_read(sysfs, port);
	return gids_read(sysfs, port);
}

static struct rdma_port *port_add(struct rdma_ports *ports, const char *device, int number)
{
	struct rdma_port *list;

	list = mesh_array_room(ports->ports, (size_t)ports->num, sizeof(*list));
	if (!list)
		return NULL;
	ports->ports = list;
	list += ports->num++;
	memset(list, 0, sizeof(*list));
	snprintf(list->rdma.device, sizeof(list->rdma.device), "%s", device);
	list->rdma.port = number;
	return list;
}

/* Adds the ports of one device. Returns 0 or -ENOMEM. */
static int device_ports_read(const struct mesh_sysfs *sysfs, const char *device,
			     struct rdma_ports *ports)
{
	struct dirent **entries = NULL;
	char path[2 * MESH_RDMA_NAME_MAX];
	int num, i, first = ports->num, ret = 0;
	struct rdma_port *port;
	uint64_t number;

	if (strlen(device) >= MESH_RDMA_NAME_MAX)
		return 0;
	snprintf(path, sizeof(path), CLASS "/%s/ports", device);
	num = mesh_sysfs_list(sysfs, path, &entries);
	for (i = 0; i < num && ret != -ENOMEM; i++) {
		if (mesh_sysfs_number_parse(entries[i]->d_name, PORT_MAX, &number) || !number)
			continue;
		port = port_add(ports, device, (int)number);
		ret = port ? port_read(sysfs, port) : -ENOMEM;
		if (ret == -EINVAL) {
			mesh_trace("%s port %d has an unknown link layer", device, (int)number);
			ports->num--;
		}
	}
	mesh_sysfs_list_free(entries, num);
	for (i = first; i < ports->num; i++)
		ports->ports[i].num_siblings = ports->num - first;
	return ret == -ENOMEM || num == -ENOMEM ? -ENOMEM : 0;
}

static void ports_free(struct rdma_ports *ports)
{
	int i;

	for (i = 0; i < ports->num; i++)
		free(ports->ports[i].gids);
	free(ports->ports);
}

/* Reads every RDMA port; there may be none. Returns 0 or -ENOMEM. */
static int ports_load(const struct mesh_sysfs *sysfs, struct rdma_ports *ports)
{
	int num, i, ret = 0;
	struct dirent **entries = NULL;

	memset(ports, 0, sizeof(*ports));
	num = mesh_sysfs_list(sysfs, CLASS, &entries);
	if (num < 0)
		return num == -ENOMEM ? num : 0;
	for (i = 0; i < num && !ret; i++)
		ret = device_ports_read(sysfs, entries[i]->d_name, ports);
	mesh_sysfs_list_free(entries, num);
	if (ret)
		ports_free(ports);
	return ret;
}

/* The first GID of RoCE is fe80:: and the MAC as EUI-64; the only GID of iWARP is MAC and zeros. */
static bool gid_is_mac(const uint8_t *gid, const uint8_t *mac)
{
	const uint8_t roce[16] = {0xfe, 0x80, [8] = mac[0] ^ 2, mac[1], mac[2],
				  0xff, 0xfe, mac[3],		mac[4], mac[5]};
	const uint8_t iwarp[16] = {mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]};

	return !memcmp(gid, roce, 16) || !memcmp(gid, iwarp, 16);
}

static bool gid_is_nics(const struct port_gid *entry, const struct mesh_nic *nic)
{
	int i;

	if (*entry->netdev && strcmp(entry->netdev, nic->netdev))
		return false;
	for (i = 0; i < nic->num_addrs; i++)
		if (mesh_gid_is_addr(entry->gid.bytes, &nic->addrs[i]))
			return true;
	return gid_is_mac(entry->gid.bytes, nic->mac);
}

/* True if both are known and differ beyond the function number, in which ports of a LAG differ. */
static bool on_different_cards(const char *pci_a, const char *pci_b)
{
	const char *dot_a = strrchr(pci_a, '.'), *dot_b = strrchr(pci_b, '.');

	return dot_a && dot_b &&
	       (dot_a - pci_a != dot_b - pci_b || memcmp(pci_a, pci_b, (size_t)(dot_a - pci_a)));
}

/* True if @port is the netdev's among several ports. */
static bool port_number_fits(const struct mesh_sysfs *sysfs, const struct mesh_nic *nic,
			     const struct rdma_port *port)
{
	uint64_t dev_port = 0;

	if (port->num_siblings == 1)
		return true;
	mesh_sysfs_read_number(sysfs, PORT_MAX, &dev_port, "class/net/%s/dev_port", nic->netdev);
	return dev_port + 1 == (uint64_t)port->rdma.port;
}

static enum evidence infiniband_evidence(const struct mesh_sysfs *sysfs, const struct mesh_nic *nic,
					 const struct rdma_port *port)
{
	bool same_pci = *nic->pci_path && !strcmp(nic->pci_path, port->pci_path);
	int i;

	for (i = 0; i < port->num_gids; i++)
		if (!memcmp(port->gids[i].gid.bytes + 8, nic->mac, 8))
			return EVIDENCE_ADDRESS;
	return same_pci && !port->num_gids && port_number_fits(sysfs, nic, port) ? EVIDENCE_HARDWARE
										 : EVIDENCE_NONE;
}

static enum evidence ethernet_evidence(const struct mesh_sysfs *sysfs, const struct mesh_nic *nic,
				       const struct rdma_port *port)
{
	bool same_pci = *nic->pci_path && !strcmp(nic->pci_path, port->pci_path);
	bool names_this = false, names_any = false;
	int i;

	if (on_different_cards(nic->pci_path, port->pci_path))
		return EVIDENCE_NONE;
	for (i = 0; i < port->num_gids; i++) {
		if (gid_is_nics(&port->gids[i], nic))
			return EVIDENCE_ADDRESS;
		names_any |= *port->gids[i].netdev != '\0';
		names_this |= !strcmp(port->gids[i].netdev, nic->netdev);
	}
	if (same_pci && (names_this || (!names_any && port_number_fits(sysfs, nic, port))))
		return EVIDENCE_HARDWARE;
	if (!port->num_gids && !*port->pci_path && !strcmp(port->parent, nic->netdev))
		return EVIDENCE_PARENT;
	return EVIDENCE_NONE;
}

static enum evidence port_evidence(const struct mesh_sysfs *sysfs, const struct mesh_nic *nic,
				   const struct rdma_port *port)
{
	bool infiniband = nic->link_type == ARPHRD_INFINIBAND;

	if (infiniband != (port->rdma.link_layer == MESH_LINK_LAYER_INFINIBAND))
		return EVIDENCE_NONE;
	return infiniband ? infiniband_evidence(sysfs, nic, port)
			  : ethernet_evidence(sysfs, nic, port);
}

/* Copies the port's facts, and those of its GIDs that belong to this NIC. */
static void port_adopt(struct mesh_nic *nic, const struct rdma_port *port)
{
	struct mesh_rdma_port *rdma = &nic->rdma;
	int i, num = 0;

	*rdma = port->rdma;
	for (i = 0; i < port->num_gids; i++) {
		const struct port_gid *entry = &port->gids[i];

		if (*entry->netdev && strcmp(entry->netdev, nic->netdev))
			continue;
		if (num < MESH_NIC_GIDS_MAX)
			rdma->gids[num] = entry->gid;
		num++;
	}
	rdma->num_gids = num < MESH_NIC_GIDS_MAX ? num : MESH_NIC_GIDS_MAX;
	if (num > MESH_NIC_GIDS_MAX)
		mesh_trace("%s has %d GIDs; %d are ignored", nic->netdev, num,
			   num - MESH_NIC_GIDS_MAX);
	if (*port->pci_path)
		memcpy(nic->pci_path, port->pci_path, sizeof(nic->pci_path));
	/* Only newer kernels report a speed for IPoIB; the rate of a RoCE port is rounded. */
	if (mesh_rdma_port_is_active(rdma) && rdma->speed_mbps &&
	    (!nic->speed_mbps || rdma->link_layer == MESH_LINK_LAYER_INFINIBAND))
		nic->speed_mbps = rdma->speed_mbps;
}

/* Logs InfiniBand ports that the mesh cannot use because IPoIB is missing: no NIC shows them. */
static void lonely_ports_log(const struct rdma_ports *ports, const struct mesh_nic *nics,
			     int num_nics)
{
	const struct mesh_rdma_port *rdma;
	int i, k;

	for (i = 0; i < ports->num; i++) {
		rdma = &ports->ports[i].rdma;
		for (k = 0; k < num_nics; k++)
			if (!strcmp(nics[k].rdma.device, rdma->device) &&
			    nics[k].rdma.port == rdma->port)
				break;
		if (k == num_nics && rdma->link_layer == MESH_LINK_LAYER_INFINIBAND)
			mesh_info("%s port %d (InfiniBand, %s) has no network interface here, and "
				  "RDMA needs an IPoIB address to find its peers: load ib_ipoib",
				  rdma->device, rdma->port, rdma->state);
	}
}

int mesh_sysfs_rdma_load(const struct mesh_sysfs *sysfs, struct mesh_nic *nics, int num_nics)
{
	const struct rdma_port *best;
	enum evidence evidence, strongest;
	struct rdma_ports ports;
	int i, k, ret;

	ret = ports_load(sysfs, &ports);
	if (ret)
		return ret;
	for (i = 0; i < num_nics; i++) {
		strongest = EVIDENCE_NONE;
		best = NULL;
		for (k = 0; k < ports.num; k++) {
			evidence = port_evidence(sysfs, &nics[i], &ports.ports[k]);
			if (evidence > strongest) {
				strongest = evidence;
				best = &ports.ports[k];
			}
		}
		if (best)
			port_adopt(&nics[i], best);
	}
	lonely_ports_log(&ports, nics, num_nics);
	ports_free(&ports);
	return 0;
}
