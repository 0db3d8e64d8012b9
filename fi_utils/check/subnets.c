/* SPDX-License-Identifier: Apache-2.0 */
/* subnets.c - checks that no subnets overlap. */
#include <inttypes.h>
#include <string.h>

#include "check/context.h"
#include "check/subnets.h"
#include "common/finding.h"
#include "common/subnet.h"
#include "nic/nic_kind.h"

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
		check_fix(result, "ip address del %s dev %s, and give it one of its own", b,
			  other->netdev);
	} else if (relation == MESH_SUBNET_OVERLAPS) {
		check_say(result, CHECK_WARN,
			  "the subnets of %s (%s) and %s (%s) overlap: the kernel sends what is in "
			  "both to the smaller one",
			  nic->netdev, a, other->netdev, b);
		check_seen(result, "ip route show");
		check_fix(result, "give each cable a subnet of its own (`fi_mesh plan`)");
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

	/* Otherwise the neighbours' answers say where the cable leads. */
	if (!mesh_addr_is_link_local(&nic->source) || context->config.neighbours)
		return;
	check_say(result, CHECK_WARN,
		  "%s has a link-local address only (%s): it looks the same on every cable, so the "
		  "plugin has to try each one, which takes seconds",
		  nic->netdev, mesh_addr_text(&nic->source, text));
	check_seen(result, "ip address show %s", nic->netdev);
	check_fix(result, "ip address add ADDRESS/PREFIX dev %s (`fi_mesh plan` gives one)",
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
