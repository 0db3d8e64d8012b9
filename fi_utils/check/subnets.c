/* SPDX-License-Identifier: Apache-2.0 */
/* subnets.c - checks that no subnets overlap, or the kernel keeps NICs that share one apart. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"
#include "common/subnet.h"
#include "nic/nic.h"
#include "system/node.h"

/* ---- NICs that share a subnet ----------------------------------------------------------- */

static void arp_judge(const struct check_context *context, const struct mesh_nic *nic,
		      struct check_result *result)
{
	/* ip-sysctl.rst of the kernel. */
	static const struct {
		const char *name, *why;
		int low, high, wanted;
	} rules[] = {
		{"arp_ignore", "it answers ARP requests for the other NIC's address", 1, 2, 1},
		{"arp_announce", "it sends ARP requests with the other NIC's address", 2, 2, 2},
	};
	size_t i;
	int value;

	for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		value = check_ipv4_setting(&context->files, nic->netdev, rules[i].name);
		if (value >= rules[i].low && value <= rules[i].high)
			continue;
		if (value < 0) {
			check_say(result, CHECK_UNKNOWN, "%s of %s cannot be read", rules[i].name,
				  nic->netdev);
			continue;
		}
		check_say(result, CHECK_WARN,
			  "%s shares a subnet with another NIC, and its %s is %d: %s, so packets "
			  "may take the wrong cable",
			  nic->netdev, rules[i].name, value, rules[i].why);
		check_seen(result, "/proc/sys/net/ipv4/conf/{all,%s}/%s", nic->netdev,
			   rules[i].name);
		check_fix(result, "sysctl -w net.ipv4.conf.%s.%s=%d", nic->netdev, rules[i].name,
			  rules[i].wanted);
	}
}

static bool is_own(const struct mesh_nic_table *table, const struct mesh_addr *addr)
{
	int i, k;

	for (i = 0; i < table->num_nics; i++)
		for (k = 0; k < table->nics[i].num_addrs; k++)
			if (mesh_addr_equal(&table->nics[i].addrs[k], addr))
				return true;
	return false;
}

/* With a source route, packets also pass rp_filter=1; without one they are dropped. */
static void rp_filter_judge(const struct check_context *context, const struct mesh_nic *nic,
			    struct check_result *result)
{
	if (check_ipv4_setting(&context->files, nic->netdev, "rp_filter") != 1)
		return;
	check_say(result, CHECK_FAIL,
		  "%s drops packets that arrive there, because the kernel would answer through "
		  "another NIC",
		  nic->netdev);
	check_seen(result, "/proc/sys/net/ipv4/conf/{all,%s}/rp_filter = 1", nic->netdev);
	check_fix(result, "make the source route, or sysctl -w net.ipv4.conf.%s.rp_filter=2",
		  nic->netdev);
}

static void wrong_way_say(const struct check_context *context, const struct mesh_nic *nic,
			  const struct mesh_addr *addr, const char *to, unsigned int ifindex,
			  struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	const struct mesh_nic *other = mesh_nic_find(table->nics, table->num_nics, ifindex);
	char source[MESH_ADDR_TEXT_MAX], net[MESH_ADDR_TEXT_MAX];
	struct mesh_addr subnet = mesh_subnet_of(addr);
	unsigned int number = 1000 + nic->ifindex;

	mesh_addr_text(addr, source);
	mesh_addr_text_prefix(&subnet, net);
	check_say(result, CHECK_FAIL,
		  "what %s sends from its address %s leaves through %s: two NICs share the subnet, "
		  "and no source route separates them",
		  nic->netdev, source, other ? other->netdev : "another interface");
	check_seen(result, "ip route get %s from %s", to, source);
	check_fix(result, "ip rule add from %s table %u && ip route add %s dev %s src %s table %u",
		  source, number, net, nic->netdev, source, number);
	if (addr->family == MESH_FAMILY_IPV4)
		rp_filter_judge(context, nic, result);
}

/*
 * Asks the kernel what it does with such a packet: the way in which it was configured does not
 * matter.
 */
static void route_judge(const struct check_context *context, const struct mesh_nic *nic,
			const struct mesh_addr *addr, struct check_result *result)
{
	char source[MESH_ADDR_TEXT_MAX], to[MESH_ADDR_TEXT_MAX];
	struct mesh_addr neighbour;
	unsigned int ifindex;
	int i = 0, ret;

	do {
		if (mesh_subnet_neighbour(addr, i++, &neighbour))
			return;
	} while (is_own(&context->table, &neighbour));
	mesh_addr_text(&neighbour, to);
	ret = mesh_route_find(NULL, addr, &neighbour, &ifindex);
	if (ret)
		check_say(result, CHECK_UNKNOWN, "the kernel gives no route from %s to %s (%s)",
			  mesh_addr_text(addr, source), to, strerror(-ret));
	else if (ifindex != nic->ifindex)
		wrong_way_say(context, nic, addr, to, ifindex, result);
}

/* True if another NIC has the same subnet; one of the two carries the mesh. */
static bool is_shared(const struct mesh_nic_table *table, const struct mesh_nic *nic,
		      const struct mesh_addr *addr)
{
	const struct mesh_nic *other;
	int k;

	for (other = table->nics; other < table->nics + table->num_nics; other++) {
		if (other == nic || !(mesh_nic_is_taken(other) || mesh_nic_is_taken(nic)))
			continue;
		for (k = 0; k < other->num_addrs; k++)
			if (mesh_subnet_compare(addr, &other->addrs[k]) == MESH_SUBNET_SAME)
				return true;
	}
	return false;
}

static void nic_shared(const struct check_context *context, const struct mesh_nic *nic,
		       struct check_result *result)
{
	bool arp = false;
	int i;

	for (i = 0; i < nic->num_addrs; i++) {
		if (!is_shared(&context->table, nic, &nic->addrs[i]))
			continue;
		route_judge(context, nic, &nic->addrs[i], result);
		arp |= nic->addrs[i].family == MESH_FAMILY_IPV4;
	}
	if (arp)
		arp_judge(context, nic, result);
}

void check_shared_subnet(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_nics; i++)
		nic_shared(context, &table->nics[i], result);
	if (!result->num_findings)
		check_say(result, CHECK_PASS,
			  "no two NICs share a subnet, or the kernel keeps them apart");
}

static void addrs_judge(const struct mesh_nic *nic, const struct mesh_addr *addr,
			const struct mesh_nic *other, const struct mesh_addr *other_addr,
			struct check_result *result)
{
	enum mesh_subnet_relation relation = mesh_subnet_compare(addr, other_addr);
	char a[MESH_ADDR_TEXT_MAX], b[MESH_ADDR_TEXT_MAX];

	mesh_addr_text_prefix(addr, a);
	mesh_addr_text_prefix(other_addr, b);
	if (relation == MESH_SUBNET_SAME_ADDRESS) {
		check_say(result, CHECK_FAIL,
			  "%s and %s both have the address %s: either may answer", nic->netdev,
			  other->netdev, a);
		check_seen(result, "ip address show");
		check_fix(result,
			  "`fi_mesh up`, or by hand: ip address del %s dev %s, and give it "
			  "another",
			  b, other->netdev);
	} else if (relation == MESH_SUBNET_OVERLAPS) {
		check_say(
			result, CHECK_WARN,
			"the subnets of %s (%s) and %s (%s) overlap: the kernel sends packets for "
			"addresses in both to the smaller one",
			nic->netdev, a, other->netdev, b);
		check_seen(result, "ip route show");
		check_fix(result, "`fi_mesh up`, or give each cable a subnet of its own");
	}
}

static void nics_judge(const struct mesh_nic *nic, const struct mesh_nic *other,
		       struct check_result *result)
{
	int i, k;

	for (i = 0; i < nic->num_addrs; i++)
		for (k = 0; k < other->num_addrs; k++)
			addrs_judge(nic, &nic->addrs[i], other, &other->addrs[k], result);
}

static void link_local_only(const struct check_context *context, const struct mesh_nic *nic,
			    struct check_result *result)
{
	char text[MESH_ADDR_TEXT_MAX];

	/* Otherwise the neighbours' answers say what the NIC is cabled to. */
	if (!mesh_addr_is_link_local(&nic->source) || context->config.neighbours)
		return;
	check_say(result, CHECK_WARN,
		  "%s has a link-local address only (%s): it looks the same on every cable, so the "
		  "plugin has to try each one, which takes seconds",
		  nic->netdev, mesh_addr_text(&nic->source, text));
	check_seen(result, "ip address show %s", nic->netdev);
	check_fix(result, "`fi_mesh up`, or by hand: ip address add ADDRESS/PREFIX dev %s",
		  nic->netdev);
}

void check_subnets(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i, k;

	/* Pairs with at least one mesh NIC; they come first. */
	for (i = 0; i < table->num_taken; i++)
		for (k = i + 1; k < table->num_nics; k++)
			nics_judge(&table->nics[i], &table->nics[k], result);
	for (i = 0; i < table->num_taken; i++)
		link_local_only(context, &table->nics[i], result);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "no subnets overlap, and no address is used twice");
}
