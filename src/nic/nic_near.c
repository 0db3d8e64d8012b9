/* SPDX-License-Identifier: Apache-2.0 */
/* nic_near.c - which NICs are near each other, and the paths of those near NCCL's choice. */
#include <stddef.h>
#include <string.h>

#include "nic/nic_near.h"

/* ---- the NICs of one node ------------------------------------------------------------------- */

/* Bytes of @path before its last '/'; 0 if there is none. */
static size_t parent_len(const char *path, size_t len)
{
	while (len && path[len - 1] != '/')
		len--;
	return len ? len - 1 : 0;
}

/* True if the last part of a path of this length is a PCI function: "0000:01:00.0". */
static bool ends_in_function(const char *path, size_t len)
{
	size_t parent = parent_len(path, len);

	return len - parent > 3 && path[len - 2] == '.';
}

/*
 * The PCIe switch above a NIC is its upstream port: .../root port/upstream port/downstream
 * port/function. Returns the bytes of the path up to that; 0 if the NIC is at a root port.
 */
static size_t switch_len(const struct mesh_nic *nic)
{
	const char *path = nic->pci_path;
	size_t downstream = parent_len(path, strlen(path)), upstream, root;

	upstream = parent_len(path, downstream);
	root = parent_len(path, upstream);
	return ends_in_function(path, downstream) && ends_in_function(path, upstream) &&
			       ends_in_function(path, root)
		       ? upstream
		       : 0;
}

static bool is_near(const struct mesh_nic *a, const struct mesh_nic *b, enum mesh_near_kind kind)
{
	size_t len = switch_len(a);

	if (kind == MESH_NEAR_NUMA)
		return a->numa_node >= 0 && a->numa_node == b->numa_node;
	return len && len == switch_len(b) && !memcmp(a->pci_path, b->pci_path, len);
}

static uint32_t near_mask(const struct mesh_nic *const *nics, int num, int dev,
			  enum mesh_near_kind kind)
{
	uint32_t mask = 0;
	int i;

	for (i = 0; i < num; i++) {
		if (is_near(nics[dev], nics[i], kind))
			mask |= 1u << i;
	}
	return mask;
}

/* True if each NIC has another one near it in this sense. */
static bool divides(const struct mesh_nic *const *nics, int num, enum mesh_near_kind kind)
{
	uint32_t mask;
	int i;

	for (i = 0; i < num; i++) {
		mask = near_mask(nics, num, i, kind);
		if (!(mask & (mask - 1)))
			return false;
	}
	return true;
}

uint32_t mesh_nics_near(const struct mesh_nic *const *nics, int num, int dev,
			enum mesh_near_kind *kind)
{
	enum mesh_near_kind found = MESH_NEAR_ALL, k;

	for (k = MESH_NEAR_SWITCH; k <= MESH_NEAR_NUMA && !found; k++) {
		if (divides(nics, num, k))
			found = k;
	}
	if (kind)
		*kind = found;
	return found ? near_mask(nics, num, dev, found) : (1u << num) - 1;
}

/* ---- the paths of a comm -------------------------------------------------------------------- */

/* The candidates of one class, the first in the choice, and their ends. */
struct near_view {
	const struct mesh_endpoint_addr *local, *remote;
	const struct mesh_path_hints *hints;
	const struct mesh_near_rule *rule;
	const struct mesh_path_candidate *pairs;
	int num;
};

static bool is_near_pair(const struct near_view *view, const struct mesh_path_candidate *pair)
{
	return view->rule->local & 1u << view->local[pair->local].nic &&
	       view->rule->remote & 1u << view->remote[pair->remote].nic;
}

/* How many pairs have no NIC in common: the first round of mesh_path_choose(). */
static int ways_count(const struct near_view *view)
{
	uint32_t locals = 0, remotes = 0;
	int i;

	for (i = 0; i < view->num; i++) {
		if (locals & 1u << view->pairs[i].local || remotes & 1u << view->pairs[i].remote)
			break;
		locals |= 1u << view->pairs[i].local;
		remotes |= 1u << view->pairs[i].remote;
	}
	return i;
}

static bool rule_applies(const struct near_view *view)
{
	const struct mesh_path_hints *hints = view->hints;
	int i, reached = 0;
	bool named = false;

	for (i = 0; i < view->num; i++) {
		if (view->local[view->pairs[i].local].nic != hints->local_nic)
			continue;
		reached++;
		named |= view->remote[view->pairs[i].remote].nic == hints->remote_nic &&
			 is_near_pair(view, &view->pairs[i]);
	}
	return named && ways_count(view) >= view->rule->num_nics &&
	       (view->rule->always || reached > 1 ||
		mesh_path_class_is_routed(view->pairs[0].class));
}

bool mesh_path_near_first(const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote,
			  const struct mesh_path_hints *hints, const struct mesh_near_rule *rule,
			  struct mesh_path_choice *choice)
{
	struct near_view view = {local, remote, hints, rule, choice->candidates, 0};
	struct mesh_path_candidate far[MESH_PATH_CANDIDATES_MAX];
	enum mesh_path_class class = choice->candidates[0].class;
	int i, near = 0, num_far = 0;

	while (view.num < choice->num_candidates && choice->candidates[view.num].class == class)
		view.num++;
	if ((class != MESH_PATH_DIRECT && class != MESH_PATH_ROUTED) || !rule_applies(&view))
		return false;
	for (i = 0; i < view.num; i++) {
		if (is_near_pair(&view, &choice->candidates[i])) {
			choice->candidates[near++] = choice->candidates[i];
			continue;
		}
		far[num_far] = choice->candidates[i];
		far[num_far].reason = MESH_PATH_WHY_FAR;
		far[num_far++].class = class == MESH_PATH_DIRECT ? MESH_PATH_FAR
								 : MESH_PATH_FAR_ROUTED;
	}
	for (i = 0; i < near && num_far; i++) {
		if (choice->candidates[i].reason != MESH_PATH_WHY_NCCL &&
		    choice->candidates[i].reason != MESH_PATH_WHY_SHARES)
			choice->candidates[i].reason = MESH_PATH_WHY_NEAR;
	}
	memcpy(&choice->candidates[near], far, (size_t)num_far * sizeof(far[0]));
	return num_far;
}
