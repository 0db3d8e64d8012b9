/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nic.h - a NIC: what the kernel says of it (src/system fills that in), what that makes of it, and
 * the table of a node's NICs.
 */
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

/* Further addresses of a NIC are skipped. */
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
	MESH_LINK_LAYER_IWARP, /* RDMA over TCP on Ethernet, not RoCE */
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
	char uverbs[16];    /* its file in /dev/infiniband, "uverbs0"; "" where unknown */
	char state[32];	    /* as the kernel prints it, "4: ACTIVE" */
	uint64_t node_guid; /* 0 where unknown */
	int speed_mbps;	    /* 0 where unknown */
	struct mesh_gid gids[MESH_NIC_GIDS_MAX];
	int num_gids;
};

/** True in IB_PORT_ACTIVE of the kernel's enum ib_port_state. */
static inline bool mesh_rdma_port_is_active(const struct mesh_rdma_port *port)
{
	return port->state[0] == '4' && port->state[1] == ':';
}

/* Ports of NICs that the kernel does not tell apart; UNSURE: it names them, but not their card. */
#define MESH_NIC_PORT_NONE 0
#define MESH_NIC_PORT_UNSURE UINT64_MAX

enum mesh_nic_state {
	MESH_NIC_DOWN, /* by an administrator */
	MESH_NIC_NO_CARRIER,
	MESH_NIC_STARTING, /* has a carrier, but is not IFF_RUNNING yet: cannot be used */
	MESH_NIC_RUNS,
};

/* What shows that the rest of the system uses it as the network that reaches every node. */
enum mesh_nic_management {
	MESH_NIC_NO_MANAGEMENT,
	MESH_NIC_DEFAULT_ROUTE, /* a default route of the main table leaves here */
};

enum mesh_nic_verdict {
	MESH_NIC_SKIPPED,
	MESH_NIC_TAKEN,		/* it is a mesh NIC */
	MESH_NIC_NO_PROVIDER,	/* skipped because libfabric offers no provider for it */
	MESH_NIC_LINK_DOWN,	/* it is none now, and would be one if its link was up */
	MESH_NIC_SPARE,		/* left as part of the management network */
	MESH_NIC_SPARE_NO_RDMA, /* left only because it has no RDMA */
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
	uint64_t port_id;   /* the same for all NICs of a port, or MESH_NIC_PORT_... */
	enum mesh_nic_management management;
	uint8_t mac[8]; /* the last 8 bytes of a longer one (IPoIB) */
	enum mesh_nic_state state;
	int mtu;		       /* bytes */
	int speed_mbps;		       /* of the netdev or the RDMA port; 0 where unknown */
	char pci_path[PATH_MAX];       /* real path of the PCI device, "" where there is none */
	struct mesh_pci_link pci_link; /* in fi_mesh only: common/pci_link.h */
	int numa_node;		       /* of the PCI device; -1 where unknown */
	uint64_t guid;		       /* with port: distinct for each physical port */
	int port;
	struct mesh_rdma_port rdma;
	struct mesh_addr addrs[MESH_NIC_ADDRS_MAX];
	int num_addrs;
	int num_primary; /* the first ones; the others are secondary or deprecated */
	int num_unready; /* IPv6 addresses skipped: tentative or duplicate, they cannot be bound */
	struct mesh_addr
		source; /* the address its endpoint is bound to; family NONE if not taken */
	/* What source would be; family NONE but for MESH_NIC_SPARE and MESH_NIC_SPARE_NO_RDMA. */
	struct mesh_addr spare_source;
	enum mesh_nic_verdict verdict;
	char reason[MESH_NIC_REASON_MAX]; /* why it was taken or skipped, for the log */
};

static inline bool mesh_nic_is_taken(const struct mesh_nic *nic)
{
	return nic->verdict == MESH_NIC_TAKEN;
}

static inline bool mesh_nic_has_carrier(const struct mesh_nic *nic)
{
	return nic->state >= MESH_NIC_STARTING;
}

/** True if it has a link that runs, and an address. */
static inline bool mesh_nic_is_usable(const struct mesh_nic *nic)
{
	return nic->state == MESH_NIC_RUNS && nic->num_addrs;
}

/* All NICs of this node, the taken ones first, in a stable order. */
struct mesh_nic_table {
	struct mesh_nic *nics; /* owned */
	int num_nics;
	int num_taken; /* nics[0 .. num_taken - 1]; NCCL's dev is an index into these */
};

/* ---- what it is ------------------------------------------------------------------------------ */

/**
 * Sets kind of each NIC from link_type, link_kind, name and master. MESH_NIC_WIRELESS stays: only
 * sysfs tells.
 *
 * A veth looks the same from both ends. It is a container's host end (MESH_NIC_CONTAINER) if a
 * bridge is its master or if its name is one that container software chooses: veth and six or more
 * hexadecimal digits, cali..., lxc..., ve-..., and the like. Any other veth is the NIC of the
 * container that the process runs in (MESH_NIC_VIRTUAL).
 *
 * @nics: all interfaces of the namespace, so that masters are found
 */
void mesh_nic_classify(struct mesh_nic *nics, int num_nics);

/** The NIC with this ifindex, or NULL. */
const struct mesh_nic *mesh_nic_find(const struct mesh_nic *nics, int num_nics,
				     unsigned int ifindex);

/** What the interface is, in words: "bridge", "no cable (vxlan)". @text: @size bytes; returned. */
const char *mesh_nic_kind_text(const struct mesh_nic *nic, char *text, size_t size);

/* ---- the table ------------------------------------------------------------------------------- */

/**
 * Sorts the table into an order that is the same after each boot, and sets num_taken: taken NICs
 * first; by PCI path (none: last), RDMA port of that PCI function, netdev in natural order (eth2
 * before eth10).
 */
void mesh_nic_table_sort(struct mesh_nic_table *table);

/**
 * Sets guid and port of all NICs: node GUID and port of the RDMA device, else derived from the MAC.
 * NCCL treats NICs with the same pair as one; so a second NIC on the same port (a VLAN) gets a GUID
 * of its own, derived from its name, and no GUID is 0. Call it once the table is in order: the
 * first NIC of a port keeps the port's own GUID.
 */
void mesh_nic_table_identify(struct mesh_nic_table *table);

/**
 * Marks @nic as skipped with the reason @format (without "skipped: "). The order stays: after a
 * taken one, call mesh_nic_table_sort().
 *
 * @verdict: none of a taken NIC
 */
void mesh_nic_leave(struct mesh_nic *nic, enum mesh_nic_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** The reason without "skipped: ", for use below a heading with that word. */
const char *mesh_nic_bare_reason(const struct mesh_nic *nic);

/**
 * Writes "eth1 (10.2.0.1/24): no carrier (cable or peer down); ..." into @text of @size bytes: each
 * NIC that has an address and was skipped because of its link or because it has no provider, and
 * each other skipped NIC that has an address in a subnet of the peer's. "" if there is none.
 *
 * @remote: the peer's addresses, @num_remote of them
 *
 * Returns @text.
 */
const char *mesh_nics_skipped_text(const struct mesh_nic_table *table,
				   const struct mesh_endpoint_addr *remote, int num_remote,
				   char *text, size_t size);

/* ---- near each other ------------------------------------------------------------------------- */

/**
 * Finds the NICs that are near NIC @dev, itself included: those behind the same PCIe switch, if
 * each NIC shares its switch with another; else those of the same NUMA node, if each NIC shares its
 * node with another; else all. So at least two, where there are two.
 *
 * @nics: of one node; @num: MESH_NICS_MAX at most
 * @dev: below @num
 *
 * Returns a bit mask of indices into @nics.
 */
uint32_t mesh_nics_near(const struct mesh_nic *const *nics, int num, int dev);

#endif
