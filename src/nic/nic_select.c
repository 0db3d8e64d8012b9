/* SPDX-License-Identifier: Apache-2.0 */
/* nic_select.c - decides which NICs carry the mesh, and gives the reasons. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "nic/nic_filter.h"
#include "nic/nic_kind.h"
#include "nic/nic_order.h"
#include "nic/nic_select.h"
#include "nic/rdma_port.h"

#define SUBNETS_MAX 32
/* A NIC this many times slower than the fastest one belongs to the management network. */
#define SLOW_FACTOR 8

#define HINT "; name it in NCCL_MESH_NICS to use it"

/* The groups of NICs, best first; the NICs of the first group that is not empty are taken. */
enum tier {
	TIER_MESH, /* by the rules, or because the user named it */
	TIER_MANAGEMENT,
	TIER_WIRELESS,
	TIER_BRIDGE,
	TIER_CONTAINER,
	TIER_LOOPBACK,
	TIER_NONE, /* cannot be used, or the user excluded it */
};

struct subnets {
	struct mesh_addr list[SUBNETS_MAX];
	int num;
};

/* A NIC of the table during selection; why is the reason, in words, if it is skipped. */
struct candidate {
	struct mesh_nic *nic;
	enum tier tier;
	bool named;
	bool no_rdma;		     /* rule 5 left it */
	bool waits;		     /* rules 1 and 3 let it pass, and its link is down */
	const struct mesh_addr *own; /* what its source is or would be; NULL: it has none */
	char why[MESH_NIC_REASON_MAX];
};

struct selection {
	struct candidate *candidates; /* as many as the table has NICs */
	int num;
	struct mesh_nic_filter filter;
	struct subnets subnets;
};

const char *mesh_nic_speed_text(int mbps, char *text)
{
	const size_t size = MESH_NIC_SPEED_TEXT_MAX;

	if (mbps <= 0)
		snprintf(text, size, "speed unknown");
	else if (mbps < 1000)
		snprintf(text, size, "%d Mb/s", mbps);
	else if (mbps % 1000)
		snprintf(text, size, "%d.%d Gb/s", mbps / 1000, mbps % 1000 / 100);
	else
		snprintf(text, size, "%d Gb/s", mbps / 1000);
	return text;
}

/* --- settings */

static int subnet_add(void *arg, const char *text, size_t len)
{
	char subnet[MESH_ADDR_TEXT_MAX] = "";
	struct subnets *subnets = arg;

	if (len < sizeof(subnet))
		memcpy(subnet, text, len);
	if (subnets->num == SUBNETS_MAX) {
		mesh_warn("NCCL_MESH_ADDRESSES: there are more than %d subnets", SUBNETS_MAX);
		return -EINVAL;
	}
	if (mesh_addr_parse(subnet, &subnets->list[subnets->num])) {
		mesh_warn("NCCL_MESH_ADDRESSES: \"%.*s\" is not a subnet like 10.1.0.0/16 or "
			  "fd00::/8",
			  (int)len, text);
		return -EINVAL;
	}
	subnets->num++;
	return 0;
}

/* A name without a NIC on this node is a typing error, or is meant for other nodes. */
static void unknown_names_report(const struct selection *selection)
{
	const struct mesh_nic_filter *filter = &selection->filter;
	bool found;
	int i, k;

	for (i = 0; i < filter->num_items; i++) {
		found = false;
		for (k = 0; k < selection->num && !found; k++)
			found = mesh_nic_filter_item_matches(filter, &filter->items[i],
							     selection->candidates[k].nic);
		if (!found)
			mesh_info("NCCL_MESH_NICS: no NIC of this node matches \"%s\"",
				  filter->items[i].name);
	}
}

/* --- source address */

/* Smaller is better; -1: not to be used. */
static int addr_rank(const struct mesh_nic *nic, const struct mesh_addr *addr)
{
	if (mesh_addr_is_loopback(addr) && nic->kind != MESH_NIC_LOOPBACK)
		return -1;
	return 2 * mesh_addr_is_link_local(addr) + (addr->family == MESH_FAMILY_IPV6);
}

/* The best address of @nic, NULL if there is none. */
static const struct mesh_addr *source_choose(const struct mesh_nic *nic,
					     const struct subnets *subnets)
{
	const struct mesh_addr *best = NULL;
	int i, k, rank, best_rank = 0;

	for (k = 0; k < subnets->num; k++)
		for (i = 0; i < nic->num_addrs; i++)
			if (addr_rank(nic, &nic->addrs[i]) >= 0 &&
			    mesh_addr_in_subnet(&nic->addrs[i], &subnets->list[k]))
				return &nic->addrs[i];
	for (i = 0; i < nic->num_addrs; i++) {
		rank = addr_rank(nic, &nic->addrs[i]);
		if (rank >= 0 && (!best || rank < best_rank)) {
			best = &nic->addrs[i];
			best_rank = rank;
		}
	}
	return best;
}

/* --- what each NIC is on its own */

__attribute__((format(printf, 3, 4))) static void
candidate_move(struct candidate *candidate, enum tier tier, const char *format, ...)
{
	va_list args;

	candidate->tier = tier;
	va_start(args, format);
	vsnprintf(candidate->why, sizeof(candidate->why), format, args);
	va_end(args);
}

static void no_carrier_explain(struct candidate *candidate)
{
	const struct mesh_rdma_port *rdma = &candidate->nic->rdma;
	char words[MESH_RDMA_PORT_TEXT_MAX];

	/* On InfiniBand the cable may be fine: IPoIB has a carrier when the port is ACTIVE. */
	if (rdma->link_layer == MESH_LINK_LAYER_INFINIBAND && !rdma->active)
		candidate_move(candidate, TIER_NONE, "%s port %d: %s", rdma->device, rdma->port,
			       mesh_rdma_state_explain(rdma, words));
	else
		candidate_move(candidate, TIER_NONE, "no carrier (cable or peer down)");
}

static void no_address_explain(struct candidate *candidate, const struct mesh_nic *master)
{
	if (master)
		candidate_move(candidate, TIER_NONE, "no address of its own: it is part of %s",
			       master->netdev);
	else if (candidate->nic->num_unready)
		candidate_move(candidate, TIER_NONE,
			       "no address yet (IPv6 duplicate address detection runs or has "
			       "failed)");
	else if (candidate->nic->kind == MESH_NIC_INFINIBAND)
		candidate_move(
			candidate, TIER_NONE,
			"no address, and RDMA needs an IPoIB address to find its peers: add one "
			"(ip addr add 10.1.0.1/24 dev %s)",
			candidate->nic->netdev);
	else
		candidate_move(candidate, TIER_NONE, "no address");
}

/* The bridge or bond that receives the packets of this NIC; NULL if there is none. */
static const struct mesh_nic *taker_of(const struct mesh_nic *nic,
				       const struct mesh_nic_table *table)
{
	static const char *const takers[] = {"bridge", "openvswitch", "bond", "team"};
	const struct mesh_nic *master;
	size_t i;

	master = nic->master ? mesh_nic_find(table->nics, table->num_nics, nic->master) : NULL;
	for (i = 0; master && i < sizeof(takers) / sizeof(takers[0]); i++)
		if (!strcmp(master->link_kind, takers[i]))
			return master;
	return NULL;
}

static void kind_judge(struct candidate *candidate)
{
	static const enum tier tiers[] = {
		[MESH_NIC_PHYSICAL] = TIER_MESH,     [MESH_NIC_VIRTUAL] = TIER_MESH,
		[MESH_NIC_INFINIBAND] = TIER_MESH,   [MESH_NIC_LOOPBACK] = TIER_LOOPBACK,
		[MESH_NIC_BRIDGE] = TIER_BRIDGE,     [MESH_NIC_CONTAINER] = TIER_CONTAINER,
		[MESH_NIC_WIRELESS] = TIER_WIRELESS,
	};
	char words[64];

	candidate->tier = tiers[candidate->nic->kind];
	if (candidate->tier == TIER_LOOPBACK)
		candidate_move(candidate, TIER_LOOPBACK, "loopback");
	else if (candidate->tier != TIER_MESH)
		candidate_move(candidate, candidate->tier, "%s" HINT,
			       mesh_nic_kind_text(candidate->nic, words, sizeof(words)));
}

/*
 * Rules 1 to 3. A NIC's kind explains more than its link state: a bridge without a carrier is
 * reported as a bridge.
 */
static void candidate_judge(struct selection *selection, struct candidate *candidate,
			    const struct mesh_nic_table *table)
{
	const struct mesh_nic_filter *filter = &selection->filter;
	const struct mesh_nic *taker = taker_of(candidate->nic, table);
	struct mesh_nic *nic = candidate->nic;
	const struct mesh_addr *source = source_choose(nic, &selection->subnets);
	bool listed = mesh_nic_filter_names(filter, nic);
	bool usable = nic->admin_up && nic->carrier && !nic->starting && source;

	candidate->own = source;
	candidate->named = listed && !filter->exclude;
	if (filter->exclude && listed) {
		candidate_move(candidate, TIER_NONE, "excluded by NCCL_MESH_NICS");
		return;
	}
	if (!filter->exclude && filter->num_items && !listed) {
		candidate_move(candidate, TIER_NONE, "not named in NCCL_MESH_NICS");
		return;
	}
	if (!candidate->named)
		kind_judge(candidate);
	candidate->waits = candidate->tier == TIER_MESH &&
			   (!nic->admin_up || !nic->carrier || nic->starting) &&
			   (candidate->named || (source && !taker));
	if (usable && candidate->tier == TIER_MESH && taker && !candidate->named)
		candidate_move(candidate, TIER_NONE, "it is part of %s, which receives its packets",
			       taker->netdev);
	else if (usable)
		nic->source = *source;
	else if (candidate->tier != TIER_MESH)
		candidate->tier = TIER_NONE; /* keeps the reason of its kind */
	else if (!nic->admin_up)
		candidate_move(candidate, TIER_NONE, "link is down (ip link set %s up)",
			       nic->netdev);
	else if (!nic->carrier)
		no_carrier_explain(candidate);
	else if (source)
		candidate_move(candidate, TIER_NONE,
			       "its link has just come up, and the kernel does not report it as "
			       "running yet");
	else
		no_address_explain(candidate, nic->master
						      ? mesh_nic_find(table->nics, table->num_nics,
								      nic->master)
						      : NULL);
}

/* --- one cable, two interfaces */

static bool has_rdma(const struct mesh_nic *nic)
{
	return *nic->rdma.device && nic->rdma.active;
}

/* True for a NIC that no rule has skipped and that the user did not name: only these compare. */
static bool is_open(const struct candidate *candidate)
{
	return candidate->tier == TIER_MESH && !candidate->named;
}

/* A subnet of two addresses is one cable, and no network that reaches every rank. */
static bool is_cable_subnet(const struct mesh_addr *addr)
{
	return addr->has_peer || addr->prefix_len + 2u >= 8 * mesh_addr_size(addr->family);
}

/* The same for a NIC whose source is, or would be, @source. */
static bool has_management(const struct mesh_nic *nic, const struct mesh_addr *source)
{
	return nic->default_route || (nic->socket_named && !is_cable_subnet(source));
}

/* True if the rest of the system uses it as the network that reaches every node. */
static bool is_of_management(const struct mesh_nic *nic)
{
	return has_management(nic, &nic->source);
}

/* True if @upper, a VLAN or the like on @lower, is to be used in place of @lower. */
static bool stands_for(const struct mesh_nic *upper, const struct mesh_nic *lower)
{
	return upper->lower == lower->ifindex && !is_of_management(upper) &&
	       mesh_addr_is_link_local(&lower->source) &&
	       !mesh_addr_is_link_local(&upper->source) && (has_rdma(upper) || !has_rdma(lower));
}

/* Rule 4. */
static void lower_leave(struct selection *selection)
{
	struct candidate *candidate, *other, *end = selection->candidates + selection->num;

	for (candidate = selection->candidates; candidate < end; candidate++) {
		for (other = selection->candidates; other < end && is_open(candidate); other++) {
			if (other->tier != TIER_MESH || !stands_for(other->nic, candidate->nic))
				continue;
			candidate_move(candidate, TIER_MANAGEMENT,
				       "link-local address only, and %s on the same cable has "
				       "another" HINT,
				       other->nic->netdev);
		}
	}
}

/* --- the management network */

/* Rule 5. Returns true if there is RDMA. */
static bool without_rdma_leave(struct selection *selection)
{
	struct candidate *candidate, *end = selection->candidates + selection->num;
	bool found = false;

	for (candidate = selection->candidates; candidate < end; candidate++)
		found |= is_open(candidate) && has_rdma(candidate->nic);
	for (candidate = selection->candidates; found && candidate < end; candidate++) {
		if (!is_open(candidate) || has_rdma(candidate->nic))
			continue;
		candidate->no_rdma = true;
		candidate_move(candidate, TIER_MANAGEMENT,
			       "no RDMA, while other NICs have it" HINT);
	}
	return found;
}

/* Rule 6. */
static void slow_leave(struct selection *selection, bool rdma)
{
	struct candidate *candidate, *end = selection->candidates + selection->num;
	char slow[MESH_NIC_SPEED_TEXT_MAX], fast[MESH_NIC_SPEED_TEXT_MAX];
	int fastest = 0;

	for (candidate = selection->candidates; candidate < end; candidate++)
		if (is_open(candidate) && candidate->nic->speed_mbps > fastest)
			fastest = candidate->nic->speed_mbps;
	for (candidate = selection->candidates; candidate < end; candidate++) {
		int speed = candidate->nic->speed_mbps;

		if (!is_open(candidate) || speed <= 0 || speed >= fastest / SLOW_FACTOR ||
		    (rdma && !is_of_management(candidate->nic)))
			continue;
		candidate_move(
			candidate, TIER_MANAGEMENT,
			"%s, while other NICs have %s: looks like the management network" HINT,
			mesh_nic_speed_text(speed, slow), mesh_nic_speed_text(fastest, fast));
	}
}

/* True when @other makes @nic unnecessary for the mesh. */
static bool can_replace(const struct mesh_nic *other, const struct mesh_nic *nic)
{
	if (mesh_addr_is_link_local(&other->source))
		return other->speed_mbps > 0 && other->speed_mbps >= nic->speed_mbps;
	return other->speed_mbps <= 0 || nic->speed_mbps <= 0 ||
	       other->speed_mbps >= nic->speed_mbps;
}

/* Rule 7. */
static void management_leave(struct selection *selection)
{
	struct candidate *candidate, *other, *end = selection->candidates + selection->num;

	for (candidate = selection->candidates; candidate < end; candidate++) {
		if (!is_open(candidate) || !is_of_management(candidate->nic))
			continue;
		for (other = selection->candidates; other < end; other++) {
			if (!is_open(other) || is_of_management(other->nic) ||
			    !can_replace(other->nic, candidate->nic))
				continue;
			candidate_move(candidate, TIER_MANAGEMENT,
				       "%s, and there are other NICs: looks like the management "
				       "network" HINT,
				       candidate->nic->default_route
					       ? "has the default route"
					       : "NCCL_SOCKET_IFNAME names it");
			break;
		}
	}
}

/* --- the verdict */

static void nic_take(struct mesh_nic *nic, enum tier tier)
{
	char speed[MESH_NIC_SPEED_TEXT_MAX], rdma[MESH_NIC_REASON_MAX] = "";
	char addr[MESH_ADDR_TEXT_MAX];

	if (*nic->rdma.device)
		snprintf(rdma, sizeof(rdma), "%s port %d%s%.31s, ", nic->rdma.device,
			 nic->rdma.port, nic->rdma.active ? "" : " without RDMA: ",
			 nic->rdma.active ? "" : nic->rdma.state);
	nic->taken = true;
	snprintf(nic->reason, sizeof(nic->reason), "taken: %s, %.90s%s%s",
		 mesh_nic_speed_text(nic->speed_mbps, speed), rdma,
		 mesh_addr_text_prefix(&nic->source, addr),
		 tier == TIER_MESH ? "" : "; no better NIC was found");
}

/* The NIC could still carry data, if nothing else does. */
static void spare_note(const struct selection *selection, struct candidate *candidate)
{
	struct mesh_nic *nic = candidate->nic;
	int i, fastest = 0;

	for (i = 0; i < selection->num; i++)
		if (selection->candidates[i].tier == TIER_MESH &&
		    selection->candidates[i].nic->speed_mbps > fastest)
			fastest = selection->candidates[i].nic->speed_mbps;
	nic->spare_source = nic->source;
	nic->spare_cable = candidate->no_rdma && !is_of_management(nic) && nic->speed_mbps > 0 &&
			   nic->speed_mbps >= fastest / SLOW_FACTOR;
}

/*
 * A NIC whose link is down has no speed, and its RDMA port is not ACTIVE: rules 5 to 7 are applied
 * as far as they can be.
 */
static bool is_missed(const struct candidate *candidate, bool rdma)
{
	const struct mesh_nic *nic = candidate->nic;

	if (!candidate->waits || candidate->named)
		return candidate->waits;
	return (!rdma || *nic->rdma.device) && !has_management(nic, candidate->own);
}

/* Rule 8. */
static void verdicts_give(struct selection *selection, bool rdma)
{
	struct candidate *candidate, *end = selection->candidates + selection->num;
	enum tier best = TIER_NONE;

	for (candidate = selection->candidates; candidate < end; candidate++)
		if (candidate->tier < best)
			best = candidate->tier;
	for (candidate = selection->candidates; candidate < end; candidate++) {
		memset(&candidate->nic->spare_source, 0, sizeof(candidate->nic->spare_source));
		candidate->nic->spare_cable = false;
		candidate->nic->link_down = is_missed(candidate, rdma);
		if (candidate->tier == best && best != TIER_NONE) {
			nic_take(candidate->nic, best);
			continue;
		}
		if (candidate->tier == TIER_MANAGEMENT &&
		    !mesh_addr_is_link_local(&candidate->nic->source))
			spare_note(selection, candidate);
		mesh_nic_leave(candidate->nic, "%s", candidate->why);
	}
}

int mesh_nic_select(const char *nics_setting, const char *addresses_setting,
		    struct mesh_nic_table *table)
{
	struct selection *selection;
	bool rdma;
	int i, ret;

	selection = calloc(1, sizeof(*selection));
	if (!selection)
		return -ENOMEM;
	selection->num = table->num_nics;
	selection->candidates = calloc((size_t)table->num_nics + 1, sizeof(*selection->candidates));
	ret = selection->candidates ? 0 : -ENOMEM;
	if (!ret)
		ret = mesh_nic_filter_parse(nics_setting, &selection->filter);
	if (!ret)
		ret = mesh_list_parse(addresses_setting, subnet_add, &selection->subnets);
	if (ret)
		goto free_selection;

	for (i = 0; i < selection->num; i++) {
		struct mesh_nic *nic = &table->nics[i];

		snprintf(nic->name, sizeof(nic->name), "mesh-%s", nic->netdev);
		selection->candidates[i].nic = nic;
		candidate_judge(selection, &selection->candidates[i], table);
	}
	unknown_names_report(selection);
	lower_leave(selection);
	rdma = without_rdma_leave(selection);
	slow_leave(selection, rdma);
	if (!rdma)
		management_leave(selection);
	verdicts_give(selection, rdma);
	mesh_nic_table_sort(table);
	mesh_nic_table_identify(table);
free_selection:
	free(selection->candidates);
	free(selection);
	return ret;
}
