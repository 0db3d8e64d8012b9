/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - explains why a peer does not answer, with what this node knows. */
#include <errno.h>
#include <stddef.h>

#include "common/finding.h"
#include "peer/checker.h"
#include "peer/explain.h"
#include "peer/facing.h"

/* The NIC of the address's zone, or in whose subnet it lies, taken or not; NULL: there is none. */
static const struct mesh_nic *nic_of_subnet(const struct peer_checker *checker,
					    const struct mesh_addr *addr)
{
	const struct mesh_nic_table *table = &checker->self.table;
	int i, k;

	for (i = 0; i < table->num_nics; i++)
		for (k = 0; k < table->nics[i].num_addrs; k++)
			if (mesh_addr_in_subnet(addr, &table->nics[i].addrs[k]) &&
			    (!addr->scope_id || addr->scope_id == table->nics[i].ifindex))
				return &table->nics[i];
	return NULL;
}

static const struct peer_facing *facing_of(const struct peer_checker *checker,
					   const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < checker->self.num_nics; i++)
		if (&checker->self.table.nics[i] == nic)
			return &checker->facing[i];
	return NULL;
}

/* Adds to the error what the state of that NIC's cable shows. */
static void cable_explain(const struct peer_checker *checker, const struct mesh_nic *nic,
			  const char *addr, struct check_result *result)
{
	const struct peer_facing *facing = facing_of(checker, nic);

	if (!nic->admin_up || !nic->carrier) {
		check_seen(result, "%s has no carrier", nic->netdev);
		check_fix(result,
			  nic->admin_up ? "reseat the cable of %s at both ends; the far end must "
					  "be up as well"
					: "ip link set %s up",
			  nic->netdev);
		return;
	}
	if (!facing || !facing->num_heard) {
		check_seen(result,
			   "%s has a carrier; the node at its far end does not identify itself",
			   nic->netdev);
		check_fix(
			result,
			"on the node with %s: run `fi_mesh serve`, and let its firewall pass port "
			"%u; else the cable of %s leads elsewhere",
			addr, checker->options->port, nic->netdev);
		return;
	}
	check_seen(result, "%s faces node %s (%s)", nic->netdev, facing->heard[0].peer,
		   facing->heard[0].peer_netdev);
	check_fix(result,
		  "if %s is not node %s's, move the cable or change the address; if it is, let the "
		  "firewall of node %s pass port %u",
		  addr, facing->heard[0].peer, facing->heard[0].peer, checker->options->port);
}

void peer_explain(const struct peer_checker *checker, const struct mesh_addr *addr, int error,
		  const char *text, struct check_result *result)
{
	const struct mesh_nic *nic = nic_of_subnet(checker, addr);
	char at[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(addr, at);
	check_say(result, CHECK_FAIL, "%s cannot be checked%s%s: %s", at, nic ? " over " : "",
		  nic ? nic->netdev : "", text);
	if (error == -ECONNREFUSED) {
		check_fix(result, "run `fi_mesh serve` there; or a firewall there refuses port %u",
			  checker->options->port);
		return;
	}
	if (error == -EPROTO || error == -EPROTONOSUPPORT) {
		check_fix(result, "run the same version of fi_mesh on both nodes");
		return;
	}
	if (nic) {
		cable_explain(checker, nic, at, result);
		return;
	}
	check_seen(result, "no NIC of this node has an address in its subnet");
	check_fix(
		result,
		"name an address that this node reaches, for example one of the management network "
		"with `fi_mesh serve --listen` there; `fi_mesh plan` gives addresses that fit");
}
