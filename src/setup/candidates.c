/* SPDX-License-Identifier: Apache-2.0 */
/*
 * candidates.c - which NICs of two nodes a connection tries, and those that stand in for others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "control/process.h"
#include "fabric/provider.h"
#include "nic/nic.h"
#include "setup/candidates.h"
#include "system/node.h"

/* Room for the names of all NICs. */
#define NEAR_TEXT_MAX (MESH_NICS_MAX * (IF_NAMESIZE + 2))

static bool route_leads(const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, const void *arg)
{
	const struct mesh_process *process = arg;

	return mesh_route_leads(&local->addr, process->nics[local->nic]->ifindex, &remote->addr);
}

/* Leaves out the reserves of both nodes. Returns true if there are any. */
static bool reserves_hide(struct mesh_endpoint_addr *endpoints, int num)
{
	bool any = false;
	int i;

	for (i = 0; i < num; i++) {
		if (endpoints[i].reserve)
			endpoints[i].addr.family = MESH_FAMILY_NONE; /* reaches no other address */
		any |= endpoints[i].reserve;
	}
	return any;
}

/* The direct paths between these NICs, then the routed ones. */
static void candidates_choose(const struct mesh_process *process,
			      const struct mesh_endpoint_addr *local, int num_local,
			      const struct mesh_endpoint_addr *remote, int num_remote,
			      const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	mesh_path_choose(local, num_local, remote, num_remote, hints, choice);
	if (strcmp(process->config.routed, "off"))
		mesh_path_choose_routed(local, num_local, remote, num_remote, hints, route_leads,
					process, choice);
}

/*
 * A NIC without RDMA beside others that have it may be the management network's: where it is a
 * reserve at both ends, only the setting allows it. The same holds for other reserves whose routes
 * lead to the node, such as the default route.
 */
static bool is_doubtful(const struct mesh_process *process, const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, enum mesh_path_class class)
{
	bool is_spare = process->nics[local->nic]->verdict == MESH_NIC_SPARE_NO_RDMA;

	if (!local->reserve || !strcmp(process->config.routed, "management"))
		return false;
	return is_spare ? remote->reserve : class == MESH_PATH_ROUTED;
}

/* Logs the rule, once for each NIC that NCCL chose. */
MESH_HOLDS(process)
static void near_log(struct mesh_process *process, int dev, uint32_t near, enum mesh_near_kind kind)
{
	static const char *const reasons[] = {
		[MESH_NEAR_ALL] = "no other is farther away",
		[MESH_NEAR_SWITCH] = "same PCIe switch",
		[MESH_NEAR_NUMA] = "same NUMA node",
	};
	char text[NEAR_TEXT_MAX] = "";
	size_t used = 0;
	int i;

	if (process->near_logged & 1u << dev)
		return;
	process->near_logged |= 1u << dev;
	for (i = 0; i < process->num_nics && used < sizeof(text); i++) {
		if (near & 1u << i)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s",
						 used ? ", " : "", process->nics[i]->netdev);
	}
	mesh_info("connections of NIC %d use %s (%s), because all NICs are on one fabric; the "
		  "others only if none of these connects. NCCL_MESH_NEAR=off uses all",
		  dev, text, reasons[kind]);
}

/* On a switched fabric, puts the paths of NICs near those that NCCL chose first. */
MESH_HOLDS(process)
static void near_first(struct mesh_process *process, const struct mesh_handle *handle,
		       const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	struct mesh_near_rule rule = {
		.remote = handle->near,
		.num_nics = process->num_nics,
		.always = !strcmp(process->config.near, "always"),
	};
	int dev = hints->local_nic;
	enum mesh_near_kind kind;

	if (dev < 0 || dev >= process->num_nics || hints->same_node ||
	    !strcmp(process->config.near, "off"))
		return;
	rule.local = mesh_nics_near(process->nics, process->num_nics, dev, &kind);
	if (mesh_path_near_first(process->endpoints, handle->endpoints, hints, &rule, choice))
		near_log(process, dev, rule.local, kind);
}

/* True if a direct path is over a NIC of ours that is not drained. */
MESH_HOLDS(process)
static bool has_direct(const struct mesh_process *process, const struct mesh_path_choice *choice)
{
	const struct mesh_path_candidate *pair;
	int i;

	for (i = 0; i < choice->num_candidates; i++) {
		pair = &choice->candidates[i];
		if (!mesh_path_class_is_routed(pair->class) &&
		    !mesh_process_is_drained(process, process->endpoints[pair->local].nic))
			return true;
	}
	return false;
}

/* Where a path stands, whatever its class: 0 comes first. */
MESH_HOLDS(process)
static int place_of(const struct mesh_process *process, const struct mesh_path_candidate *pair)
{
	if (pair->class == MESH_PATH_UNLIKELY)
		return 2;
	return mesh_process_is_drained(process, process->endpoints[pair->local].nic);
}

void mesh_candidates_drained_last(const struct mesh_process *process,
				  struct mesh_path_choice *choice)
{
	const struct mesh_path_choice all = *choice;
	int place, i, at = 0;

	mesh_process_assert_locked(process);
	for (place = 0; place <= 2; place++) {
		for (i = 0; i < all.num_candidates; i++) {
			if (place_of(process, &all.candidates[i]) == place)
				choice->candidates[at++] = all.candidates[i];
		}
	}
}

/* Adds the paths that some reserve is an end of, to be tried after the others. */
MESH_HOLDS(process)
static void reserves_add(const struct mesh_process *process, const struct mesh_handle *handle,
			 const struct mesh_path_hints *hints, struct mesh_path_choice *choice)
{
	const struct mesh_endpoint_addr *local, *remote;
	struct mesh_path_choice all;
	struct mesh_path_candidate pair;
	int i;

	candidates_choose(process, process->endpoints, process->num_endpoints, handle->endpoints,
			  handle->num_endpoints, hints, &all);
	for (i = 0; i < all.num_candidates; i++) {
		pair = all.candidates[i];
		local = &process->endpoints[pair.local];
		remote = &handle->endpoints[pair.remote];
		if ((!local->reserve && !remote->reserve) ||
		    is_doubtful(process, local, remote, pair.class) ||
		    choice->num_candidates == MESH_PATH_CHOICE_MAX)
			continue;
		pair.class = mesh_path_class_is_routed(pair.class) ? MESH_PATH_RESERVE_ROUTED
								   : MESH_PATH_RESERVE;
		pair.reason = MESH_PATH_WHY_RESERVE;
		choice->candidates[choice->num_candidates++] = pair;
	}
}

void mesh_candidates_find(struct mesh_process *process, int dev, const struct mesh_handle *handle,
			  struct mesh_path_choice *choice)
{
	const struct mesh_path_hints hints = {
		.local_nic = dev,
		.remote_nic = handle->dev,
		.spread = handle->listen_id,
		.same_node = handle->node_id == process->node_id,
		.fallback = mesh_provider_list_falls_back(process->config.provider),
		.same_count = handle->total_nics == process->num_devs,
		.rails = &process->rails,
	};
	struct mesh_endpoint_addr local[MESH_NICS_MAX], remote[MESH_NICS_MAX];
	int num_local = process->num_endpoints, num_remote = handle->num_endpoints, i;
	bool reserves;

	mesh_process_assert_locked(process);
	if (process->role == MESH_PROCESS_GUEST) {
		memset(choice, 0, sizeof(*choice));
		return;
	}
	memcpy(remote, handle->endpoints, sizeof(remote));
	for (i = 0; i < num_local; i++) {
		process->endpoints[i].reserve = process->dev_reserves[process->endpoints[i].nic];
		local[i] = process->endpoints[i];
	}
	reserves = reserves_hide(local, num_local);
	reserves |= reserves_hide(remote, num_remote);
	candidates_choose(process, local, num_local, remote, num_remote, &hints, choice);
	near_first(process, handle, &hints, choice);
	if (reserves && !has_direct(process, choice))
		reserves_add(process, handle, &hints, choice);
	mesh_candidates_drained_last(process, choice);
}

/* ---- spares ---------------------------------------------------------------------------------- */

static bool management_allowed(const struct mesh_process *process)
{
	return !strcmp(process->config.routed, "management");
}

static void spare_add(struct mesh_process *process, const struct mesh_nic *spare)
{
	enum mesh_provider_id wanted = mesh_provider_id_parse(process->config.provider);
	struct mesh_nic *nic = malloc(sizeof(*nic));
	struct mesh_nic_table alone = {.nics = nic, .num_nics = 1, .num_taken = 1};
	struct mesh_provider_verdict verdict;
	int dev = process->num_devs;

	if (!nic)
		return;
	*nic = *spare;
	nic->source = spare->spare_source;
	if (mesh_provider_assign(wanted, &alone, 0, &verdict)) {
		mesh_info("%s cannot stand in for other NICs: %s", nic->netdev, verdict.note);
		free(nic);
		return;
	}
	mesh_info("NIC %d: %s, %s, for nodes that nothing else connects", dev, nic->netdev,
		  nic->verdict == MESH_NIC_SPARE ? "of the management network" : "without RDMA");
	process->nics[dev] = nic;
	mesh_process_provider_set(process, dev, verdict.id);
	process->dev_reserves[dev] = true;
	process->num_devs = dev + 1;
}

void mesh_spares_add(struct mesh_process *process)
{
	const struct mesh_nic_table *table = &process->table;
	int i;

	for (i = 0; i < table->num_nics && process->num_devs < MESH_NICS_MAX; i++)
		if (table->nics[i].verdict == MESH_NIC_SPARE_NO_RDMA ||
		    (table->nics[i].verdict == MESH_NIC_SPARE && management_allowed(process)))
			spare_add(process, &table->nics[i]);
}

const char *mesh_spares_hint(const struct mesh_process *process, const struct mesh_nic_table *table,
			     char *text, size_t size)
{
	int i, used = 0;

	*text = '\0';
	for (i = 0; !management_allowed(process) && i < table->num_nics; i++) {
		if (table->nics[i].verdict != MESH_NIC_SPARE || used < 0 || (size_t)used >= size)
			continue;
		used += snprintf(text + used, size - (size_t)used, "%s%s",
				 used ? ", "
				      : " NCCL_MESH_ROUTED=management on all nodes sends such data "
					"over the management network: ",
				 table->nics[i].netdev);
	}
	return text;
}
