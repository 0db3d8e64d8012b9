/* SPDX-License-Identifier: Apache-2.0 */
/* paths.c - reports which paths reach a peer, and why the other NICs have none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/finding.h"
#include "common/json.h"
#include "common/provider_reason.h"
#include "common/relay_choice.h"
#include "common/subnet.h"
#include "nic/nic.h"
#include "peer/checker.h"
#include "peer/self.h"
#include "peer/wire.h"
#include "system/node.h"

/* The plugin takes a node without a site as one of every site: see src/setup/connect_try.c. */
static void one_sided_say(const struct peer_checker *checker, const struct peer *peer,
			  const char *ours, const char *theirs, struct check_result *result)
{
	const char *set = *ours ? checker->self.name : peer->name;
	const char *unset = *ours ? peer->name : checker->self.name;
	const char *site = *ours ? ours : theirs;

	check_say(
		result, CHECK_WARN,
		"node %s is in site %s, and node %s has no site: it counts as part of the same "
		"site, so paths between the two are not set up for a long line, and relays may be "
		"in another site",
		set, site, unset);
	check_seen(result, "NCCL_MESH_SITE of node %s is not set (`fi_mesh config` there)", unset);
	check_fix(result, "set NCCL_MESH_SITE on node %s as well, to %s if it is there", unset,
		  site);
}

/* Reports both sites and what follows from them; nothing if neither node has one. */
static void peer_sites_check(const struct peer_checker *checker, const struct peer *peer,
			     struct check_result *result)
{
	char ours[MESH_SITE_NAME_MAX];
	const char *theirs = peer->hello.site;

	peer_self_site(&checker->self, ours);
	if (!*ours && !*theirs)
		return;
	if (!*ours || !*theirs)
		one_sided_say(checker, peer, ours, theirs, result);
	else if (strcmp(ours, theirs) != 0)
		check_say(result, CHECK_PASS,
			  "two sites: this node is in %s, node %s in %s; tcp paths between them "
			  "use several connections each (lanes) if the round trip is long",
			  ours, peer->name, theirs);
	else
		check_say(result, CHECK_PASS, "both nodes are in site %s", ours);
}

static void endpoints_fill(const struct peer_checker *checker, const struct peer *peer,
			   struct mesh_endpoint_addr *local, struct mesh_endpoint_addr *remote)
{
	int i;

	for (i = 0; i < checker->self.num_nics; i++)
		local[i] = (struct mesh_endpoint_addr){
			.addr = checker->self.table.nics[i].source,
			.nic = (uint8_t)i,
			.provider = checker->self.providers[i],
			.also_tcp = peer_self_also_tcp(&checker->self, checker->self.providers[i]),
		};
	for (i = 0; i < peer->hello.num_nics; i++) {
		remote[i] = (struct mesh_endpoint_addr){
			.nic = (uint8_t)i,
			.provider = (enum mesh_provider_id)peer->hello.nics[i].provider,
		};
		remote[i].also_tcp = peer_self_also_tcp(&checker->self, remote[i].provider);
		mesh_check_nic_addr(&peer->hello.nics[i], &remote[i].addr);
	}
}

static bool nic_has_path(const struct mesh_path_choice *choice, int nic)
{
	int i;

	for (i = 0; i < choice->num_candidates; i++)
		if (choice->candidates[i].local == nic)
			return true;
	return false;
}

/* A pair that uses less than one of its NICs has. */
static void mixed_fix(const struct peer_checker *checker, const struct peer *peer,
		      const struct mesh_path_candidate *pair, struct check_result *result)
{
	bool ours = checker->self.providers[pair->local] == pair->provider;

	check_seen(result, "%s of node %s has %s, %s of node %s %s",
		   checker->self.table.nics[pair->local].netdev, checker->self.name,
		   mesh_provider_id_text(checker->self.providers[pair->local]),
		   peer->hello.nics[pair->remote].netdev, peer->name,
		   mesh_provider_id_text(
			   (enum mesh_provider_id)peer->hello.nics[pair->remote].provider));
	check_fix(result, "`fi_mesh nics` and `fi_mesh check` on node %s say why it has no RDMA",
		  ours ? checker->self.name : peer->name);
}

static enum provider_reason reason_of(const struct peer_checker *checker, const struct peer *peer,
				      const struct mesh_path_candidate *pair)
{
	return provider_reason_of(checker->self.providers[pair->local],
				  (enum mesh_provider_id)peer->hello.nics[pair->remote].provider,
				  pair, *checker->self.config.provider);
}

static void path_say(const struct peer_checker *checker, const struct peer *peer, int index,
		     struct check_result *result)
{
	const struct mesh_path_candidate *pair = &peer->choice.candidates[index];
	const struct mesh_nic *nic = &checker->self.table.nics[pair->local];
	const struct mesh_check_nic *theirs = &peer->hello.nics[pair->remote];
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_addr addr;
	enum provider_reason why = reason_of(checker, peer, pair);
	bool mixed = why == PROVIDER_WHY_ONE_END;

	mesh_check_nic_addr(theirs, &addr);
	check_say(result, mixed ? CHECK_WARN : CHECK_PASS, "%s: %s %s -> %s %s, %s (%s)%s; %s",
		  index ? "another path" : "first choice", nic->netdev,
		  mesh_addr_text(&nic->source, local), theirs->netdev,
		  mesh_addr_text(&addr, remote), mesh_provider_id_text(pair->provider),
		  provider_reason_text(why),
		  mesh_path_class_is_routed(pair->class) ? "; routed: no subnet in common" : "",
		  path_reason_text(pair->reason));
	if (mixed)
		mixed_fix(checker, peer, pair, result);
}

static const struct mesh_check_nic *their_nic(const struct peer *peer, const char *netdev)
{
	int i;

	for (i = 0; i < peer->hello.num_nics; i++)
		if (!strcmp(peer->hello.nics[i].netdev, netdev))
			return &peer->hello.nics[i];
	return NULL;
}

/* Reports why two NICs on one cable have no path. */
static void unused_cable_say(const struct peer_checker *checker, const struct peer *peer, int index,
			     const struct mesh_heard *far, struct check_result *result)
{
	const struct mesh_nic *nic = &checker->self.table.nics[index];
	const struct mesh_check_nic *theirs = their_nic(peer, far->about.netdev);
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_addr addr;

	if (!theirs) {
		check_say(result, CHECK_FAIL,
			  "%s is cabled to %s of node %s, which does not carry the mesh there",
			  nic->netdev, far->about.netdev, peer->name);
		check_fix(result, "`fi_mesh nics` on node %s says why", peer->name);
		return;
	}
	mesh_check_nic_addr(theirs, &addr);
	mesh_addr_text_prefix(&nic->source, local);
	mesh_addr_text_prefix(&addr, remote);
	if (!mesh_addr_same_subnet(&nic->source, &addr)) {
		check_say(result, CHECK_FAIL,
			  "%s is cabled to %s of node %s, but %s and %s have no subnet in common",
			  nic->netdev, theirs->netdev, peer->name, local, remote);
		check_fix(result,
			  "`fi_mesh up`, or give both ends of this cable addresses of one subnet "
			  "that no other cable has");
		return;
	}
	check_say(result, CHECK_FAIL, "%s and %s of node %s use different providers: %s and %s",
		  nic->netdev, theirs->netdev, peer->name,
		  mesh_provider_id_text(checker->self.providers[index]),
		  mesh_provider_id_text((enum mesh_provider_id)theirs->provider));
	check_fix(result, "`fi_mesh nics` on both nodes says why; NCCL_MESH_PROVIDER=tcp on both "
			  "makes them alike");
}

/* Reports why this NIC has no path to the peer. */
static void nic_say(const struct peer_checker *checker, const struct peer *peer, int index,
		    struct check_result *result)
{
	const struct mesh_nic *nic = &checker->self.table.nics[index];
	const struct mesh_heard *far = peer_cable_heard(checker, nic, peer->hello.node_id, NULL);
	struct mesh_addr subnet = mesh_subnet_of(&nic->source);
	char text[MESH_ADDR_TEXT_MAX];

	if (far) {
		unused_cable_say(checker, peer, index, far, result);
		return;
	}
	far = peer_cable_far(checker, nic);
	if (far && far->about.node_id == peer->hello.node_id) {
		check_say(result, CHECK_WARN,
			  "%s has no NIC at its other end: node %s has only %s there", nic->netdev,
			  peer->name, far->about.netdev);
		check_fix(
			result,
			"`fi_mesh up`, or by hand on node %s: set the other NIC of that port up, "
			"with an address in the subnet of %s, or take its ports out of one bridge",
			peer->name, nic->netdev);
	} else if (far)
		check_say(result, CHECK_PASS, "not %s: it is cabled to node %s (%s)", nic->netdev,
			  far->about.node, far->about.netdev);
	else if (mesh_addr_is_link_local(&nic->source))
		check_say(result, CHECK_PASS,
			  "not %s: the node at its other end does not identify itself",
			  nic->netdev);
	else
		check_say(result, CHECK_PASS, "not %s: its subnet, %s, is not a subnet of node %s",
			  nic->netdev, mesh_addr_text_prefix(&subnet, text), peer->name);
}

/* NICs that might have had a path: down, without an address, skipped by a setting. */
static void left_say(const struct peer_checker *checker, struct check_result *result)
{
	const struct mesh_nic_table *table = &checker->self.table;
	int i;

	for (i = checker->self.num_nics; i < table->num_nics; i++) {
		const struct mesh_nic *nic = &table->nics[i];

		if (nic->kind != MESH_NIC_LOOPBACK)
			check_say(result, CHECK_PASS, "not %s: %s", nic->netdev,
				  mesh_nic_bare_reason(nic));
	}
}

static void none_say(const struct peer_checker *checker, const struct peer *peer,
		     struct check_result *result)
{
	const struct mesh_path_candidate *differing = &peer->choice.differing;

	check_say(result, CHECK_FAIL,
		  "no direct path to node %s: no NIC of this node shares a "
		  "subnet and a provider with one of its %d, and no route reaches it over one",
		  peer->name, peer->hello.num_nics);
	if (peer->choice.differing.provider)
		check_seen(result, "%s uses %s, %s of node %s uses %s",
			   checker->self.table.nics[differing->local].netdev,
			   mesh_provider_id_text(checker->self.providers[differing->local]),
			   peer->hello.nics[differing->remote].netdev, peer->name,
			   mesh_provider_id_text(
				   (enum mesh_provider_id)peer->hello.nics[differing->remote]
					   .provider));
	else if (!strcmp(checker->self.config.relay, "off"))
		check_seen(
			result,
			"NCCL_MESH_RELAY=off is set here, so this check does not look for relays");
	check_fix(result,
		  "connect the two nodes with a cable, or fix what the lines below report; "
		  "without one, ranks or `fi_mesh serve --relay` on the nodes between relay");
}

static bool can_ask(const struct peer_checker *checker, const struct mesh_nic *nic)
{
	int link = mesh_asking_link_find(&checker->asking, nic->ifindex);

	return link >= 0 && !checker->asking.asked[link].error;
}

/*
 * Link-local addresses share one subnet on all cables. Of their pairs only those are paths whose
 * NICs are on one cable: the plugin finds these by trying, and here the neighbours have said it.
 */
static bool pair_is_on_cable(const struct peer_checker *checker, const struct peer *peer,
			     const struct mesh_path_candidate *pair)
{
	const struct mesh_nic *nic = &checker->self.table.nics[pair->local];

	return !mesh_addr_is_link_local(&nic->source) || !can_ask(checker, nic) ||
	       peer_cable_heard(checker, nic, peer->hello.node_id,
				peer->hello.nics[pair->remote].netdev);
}

static void pairs_keep(const struct peer_checker *checker, const struct peer *peer,
		       struct mesh_path_choice *choice)
{
	struct mesh_path_candidate pair;
	int i, kept = 0;

	for (i = 0; i < choice->num_candidates; i++) {
		pair = choice->candidates[i];
		if (!pair_is_on_cable(checker, peer, &pair))
			continue;
		if (pair.reason == MESH_PATH_WHY_LINK_LOCAL &&
		    can_ask(checker, &checker->self.table.nics[pair.local]))
			pair.reason = MESH_PATH_WHY_CABLE;
		choice->candidates[kept++] = pair;
	}
	choice->num_candidates = kept;
}

static bool route_leads(const struct mesh_endpoint_addr *local,
			const struct mesh_endpoint_addr *remote, const void *arg)
{
	const struct peer_checker *checker = arg;

	return mesh_route_leads(NULL, &local->addr, checker->self.table.nics[local->nic].ifindex,
				&remote->addr);
}

/* As the plugin: only where no two NICs share a subnet. */
static void routed_choose(const struct peer_checker *checker,
			  const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote, struct peer *peer)
{
	const struct mesh_path_hints hints = {
		.local_nic = -1,
		.remote_nic = -1,
		.same_count = checker->self.num_nics == peer->hello.num_nics,
		.rails = &checker->self.rails,
	};

	if (!peer->choice.num_candidates && strcmp(checker->self.config.routed, "off") != 0)
		mesh_path_choose_routed(local, checker->self.num_nics, remote, peer->hello.num_nics,
					&hints, route_leads, checker, &peer->choice);
}

/* Whether relays are looked for: those that the plugin's connections use in the end. */
enum relays_wanted {
	RELAYS_NONE,	/* there is a path, or the setting forbids them */
	RELAYS_ANY,	/* there is no path */
	RELAYS_REPLACE, /* the path is routed without RDMA, and both nodes have RDMA */
};

static enum relays_wanted relays_wanted(const struct peer_checker *checker,
					const struct mesh_endpoint_addr *local,
					const struct mesh_endpoint_addr *remote,
					const struct peer *peer)
{
	const struct mesh_path_choice *choice = &peer->choice;
	bool both_rdma = mesh_endpoints_have_rdma(local, checker->self.num_nics) &&
			 mesh_endpoints_have_rdma(remote, peer->hello.num_nics);

	if (!strcmp(checker->self.config.relay, "off"))
		return RELAYS_NONE;
	if (!choice->num_candidates)
		return choice->differing.provider ? RELAYS_NONE : RELAYS_ANY;
	return both_rdma && relays_replace(choice->candidates, choice->num_candidates)
		       ? RELAYS_REPLACE
		       : RELAYS_NONE;
}

/*
 * Looks for relays if they are wanted. Routed paths that are left for them are no paths then.
 * Returns true if there are some (reported).
 */
static bool relays_choose(const struct peer_checker *checker,
			  const struct mesh_endpoint_addr *local,
			  const struct mesh_endpoint_addr *remote, struct peer *peer,
			  struct check_result *result)
{
	enum relays_wanted wanted = relays_wanted(checker, local, remote, peer);

	if (wanted == RELAYS_NONE ||
	    !peer_relays_check(checker, peer, wanted == RELAYS_REPLACE, result))
		return false;
	peer->choice.num_candidates = 0;
	return true;
}

void peer_paths_check(const struct peer_checker *checker, struct peer *peer,
		      struct check_result *result)
{
	struct mesh_endpoint_addr local[MESH_NICS_MAX], remote[MESH_NICS_MAX];
	const struct mesh_path_hints hints = {.local_nic = -1, .remote_nic = -1};
	int i;

	endpoints_fill(checker, peer, local, remote);
	mesh_path_choose(local, checker->self.num_nics, remote, peer->hello.num_nics, &hints,
			 &peer->choice);
	pairs_keep(checker, peer, &peer->choice);
	routed_choose(checker, local, remote, peer);
	if (!relays_choose(checker, local, remote, peer, result) && !peer->choice.num_candidates)
		none_say(checker, peer, result);
	for (i = 0; i < peer->choice.num_candidates; i++)
		path_say(checker, peer, i, result);
	for (i = 0; i < checker->self.num_nics; i++)
		if (!nic_has_path(&peer->choice, i))
			nic_say(checker, peer, i, result);
	left_say(checker, result);
	peer_sites_check(checker, peer, result);
	if (peer->hello.plugin_protocol != MESH_PROTOCOL_VERSION) {
		check_say(result, CHECK_FAIL,
			  "node %s uses version %u of the plugin's protocol, this node %u",
			  peer->name, peer->hello.plugin_protocol, MESH_PROTOCOL_VERSION);
		check_fix(result, "install the same plugin on all nodes");
	}
}

static json_t *path_json(const struct peer_checker *checker, const struct peer *peer,
			 const struct mesh_path_candidate *pair)
{
	const struct mesh_nic *nic = &checker->self.table.nics[pair->local];
	const struct mesh_check_nic *theirs = &peer->hello.nics[pair->remote];
	enum provider_reason why = reason_of(checker, peer, pair);
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_addr addr;

	mesh_check_nic_addr(theirs, &addr);
	return json_pack(
		"{s:o, s:o, s:s, s:s, s:b, s:s, s:s, s:s, s:s, s:s}", "nic",
		output_json_text(nic->netdev), "peer_nic", output_json_text(theirs->netdev),
		"local", mesh_addr_text(&nic->source, local), "remote",
		mesh_addr_text(&addr, remote), "routed", mesh_path_class_is_routed(pair->class),
		"provider", mesh_provider_id_text(pair->provider), "provider_reason",
		provider_reason_word(why), "provider_reason_text", provider_reason_text(why),
		"reason", mesh_path_reason_word(pair->reason), "reason_text",
		path_reason_text(pair->reason));
}

json_t *peer_paths_json(const struct peer_checker *checker, const struct peer *peer)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < peer->choice.num_candidates && list; i++)
		list = output_json_append(list,
					  path_json(checker, peer, &peer->choice.candidates[i]));
	return json_pack("{s:o, s:o}", "paths", list, "relays",
			 peer->relays ? json_incref(peer->relays) : json_array());
}
