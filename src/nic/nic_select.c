/* SPDX-License-Identifier: Apache-2.0 */
/* nic_select.c - decides which NICs carry the mesh, and gives the reasons. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/nic_select.h"
#include "nic/rdma_port.h"
#include "nic/user_lists.h"

/* A NIC this many times slower than the fastest one belongs to the management network. */
#define SLOW_FACTOR 8

#define HINT "; name it in NCCL_MESH_NICS to use it"

/* The groups of NICs, best first; the NICs of the first group that is not empty are taken. */
enum tier {
	TIER_MESH,    /* by the rules, or because the user named it */
	TIER_NO_RDMA, /* rule 5 left it, while others have RDMA */
	TIER_MANAGEMENT,
	TIER_WIRELESS,
	TIER_BRIDGE,
	TIER_CONTAINER,
	TIER_LOOPBACK,
	TIER_DOWN, /* rules 1 and 3 let it pass, and its link is down */
	TIER_NONE, /* cannot be used, or the user excluded it */
};

/* A NIC of the table during selection; why is the reason, in words, if it is skipped. */
struct candidate {
	struct mesh_nic *nic;
	enum tier tier;
	const struct mesh_addr *own; /* what its source is or would be; NULL: it has none */
	char why[MESH_NIC_REASON_MAX];
};

struct selection {
	struct candidate *candidates; /* as many as the table has NICs */
	int num;
	struct mesh_nic_filter filter;
	struct mesh_rails subnets; /* of NCCL_MESH_ADDRESSES */
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

/* True if the user has named the NICs, so that no rule chooses among them. */
static bool are_named(const struct selection *selection)
{
	return selection->filter.num_items && !selection->filter.exclude;
}

/* --- source address */

/* Smaller is better; -1: not to be used. */
static int addr_rank(const struct mesh_nic *nic, const struct mesh_addr *addr)
{
	if (mesh_addr_is_loopback(addr) && nic->kind != MESH_NIC_LOOPBACK)
		return -1;
	if (mesh_addr_is_link_local(addr))
		return addr->family == MESH_FAMILY_IPV6 ? 2 : 3;
	return addr->family == MESH_FAMILY_IPV6;
}

/* The best address of @nic, NULL if there is none. */
static const struct mesh_addr *source_choose(const struct mesh_nic *nic,
					     const struct mesh_rails *subnets)
{
	const struct mesh_addr *best = NULL;
	int i, k, rank, best_rank = 0;

	for (k = 0; k < subnets->num_subnets; k++)
		for (i = 0; i < nic->num_addrs; i++)
			if (addr_rank(nic, &nic->addrs[i]) >= 0 &&
			    mesh_addr_in_subnet(&nic->addrs[i], &subnets->subnets[k].subnet))
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
	if (rdma->link_layer == MESH_LINK_LAYER_INFINIBAND && !mesh_rdma_port_is_active(rdma))
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

/* Rule 2: the NIC cannot be used, although its kind would suit. */
static void unusable_explain(struct candidate *candidate, const struct mesh_nic_table *table)
{
	const struct mesh_nic *nic = candidate->nic;

	if (nic->state == MESH_NIC_DOWN)
		candidate_move(candidate, TIER_NONE, "link is down (ip link set %s up)",
			       nic->netdev);
	else if (nic->state == MESH_NIC_NO_CARRIER)
		no_carrier_explain(candidate);
	else if (candidate->own)
		candidate_move(candidate, TIER_NONE,
			       "its link has just come up, and the kernel does not report it as "
			       "running yet");
	else
		no_address_explain(candidate,
				   mesh_nic_find(table->nics, table->num_nics, nic->master));
}

/*
 * Rules 2 and 3. A NIC's kind explains more than its link state: a bridge without a carrier is
 * reported as a bridge.
 */
static void candidate_judge(struct candidate *candidate, bool named,
			    const struct mesh_nic_table *table)
{
	const struct mesh_nic *taker = named ? NULL : taker_of(candidate->nic, table);
	struct mesh_nic *nic = candidate->nic;

	if (!named)
		kind_judge(candidate);
	if (nic->state == MESH_NIC_RUNS && candidate->own) {
		nic->source = *candidate->own;
		if (candidate->tier == TIER_MESH && taker)
			candidate_move(candidate, TIER_NONE,
				       "it is part of %s, which receives its packets",
				       taker->netdev);
	} else if (candidate->tier != TIER_MESH) {
		candidate->tier = TIER_NONE; /* keeps the reason of its kind */
	} else {
		unusable_explain(candidate, table);
		if (nic->state != MESH_NIC_RUNS && (named || (candidate->own && !taker)))
			candidate->tier = TIER_DOWN;
	}
}

/* Rules 1 to 3. */
static void candidate_begin(const struct selection *selection, struct candidate *candidate,
			    struct mesh_nic *nic, const struct mesh_nic_table *table)
{
	const struct mesh_nic_filter *filter = &selection->filter;

	snprintf(nic->name, sizeof(nic->name), "mesh-%s", nic->netdev);
	candidate->nic = nic;
	candidate->own = source_choose(nic, &selection->subnets);
	if (!filter->num_items || mesh_nic_filter_names(filter, nic) != filter->exclude)
		candidate_judge(candidate, are_named(selection), table);
	else
		candidate_move(candidate, TIER_NONE,
			       filter->exclude ? "excluded by NCCL_MESH_NICS"
					       : "not named in NCCL_MESH_NICS");
}

/* --- one cable, two interfaces */

static bool has_rdma(const struct mesh_nic *nic)
{
	return *nic->rdma.device && mesh_rdma_port_is_active(&nic->rdma);
}

/* True for a NIC that no rule has skipped. */
static bool is_open(const struct candidate *candidate)
{
	return candidate->tier == TIER_MESH;
}

/* True if it leads to the network that reaches every node. */
static bool is_of_management(const struct selection *selection, const struct mesh_nic *nic)
{
	const struct mesh_nic *upper;
	int i;

	for (i = 0; i < selection->num; i++) {
		upper = selection->candidates[i].nic;
		if (upper->lower == nic->ifindex && upper->management == MESH_NIC_DEFAULT_ROUTE)
			return true;
	}
	return nic->management == MESH_NIC_DEFAULT_ROUTE;
}

/* True if @upper, a VLAN or the like on @lower, is to be used in place of @lower. */
static bool stands_for(const struct mesh_nic *upper, const struct mesh_nic *lower)
{
	return upper->lower == lower->ifindex && upper->management != MESH_NIC_DEFAULT_ROUTE &&
	       mesh_addr_is_link_local(&lower->source) &&
	       !mesh_addr_is_link_local(&upper->source) && (has_rdma(upper) || !has_rdma(lower));
}

/* Rule 4. */
static void lower_leave(struct selection *selection)
{
	struct candidate *candidate, *other, *end = selection->candidates + selection->num;

	for (candidate = selection->candidates; candidate < end; candidate++) {
		for (other = selection->candidates; other < end && is_open(candidate); other++) {
			if (!is_open(other) || !stands_for(other->nic, candidate->nic))
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
		candidate_move(candidate, TIER_NO_RDMA, "no RDMA, while other NICs have it" HINT);
	}
	return found;
}

static int fastest_open(const struct selection *selection)
{
	int i, fastest = 0;

	for (i = 0; i < selection->num; i++)
		if (is_open(&selection->candidates[i]) &&
		    selection->candidates[i].nic->speed_mbps > fastest)
			fastest = selection->candidates[i].nic->speed_mbps;
	return fastest;
}

/* Rule 6. */
static void slow_leave(struct selection *selection, bool rdma)
{
	struct candidate *candidate, *end = selection->candidates + selection->num;
	char slow[MESH_NIC_SPEED_TEXT_MAX], fast[MESH_NIC_SPEED_TEXT_MAX];
	int fastest = fastest_open(selection);

	for (candidate = selection->candidates; candidate < end; candidate++) {
		int speed = candidate->nic->speed_mbps;

		if (!is_open(candidate) || speed <= 0 || speed >= fastest / SLOW_FACTOR ||
		    (rdma && !is_of_management(selection, candidate->nic)))
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
	const bool local = mesh_addr_is_link_local(&other->source);

	if (other->speed_mbps > 0 && other->speed_mbps >= nic->speed_mbps)
		return true;
	/* The kernel's name for it; its driver reports no speed. */
	if (!strncmp(other->netdev, "thunderbolt", strlen("thunderbolt")))
		return true;
	/* A BMC's network within the machine, as the kernel and udev name what is on USB. */
	return !local && strncmp(other->netdev, "usb", 3) && strncmp(other->netdev, "enx", 3);
}

/* Rule 7. */
static void management_leave(struct selection *selection)
{
	struct candidate *candidate, *other, *end = selection->candidates + selection->num;

	for (candidate = selection->candidates; candidate < end; candidate++) {
		if (!is_open(candidate) || !is_of_management(selection, candidate->nic))
			continue;
		for (other = selection->candidates; other < end; other++) {
			if (!is_open(other) || is_of_management(selection, other->nic) ||
			    !can_replace(other->nic, candidate->nic))
				continue;
			candidate_move(candidate, TIER_MANAGEMENT,
				       "has the default route, and there are other NICs: looks "
				       "like the management network" HINT);
			break;
		}
	}
}

/* --- the verdict */

static void nic_take(struct mesh_nic *nic, enum tier tier)
{
	char speed[MESH_NIC_SPEED_TEXT_MAX], rdma[MESH_NIC_REASON_MAX] = "";
	char addr[MESH_ADDR_TEXT_MAX];

	if (has_rdma(nic))
		snprintf(rdma, sizeof(rdma), "%s port %d, ", nic->rdma.device, nic->rdma.port);
	else if (*nic->rdma.device)
		snprintf(rdma, sizeof(rdma), "%s port %d without RDMA: %.31s, ", nic->rdma.device,
			 nic->rdma.port, nic->rdma.state);
	nic->verdict = MESH_NIC_TAKEN;
	snprintf(nic->reason, sizeof(nic->reason), "taken: %s, %.90s%s%s",
		 mesh_nic_speed_text(nic->speed_mbps, speed), rdma,
		 mesh_addr_text_prefix(&nic->source, addr),
		 tier == TIER_MESH ? "" : "; no better NIC was found");
}

/*
 * A NIC whose link is down has no speed, and its RDMA port is not ACTIVE: rules 5 to 7 are applied
 * as far as they can be.
 */
static bool is_missed(const struct selection *selection, const struct candidate *candidate,
		      bool rdma)
{
	return are_named(selection) || ((!rdma || *candidate->nic->rdma.device) &&
					!is_of_management(selection, candidate->nic));
}

/* True if no rule but the fifth leaves it. */
static bool lacks_only_rdma(const struct selection *selection, const struct candidate *candidate)
{
	const int speed_mbps = candidate->nic->speed_mbps;

	return candidate->tier == TIER_NO_RDMA && !is_of_management(selection, candidate->nic) &&
	       speed_mbps > 0 && speed_mbps >= fastest_open(selection) / SLOW_FACTOR;
}

/* Of a NIC that is skipped: it could still carry data, if nothing else does, or later. */
static enum mesh_nic_verdict verdict_of(const struct selection *selection,
					const struct candidate *candidate, bool rdma)
{
	if (candidate->tier == TIER_DOWN && is_missed(selection, candidate, rdma))
		return MESH_NIC_LINK_DOWN;
	if ((candidate->tier != TIER_NO_RDMA && candidate->tier != TIER_MANAGEMENT) ||
	    mesh_addr_is_link_local(&candidate->nic->source))
		return MESH_NIC_SKIPPED;
	return lacks_only_rdma(selection, candidate) ? MESH_NIC_SPARE_NO_RDMA : MESH_NIC_SPARE;
}

/* Rule 8. */
static void verdicts_give(struct selection *selection, bool rdma)
{
	struct candidate *candidate, *end = selection->candidates + selection->num;
	enum tier best = TIER_DOWN;

	for (candidate = selection->candidates; candidate < end; candidate++)
		if (candidate->tier < best)
			best = candidate->tier;
	for (candidate = selection->candidates; candidate < end; candidate++) {
		struct mesh_nic *nic = candidate->nic;

		memset(&nic->spare_source, 0, sizeof(nic->spare_source));
		if (candidate->tier == best && best < TIER_DOWN) {
			nic_take(nic, best);
			continue;
		}
		nic->verdict = verdict_of(selection, candidate, rdma);
		if (nic->verdict >= MESH_NIC_SPARE)
			nic->spare_source = nic->source;
		mesh_nic_leave(nic, nic->verdict, "%s", candidate->why);
	}
}

int mesh_nic_select(const char *nics_setting, const char *addresses_setting,
		    struct mesh_nic_table *table)
{
	struct selection *selection;
	bool rdma = false;
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
		ret = mesh_addresses_parse(addresses_setting, &selection->subnets);
	if (ret)
		goto free_selection;

	for (i = 0; i < selection->num; i++)
		candidate_begin(selection, &selection->candidates[i], &table->nics[i], table);
	if (!are_named(selection)) {
		lower_leave(selection);
		rdma = without_rdma_leave(selection);
		slow_leave(selection, rdma);
		if (!rdma)
			management_leave(selection);
	}
	verdicts_give(selection, rdma);
	mesh_nic_table_sort(table);
	mesh_nic_table_identify(table);
free_selection:
	free(selection->candidates);
	free(selection);
	return ret;
}
