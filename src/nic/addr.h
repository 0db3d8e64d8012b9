/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr.h - an IP address with its prefix length, what two of them have in common, and the NIC with
 * its fabric endpoint at such an address, as other nodes see it.
 */
#ifndef MESH_NIC_ADDR_H
#define MESH_NIC_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum mesh_family {
	MESH_FAMILY_NONE = 0,
	MESH_FAMILY_IPV4 = 4,
	MESH_FAMILY_IPV6 = 6
};

/* An address as a NIC carries it. Bytes are in network order; IPv4 uses the first four. */
struct mesh_addr {
	enum mesh_family family;
	uint8_t prefix_len; /* bits of the subnet, 0..32 or 0..128 */
	uint8_t bytes[16];
	uint32_t scope_id; /* interface index, for IPv6 link-local addresses; else 0 */
	/*
	 * A point-to-point link (ip address add A peer B): the subnet behind the NIC is the peer's,
	 * usually the peer's address alone. Only the node itself knows it: neither the handle nor a
	 * frame carries it.
	 */
	bool has_peer;
	uint8_t peer[16];
};

/* "[fd00::1%4294967295]:65535/128" fits. */
#define MESH_ADDR_TEXT_MAX 80

/** Number of bytes of an address of this family: 4, 16, or 0 for MESH_FAMILY_NONE. */
size_t mesh_addr_size(enum mesh_family family);

/** True for 169.254/16 and fe80::/10. */
bool mesh_addr_is_link_local(const struct mesh_addr *addr);

/** True for 127/8 and ::1. */
bool mesh_addr_is_loopback(const struct mesh_addr *addr);

/** True when family, bytes and scope are equal; the prefix length is ignored. */
bool mesh_addr_equal(const struct mesh_addr *a, const struct mesh_addr *b);

/**
 * True when each address lies in the other's subnet by its real prefix length. Both directions
 * are checked, so that a /30 and a /24 that overlap count as one link only if each host finds the
 * other in its subnet. A whole address (/32, /128) of another node may have a peer that the handle
 * does not carry: it matches if it is the peer of the other address.
 */
bool mesh_addr_same_subnet(const struct mesh_addr *a, const struct mesh_addr *b);

/**
 * Finds which NICs at the two ends of a cable belong to each other: those that share a subnet, and
 * then the others, in their order.
 *
 * @theirs: 64 at most
 * @partners: receives the index of the partner of each of ours, or -1
 */
void mesh_addr_pair(const struct mesh_addr *ours, int num_ours, const struct mesh_addr *theirs,
		    int num_theirs, int *partners);

/**
 * True when @addr lies in the subnet behind the NIC that has @subnet (by @subnet's prefix length
 * only), or is @subnet's own address.
 */
bool mesh_addr_in_subnet(const struct mesh_addr *addr, const struct mesh_addr *subnet);

/**
 * Reads "10.1.0.1", "10.1.0.0/24", "fd00::1" or "fd00::/64" with nothing behind it. Without a
 * prefix length it is 32 or 128.
 *
 * Returns 0, or -EINVAL; @addr is written on success only.
 */
int mesh_addr_parse(const char *text, struct mesh_addr *addr);

/** Writes "10.1.0.1" or "fe80::1%3" into @text (MESH_ADDR_TEXT_MAX bytes); returns @text. */
const char *mesh_addr_text(const struct mesh_addr *addr, char *text);

/** As mesh_addr_text, with the prefix length: "10.1.0.1/24". */
const char *mesh_addr_text_prefix(const struct mesh_addr *addr, char *text);

/**
 * Fills @addr with the whole address, of @len bytes, of the family AF_INET or AF_INET6. Returns
 * false for another family or length.
 */
bool mesh_addr_from_bytes(int family, const void *bytes, size_t len, struct mesh_addr *addr);

/** Fills @sockaddr from @addr and @port (host order); returns its bytes, 0 for no family. */
socklen_t mesh_addr_to_sockaddr(const struct mesh_addr *addr, uint16_t port,
				struct sockaddr_storage *sockaddr);

/**
 * Reads address and port (host order, may be NULL) from @sockaddr of @len bytes.
 * The prefix length becomes 32 or 128. Returns 0, or -EINVAL for another family or too few bytes.
 */
int mesh_addr_from_sockaddr(const struct sockaddr *sockaddr, size_t len, struct mesh_addr *addr,
			    uint16_t *port);

/* ---- endpoints ------------------------------------------------------------------------------ */

/*
 * Two nodes can communicate only with equal ids: libfabric's tcp and tcp;ofi_rxm connect to each
 * other and then hang. Values are part of the wire format; two bits in the handle.
 */
enum mesh_provider_id {
	MESH_PROVIDER_NONE = 0,
	MESH_PROVIDER_VERBS_RXM = 1,
	MESH_PROVIDER_TCP = 2, /* called "net" by libfabric 1.16 and 1.17 */
	MESH_PROVIDER_TCP_RXM = 3,
};

#define MESH_PROVIDER_ID_MAX MESH_PROVIDER_TCP_RXM

/** True if @providers, in which bit N is for id N, have RDMA. */
static inline bool mesh_providers_have_rdma(unsigned int providers)
{
	return providers >> MESH_PROVIDER_VERBS_RXM & 1;
}

/** The name that users know: "verbs;ofi_rxm", "tcp", "tcp;ofi_rxm", or "none". Never NULL. */
const char *mesh_provider_id_text(enum mesh_provider_id id);

/** Reads such a name ("net" means tcp); MESH_PROVIDER_NONE for any other text. */
enum mesh_provider_id mesh_provider_id_parse(const char *text);

/**
 * True for the list "verbs;ofi_rxm,tcp" ("net" means tcp): tcp is allowed also where both ends have
 * RDMA and it does not get through. mesh_provider_id_parse() returns MESH_PROVIDER_NONE for it.
 */
bool mesh_provider_list_falls_back(const char *text);

/* More mesh NICs than this are not used: the index travels in four bits of the handle. */
#define MESH_NICS_MAX 16

struct mesh_endpoint_addr {
	struct mesh_addr addr; /* scope_id is not carried: it is only valid on its own node */
	uint16_t port;	       /* of the fabric endpoint, host order */
	uint8_t nic;	       /* index among that node's mesh NICs */
	enum mesh_provider_id provider; /* the best one of that NIC */
	bool also_tcp;			/* tcp as well, for NICs that lack the best one */
	bool reserve;			/* used only if no other NICs connect the two nodes */
	int speed_mbps; /* 0 where unknown; the handle has no room for it, HELLO has */
};

#endif
