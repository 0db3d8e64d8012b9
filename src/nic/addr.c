/* SPDX-License-Identifier: Apache-2.0 */
/* addr.c - an IP address with its prefix length, what two have in common, and providers. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/addr.h"

size_t mesh_addr_size(enum mesh_family family)
{
	switch (family) {
	case MESH_FAMILY_IPV4:
		return 4;
	case MESH_FAMILY_IPV6:
		return 16;
	case MESH_FAMILY_NONE:
		break;
	}
	return 0;
}

bool mesh_addr_is_link_local(const struct mesh_addr *addr)
{
	if (addr->family == MESH_FAMILY_IPV4) /* RFC 3927 */
		return addr->bytes[0] == 169 && addr->bytes[1] == 254;
	if (addr->family == MESH_FAMILY_IPV6) /* RFC 4291, fe80::/10 */
		return addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80;
	return false;
}

bool mesh_addr_is_loopback(const struct mesh_addr *addr)
{
	static const uint8_t one[16] = {[15] = 1};

	if (addr->family == MESH_FAMILY_IPV4)
		return addr->bytes[0] == 127;
	return addr->family == MESH_FAMILY_IPV6 && !memcmp(addr->bytes, one, sizeof(one));
}

bool mesh_addr_equal(const struct mesh_addr *a, const struct mesh_addr *b)
{
	return a->family == b->family && a->scope_id == b->scope_id &&
	       !memcmp(a->bytes, b->bytes, mesh_addr_size(a->family));
}

/* True when the first @bits of both are equal. */
static bool bits_equal(const uint8_t *a, const uint8_t *b, size_t bits)
{
	size_t whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

	return !memcmp(a, b, whole) && (!(bits % 8) || !((a[whole] ^ b[whole]) & mask));
}

bool mesh_addr_in_subnet(const struct mesh_addr *addr, const struct mesh_addr *subnet)
{
	size_t all = 8 * mesh_addr_size(subnet->family);

	if (addr->family != subnet->family || subnet->prefix_len > all)
		return false;
	if (!subnet->has_peer)
		return bits_equal(addr->bytes, subnet->bytes, subnet->prefix_len);
	return bits_equal(addr->bytes, subnet->peer, subnet->prefix_len) ||
	       bits_equal(addr->bytes, subnet->bytes, all);
}

/* True if @other may be the peer of @addr: @addr is a whole address whose peer is not known. */
static bool peer_is_possible(const struct mesh_addr *addr, const struct mesh_addr *other)
{
	return !addr->has_peer && addr->prefix_len == 8 * mesh_addr_size(addr->family) &&
	       other->has_peer;
}

bool mesh_addr_same_subnet(const struct mesh_addr *a, const struct mesh_addr *b)
{
	bool a_reaches = mesh_addr_in_subnet(b, a), b_reaches = mesh_addr_in_subnet(a, b);

	if (a->family == MESH_FAMILY_NONE)
		return false;
	return (a_reaches && (b_reaches || peer_is_possible(b, a))) ||
	       (b_reaches && peer_is_possible(a, b));
}

void mesh_addr_pair(const struct mesh_addr *ours, int num_ours, const struct mesh_addr *theirs,
		    int num_theirs, int *partners)
{
	uint64_t taken = 0;
	int any, i, k;

	for (i = 0; i < num_ours; i++)
		partners[i] = -1;
	for (any = 0; any <= 1; any++) {
		for (i = 0; i < num_ours; i++) {
			for (k = 0; k < num_theirs && partners[i] < 0; k++) {
				if (taken >> k & 1 ||
				    !(any || mesh_addr_same_subnet(&ours[i], &theirs[k])))
					continue;
				taken |= (uint64_t)1 << k;
				partners[i] = k;
			}
		}
	}
}

/* Reads a prefix length of at most @max bits. */
static int prefix_len_parse(const char *text, size_t max, uint8_t *prefix_len)
{
	unsigned long value;
	char *end;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || value > max)
		return -EINVAL;
	*prefix_len = (uint8_t)value;
	return 0;
}

int mesh_addr_parse(const char *text, struct mesh_addr *addr)
{
	struct mesh_addr result = {.family = MESH_FAMILY_IPV4};
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char host[INET6_ADDRSTRLEN];
	size_t bits;

	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = '\0';
	if (inet_pton(AF_INET, host, result.bytes) != 1) {
		result.family = MESH_FAMILY_IPV6;
		if (inet_pton(AF_INET6, host, result.bytes) != 1)
			return -EINVAL;
	}
	bits = 8 * mesh_addr_size(result.family);
	result.prefix_len = (uint8_t)bits;
	if (slash && prefix_len_parse(slash + 1, bits, &result.prefix_len))
		return -EINVAL;
	*addr = result;
	return 0;
}

const char *mesh_addr_text(const struct mesh_addr *addr, char *text)
{
	int family = addr->family == MESH_FAMILY_IPV4 ? AF_INET : AF_INET6;
	char host[INET6_ADDRSTRLEN];

	if (addr->family == MESH_FAMILY_NONE || !inet_ntop(family, addr->bytes, host, sizeof(host)))
		snprintf(text, MESH_ADDR_TEXT_MAX, "no address");
	else if (addr->scope_id)
		snprintf(text, MESH_ADDR_TEXT_MAX, "%s%%%u", host, addr->scope_id);
	else
		snprintf(text, MESH_ADDR_TEXT_MAX, "%s", host);
	return text;
}

const char *mesh_addr_text_prefix(const struct mesh_addr *addr, char *text)
{
	size_t len;

	mesh_addr_text(addr, text);
	len = strlen(text);
	if (addr->family != MESH_FAMILY_NONE)
		snprintf(text + len, MESH_ADDR_TEXT_MAX - len, "/%u", addr->prefix_len);
	return text;
}

bool mesh_addr_from_bytes(int family, const void *bytes, size_t len, struct mesh_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	addr->family = family == AF_INET    ? MESH_FAMILY_IPV4
		       : family == AF_INET6 ? MESH_FAMILY_IPV6
					    : MESH_FAMILY_NONE;
	if (!addr->family || len != mesh_addr_size(addr->family))
		return false;
	addr->prefix_len = (uint8_t)(8 * len);
	memcpy(addr->bytes, bytes, len);
	return true;
}

socklen_t mesh_addr_to_sockaddr(const struct mesh_addr *addr, uint16_t port,
				struct sockaddr_storage *sockaddr)
{
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in in4 = {.sin_family = AF_INET, .sin_port = htons(port)};

	memset(sockaddr, 0, sizeof(*sockaddr));
	switch (addr->family) {
	case MESH_FAMILY_IPV4:
		memcpy(&in4.sin_addr, addr->bytes, 4);
		memcpy(sockaddr, &in4, sizeof(in4));
		return sizeof(in4);
	case MESH_FAMILY_IPV6:
		memcpy(&in6.sin6_addr, addr->bytes, 16);
		in6.sin6_scope_id = addr->scope_id;
		memcpy(sockaddr, &in6, sizeof(in6));
		return sizeof(in6);
	case MESH_FAMILY_NONE:
		break;
	}
	return 0;
}

int mesh_addr_from_sockaddr(const struct sockaddr *sockaddr, size_t len, struct mesh_addr *addr,
			    uint16_t *port)
{
	struct mesh_addr result;
	struct sockaddr_in6 in6;
	struct sockaddr_in in4;
	uint16_t net_port;

	if (len >= sizeof(in4) && sockaddr->sa_family == AF_INET) {
		memcpy(&in4, sockaddr, sizeof(in4));
		mesh_addr_from_bytes(AF_INET, &in4.sin_addr, 4, &result);
		net_port = in4.sin_port;
	} else if (len >= sizeof(in6) && sockaddr->sa_family == AF_INET6) {
		memcpy(&in6, sockaddr, sizeof(in6));
		mesh_addr_from_bytes(AF_INET6, &in6.sin6_addr, 16, &result);
		result.scope_id = in6.sin6_scope_id;
		net_port = in6.sin6_port;
	} else {
		return -EINVAL;
	}
	*addr = result;
	if (port)
		*port = ntohs(net_port);
	return 0;
}

/* ---- endpoints ------------------------------------------------------------------------------ */

static const char *const provider_names[] = {
	[MESH_PROVIDER_NONE] = "none",
	[MESH_PROVIDER_VERBS_RXM] = "verbs;ofi_rxm",
	[MESH_PROVIDER_TCP] = "tcp",
	[MESH_PROVIDER_TCP_RXM] = "tcp;ofi_rxm",
};

const char *mesh_provider_id_text(enum mesh_provider_id id)
{
	return id <= MESH_PROVIDER_ID_MAX ? provider_names[id] : "unknown";
}

enum mesh_provider_id mesh_provider_id_parse(const char *text)
{
	int id;

	if (!strcmp(text, "net"))
		return MESH_PROVIDER_TCP;
	for (id = MESH_PROVIDER_VERBS_RXM; id <= MESH_PROVIDER_ID_MAX; id++) {
		if (!strcmp(text, provider_names[id]))
			return (enum mesh_provider_id)id;
	}
	return MESH_PROVIDER_NONE;
}

bool mesh_provider_list_falls_back(const char *text)
{
	return !strcmp(text, "verbs;ofi_rxm,tcp") || !strcmp(text, "verbs;ofi_rxm,net");
}
