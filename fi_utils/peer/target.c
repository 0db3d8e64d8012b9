/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - the nodes that `fi_mesh check --peer` is asked to check: addresses or names. */
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/options.h"
#include "peer/checker.h"

/* ---- what the user wrote ------------------------------------------------------------------ */

/* The index of "eth0" or "3"; 0 if this node has no such interface. */
static uint32_t zone_index(const char *zone)
{
	char name[IF_NAMESIZE];
	unsigned long number;

	if (argument_number(zone, 1, UINT32_MAX, &number))
		return if_indextoname((unsigned int)number, name) ? (uint32_t)number : 0;
	return if_nametoindex(zone);
}

/* An address with a zone behind it. Returns 0 or -EINVAL. */
static int zoned_parse(const char *text, const char *percent, struct mesh_addr *addr,
		       const char **why)
{
	char host[MESH_ADDR_TEXT_MAX];

	snprintf(host, sizeof(host), "%.*s", (int)(percent - text), text);
	if (mesh_addr_parse(host, addr) || addr->family != MESH_FAMILY_IPV6 ||
	    !mesh_addr_is_link_local(addr)) {
		*why = "only an IPv6 link-local address takes %INTERFACE";
		return -EINVAL;
	}
	addr->scope_id = zone_index(percent + 1);
	if (addr->scope_id)
		return 0;
	*why = "this node has no such interface";
	return -EINVAL;
}

static bool is_host_name(const char *text)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-._";

	return *text && *text != '-' && *text != '.' && !text[strspn(text, allowed)] &&
	       text[strspn(text, "0123456789.")];
}

int peer_target_parse(const char *text, struct peer_target *target, const char **why)
{
	const char *percent = strchr(text, '%');

	memset(target, 0, sizeof(*target));
	if (strlen(text) >= sizeof(target->text)) {
		*why = "too long for an address or a host name";
		return -EINVAL;
	}
	strcpy(target->text, text);
	if (percent) {
		target->num_addrs = 1;
		return zoned_parse(text, percent, &target->addrs[0], why);
	}
	if (!strchr(text, '/') && !mesh_addr_parse(text, &target->addrs[0])) {
		target->num_addrs = 1;
		return 0;
	}
	*why = "neither an IP address nor a host name";
	return is_host_name(text) ? 0 : -EINVAL;
}

/* ---- names -------------------------------------------------------------------------------- */

static bool neighbour_find(struct peer_target *target, const struct mesh_asking *asking)
{
	const struct mesh_heard *heard;
	struct mesh_heard_at at = {0};

	while (target->num_addrs < PEER_TARGET_ADDRS_MAX &&
	       (heard = mesh_asking_heard_next(asking, 0, 0, &at))) {
		if (!strcmp(heard->about.node, target->text))
			target->addrs[target->num_addrs++] = heard->from;
	}
	return target->num_addrs > 0;
}

int peer_target_resolve(struct peer_target *target, const struct mesh_asking *asking,
			const char **why)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found, *entry;
	int ret;

	if (target->num_addrs || neighbour_find(target, asking))
		return 0;
	ret = getaddrinfo(target->text, NULL, &hints, &found);
	if (ret) {
		*why = gai_strerror(ret);
		return -ENOENT;
	}
	for (entry = found; entry && target->num_addrs < PEER_TARGET_ADDRS_MAX;
	     entry = entry->ai_next)
		if (!mesh_addr_from_sockaddr(entry->ai_addr, entry->ai_addrlen,
					     &target->addrs[target->num_addrs], NULL))
			target->num_addrs++;
	freeaddrinfo(found);
	*why = "it has no IP address";
	return target->num_addrs ? 0 : -ENOENT;
}
