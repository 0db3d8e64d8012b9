/* SPDX-License-Identifier: Apache-2.0 */
/* nic.h - the facts about one NIC. Plain data: src/system fills it in, the layers above read it. */
#ifndef MESH_NIC_NIC_H
#define MESH_NIC_NIC_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nic/addr.h"

/* Lanes, and MT/s of one lane (8000 is PCIe 3.0's "8.0 GT/s"); 0 where unknown. */
struct mesh_pci_link {
	int width, speed_mts;		/* now: LnkSta of lspci -vv */
	int max_width, max_speed_mts;	/* of the card: LnkCap */
	int slot_width, slot_speed_mts; /* of the port above it */
};

/* Further addresses of a NIC are counted and skipped, with a log line. */
#define MESH_NIC_ADDRS_MAX 16
/* "mesh-" and a netdev name; must differ from every RDMA device name (NCCL merges by name). */
#define MESH_NIC_NAME_MAX 32
/* IB_DEVICE_NAME_MAX of the kernel. */
#define MESH_RDMA_NAME_MAX 64
/* "skipped: ", and what a provider lacks, with the remedy (MESH_PROVIDER_REASON_MAX). */
#define MESH_NIC_REASON_MAX 524
#define MESH_NIC_GIDS_MAX 32
/* IFLA_INFO_KIND, "openvswitch"; the kernel's MODULE_NAME_LEN allows more, no driver uses it. */
#define MESH_LINK_KIND_MAX 24

/* What a netdev is; only the first three kinds become mesh NICs unless the user names the NIC. */
enum mesh_nic_kind {
	MESH_NIC_PHYSICAL,   /* has a device behind it (PCI, USB, virtio, ...) */
	MESH_NIC_VIRTUAL,    /* veth inside a network namespace, macvlan, ipvlan, vlan, bond, ... */
	MESH_NIC_INFINIBAND, /* IPoIB */
	MESH_NIC_LOOPBACK,
	MESH_NIC_BRIDGE,    /* bridge, Open vSwitch, docker0, virbr0, ... */
	MESH_NIC_CONTAINER, /* host end of a container's veth pair, tunnel, tap, dummy */
	MESH_NIC_WIRELESS,  /* Wi-Fi */
};

enum mesh_link_layer {
	MESH_LINK_LAYER_NONE, /* no RDMA device behind this NIC */
	MESH_LINK_LAYER_ETHERNET,
	MESH_LINK_LAYER_INFINIBAND,
};

enum mesh_gid_type {
	MESH_GID_UNKNOWN,
	MESH_GID_IB,
	MESH_GID_ROCE_V1,
	MESH_GID_ROCE_V2,
};

struct mesh_gid {
	uint8_t bytes[16];
	int index; /* in the port's GID table */
	enum mesh_gid_type type;
};

/* The RDMA port behind a NIC; device is "" where there is none. */
struct mesh_rdma_port {
	char device[MESH_RDMA_NAME_MAX]; /* "mlx5_0" */
	int port;			 /* from 1 */
	enum mesh_link_layer link_layer;
	bool iwarp;	    /* RDMA over TCP, not RoCE */
	char uverbs[16];    /* its file in /dev/infiniband, "uverbs0"; "" where unknown */
	bool active;	    /* port state 4: ACTIVE */
	char state[32];	    /* as the kernel prints it, "4: ACTIVE" */
	uint64_t node_guid; /* 0 where unknown */
	int speed_mbps;	    /* 0 where unknown */
	struct mesh_gid gids[MESH_NIC_GIDS_MAX];
	int num_gids;
};

struct mesh_nic {
	char netdev[IF_NAMESIZE];
	char name[MESH_NIC_NAME_MAX]; /* what NCCL sees */
	unsigned int ifindex;
	enum mesh_nic_kind kind;
	unsigned short link_type;	    /* ARPHRD_* of linux/if_arp.h */
	char link_kind[MESH_LINK_KIND_MAX]; /* IFLA_INFO_KIND: "veth", "bond"; "" for hardware */
	unsigned int master;		    /* ifindex of its bridge, bond or VRF; 0: none */
	unsigned int lower; /* ifindex of the interface below a VLAN or macvlan; 0: none */
	bool default_route; /* a default route of the main table leaves here */
	bool socket_named;  /* NCCL_SOCKET_IFNAME names it: NCCL's ranks meet here */
	bool wireless;	    /* Wi-Fi, according to sysfs */
	uint8_t mac[8];	    /* the last 8 bytes of a longer one (IPoIB) */
	bool admin_up;
	bool carrier;
	bool starting;		 /* has a carrier, but is not IFF_RUNNING yet: cannot be used */
	bool no_provider;	 /* skipped because libfabric offers no provider for it */
	int mtu;		 /* bytes */
	int speed_mbps;		 /* of the netdev or the RDMA port; 0 where unknown */
	char pci_path[PATH_MAX]; /* real path of the PCI device, "" where there is none */
	struct mesh_pci_link pci_link;
	int numa_node; /* of the PCI device; -1 where unknown */
	uint64_t guid; /* with port: distinct for each physical port */
	int port;
	struct mesh_rdma_port rdma;
	struct mesh_addr addrs[MESH_NIC_ADDRS_MAX];
	int num_addrs;
	int num_unready; /* IPv6 addresses skipped: tentative or duplicate, they cannot be bound */
	struct mesh_addr
		source; /* the address its endpoint is bound to; family NONE if not taken */
	/* What source would be; family NONE unless it is left as part of the management network. */
	struct mesh_addr spare_source;
	bool spare_cable; /* it has spare_source, and is left only because it has no RDMA */
	bool taken;	  /* it is a mesh NIC */
	bool link_down;	  /* it is none now, and would be one if its link was up */
	char reason[MESH_NIC_REASON_MAX]; /* why it was taken or skipped, for the log */
};

/** True if it has a link that runs, and an address. */
static inline bool mesh_nic_is_usable(const struct mesh_nic *nic)
{
	return nic->admin_up && nic->carrier && !nic->starting && nic->num_addrs;
}

/* All NICs of this node, the taken ones first, in a stable order. */
struct mesh_nic_table {
	struct mesh_nic *nics; /* owned */
	int num_nics;
	int num_taken; /* nics[0 .. num_taken - 1]; NCCL's dev is an index into these */
};

#endif
