/* SPDX-License-Identifier: Apache-2.0 */
/* connect_log.c - messages to the user about a connection attempt. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "neighbours/neighbours.h"
#include "nic/nic.h"
#include "system/nic_table.h"
#include "setup/relay_try.h"
#include "setup/connecting.h"
#include "setup/nics.h"

/* Lines about connections that find no room, here or there, within MESH_LOG_LIMIT_PERIOD_MS. */
#define FULL_LINES 8
#define ENDPOINTS_TEXT_MAX 512
#define SKIPPED_TEXT_MAX 512
#define END_TEXT_MAX MESH_LOG_LINE_MAX
#define RELAY_TEXT_MAX 512

/* The listener's addresses, and how many more it has that this node does not know. */
static void remote_text(const struct mesh_handle *handle, char *text, size_t size)
{
	size_t used;

	mesh_endpoints_text(handle->endpoints, handle->num_endpoints, NULL, text, size);
	used = strlen(text);
	if (mesh_handle_lacks_nics(handle))
		snprintf(
			text + used, size - used,
			" (%d of its %d NICs: the handle has no room for more, and the others have "
			"not answered as neighbours)",
			handle->num_endpoints, handle->total_nics);
}

/* Appends a sentence to words that may end in a question mark, or in nothing. */
static void sentence_add(char *text, size_t size, const char *sentence)
{
	size_t used = strlen(text);

	if (*sentence)
		snprintf(text + used, size - used, "%s%s",
			 !used || strchr("?.", text[used - 1]) ? " " : ". ", sentence);
}

/* True if the setting would add NICs of the management network. */
static bool has_spares(const struct mesh_process *process, const struct mesh_nic_table *table)
{
	int i = 0;

	while (i < table->num_nics && table->nics[i].verdict != MESH_NIC_SPARE)
		i++;
	return i < table->num_nics && strcmp(process->config.routed, "management") != 0;
}

/* What is at the other ends of our NICs: "Neighbours: ab is cabled to node c (ca)", or "". */
MESH_HOLDS(process)
static const char *neighbours_text(struct mesh_process *process, char *text, size_t size)
{
	const struct mesh_neighbours *neighbours = mesh_setup_of(process)->neighbours;

	*text = '\0';
	return neighbours ? mesh_asking_words(&neighbours->asking, text, size) : text;
}

/* What may help to find the missing cable. */
MESH_HOLDS(process)
static const char *advice_text(const struct mesh_connect *connect, char *text, size_t size)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_nic_table *table = mesh_nic_watch_table(process);
	const struct mesh_handle *handle = &connect->handle;
	char skipped[SKIPPED_TEXT_MAX] = "Skipped here: ", words[MESH_NEIGHBOURS_WORDS_MAX];
	size_t used = strlen(skipped);

	*text = '\0';
	if (has_spares(process, table))
		sentence_add(text, size,
			     "NCCL_MESH_ROUTED=management on all nodes sends such data over the "
			     "management network");
	if (*mesh_nics_skipped_text(table, handle->endpoints, handle->num_endpoints, skipped + used,
				    sizeof(skipped) - used))
		sentence_add(text, size, skipped);
	sentence_add(text, size, neighbours_text(process, words, sizeof(words)));
	return text;
}

/* What is known of the relays. */
MESH_HOLDS(process)
static const char *relay_try_text(const struct mesh_relay_try *relay, char *text, size_t size)
{
	const struct mesh_relay_tried *tried;
	const char *separator = "";
	size_t used;

	used = (size_t)snprintf(text, size, "%s",
				relay->tried.num ? "" : "no neighbour runs a process of this job");
	for (tried = relay->tried.all; tried < relay->tried.all + relay->tried.num && used < size;
	     tried++) {
		used += (size_t)snprintf(
			text + used, size - used, "%snode %s: %s", separator, tried->node,
			tried->refusal ? mesh_refusal_text(tried->refusal) : "no answer yet");
		separator = "; ";
	}
	return text;
}

/* Why no relay helps; "" if none was asked. */
MESH_HOLDS(process)
static const char *relays_text(const struct mesh_connect *connect, char *text)
{
	char why[RELAY_TEXT_MAX - 32];

	*text = '\0';
	if (connect->relay)
		snprintf(text, RELAY_TEXT_MAX, "; no neighbour relays: %s",
			 relay_try_text(connect->relay, why, sizeof(why)));
	return text;
}

/* With every address on both sides, so that the reader sees which cable is missing. */
void mesh_connect_log_no_path(const struct mesh_connect *connect)
{
	const struct mesh_path_candidate *differing = &connect->choice.differing;
	const struct mesh_handle *handle = &connect->handle;
	struct mesh_process *process = connect->net->process;
	char local[ENDPOINTS_TEXT_MAX], remote[ENDPOINTS_TEXT_MAX], advice[END_TEXT_MAX];
	char node[MESH_HANDLE_NODE_TEXT_MAX], relays[RELAY_TEXT_MAX];

	if (handle->foreign)
		return; /* the line about the handle says enough */
	/* Its user has little room for it. */
	if (process->role == MESH_PROCESS_GUEST) {
		mesh_warn("no relay reaches node %s: %s", handle->node,
			  connect->relay ? relay_try_text(connect->relay, relays, sizeof(relays))
					 : "none may be asked");
		return;
	}
	mesh_handle_node_text(handle, node);
	mesh_endpoints_text(process->endpoints, process->num_endpoints, process, local,
			    sizeof(local));
	remote_text(handle, remote, sizeof(remote));
	if (differing->provider)
		mesh_warn("node %s cannot connect to node %s: on their common subnet we use the "
			  "provider %s and it uses %s. Set NCCL_MESH_PROVIDER to the same on all "
			  "nodes. Here: %s; there: %s",
			  process->name, node,
			  mesh_provider_id_text(process->endpoints[differing->local].provider),
			  mesh_provider_id_text(handle->endpoints[differing->remote].provider),
			  local, remote);
	else
		mesh_warn(
			"node %s cannot connect to node %s: no common subnet, and no route between "
			"their mesh NICs%s. Here: %s; there: %s. Is there a cable between the two, "
			"with addresses of one subnet at both ends (`fi_mesh up` sets them), or do "
			"the nodes between them relay (NCCL_MESH_RELAY)?%s",
			process->name, node, relays_text(connect, relays), local, remote,
			advice_text(connect, advice, sizeof(advice)));
}

/* ---- candidates of which none is up ---------------------------------------------------------- */

/* What the user may do about a peer that TCP reaches and RDMA does not; "" for others. */
MESH_HOLDS(process)
static const char *rdma_advice(const struct mesh_peer *peer)
{
	if (!peer || peer->domain->provider != MESH_PROVIDER_VERBS_RXM || !peer->name[0] ||
	    peer->refusal)
		return "";
	return "If the path is routed, does each router on the way pass UDP port 4791? "
	       "NCCL_MESH_PROVIDER='verbs;ofi_rxm,tcp' on all nodes allows tcp, which is much "
	       "slower";
}

/* An attempt that is not up, in words. */
struct tried {
	const struct mesh_peer *peer; /* that explains it best; NULL: no domain is open */
	const struct mesh_nic *nic; /* of the peer, or of the best candidate; NULL: there is none */
	char target[MESH_PEER_TEXT_MAX];
	char why[MESH_PEER_REASON_MAX];
	char relays[RELAY_TEXT_MAX];
};

MESH_HOLDS(process)
static void why_fill(const struct mesh_peer *peer, const struct mesh_nic *nic, char *why)
{
	if (peer && peer->state == MESH_PEER_CONNECTING && !peer->reason[0])
		snprintf(why, MESH_PEER_REASON_MAX,
			 "no answer from TCP port %u: is the cable in, the peer's link up, and no "
			 "firewall between?",
			 peer->control_port);
	else if (peer)
		snprintf(why, MESH_PEER_REASON_MAX, "%.200s",
			 peer->reason[0] ? peer->reason : "it does not answer our request");
	else if (!nic)
		snprintf(why, MESH_PEER_REASON_MAX, "no link or route reaches it");
	else if (mesh_carrier_is_up(nic))
		snprintf(why, MESH_PEER_REASON_MAX,
			 "libfabric has not opened %s: is this node short of CPU time or memory? "
			 "An earlier line may have the cause",
			 nic->netdev);
	else
		snprintf(why, MESH_PEER_REASON_MAX,
			 "%s has no carrier: is its cable plugged in at both ends?", nic->netdev);
}

MESH_HOLDS(process)
static void tried_fill(const struct mesh_connect *connect, struct tried *tried)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_path_choice *choice = &connect->choice;
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	tried->peer = mesh_connect_try_informative(connect);
	tried->nic = NULL;
	if (tried->peer)
		tried->nic = tried->peer->domain->nic;
	else if (choice->num_candidates)
		tried->nic = process->nics[process->endpoints[choice->candidates[0].local].nic];
	if (tried->peer)
		mesh_peer_text(tried->peer, tried->target);
	else
		snprintf(tried->target, sizeof(tried->target), "node %s",
			 mesh_handle_node_text(&connect->handle, node));
	why_fill(tried->peer, tried->nic, tried->why);
	relays_text(connect, tried->relays);
}

/*
 * That two cables of node @name share a subnet, if two of its addresses do; "" if none do.
 * fe80::/64 is one for each NIC.
 */
static const char *shared_subnet_text(const char *name, const struct mesh_endpoint_addr *endpoints,
				      int num, char *text, size_t size)
{
	char one[MESH_ADDR_TEXT_MAX], other[MESH_ADDR_TEXT_MAX];
	int i, k;

	*text = '\0';
	for (i = 0; i < num; i++) {
		if (endpoints[i].addr.family == MESH_FAMILY_IPV6 &&
		    mesh_addr_is_link_local(&endpoints[i].addr))
			continue;
		for (k = 0; k < i; k++)
			if (mesh_addr_same_subnet(&endpoints[i].addr, &endpoints[k].addr))
				snprintf(
					text, size,
					"%s and %s of node %s share one subnet, so packets for "
					"one cable leave over another: give each cable a subnet "
					"of its own (`fi_mesh up` does; `fi_mesh check` says more)",
					mesh_addr_text_prefix(&endpoints[k].addr, one),
					mesh_addr_text_prefix(&endpoints[i].addr, other), name);
	}
	return text;
}

void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_process *process = connect->net->process;
	char local[MESH_ADDR_TEXT_MAX], words[MESH_NEIGHBOURS_WORDS_MAX], end[END_TEXT_MAX];
	struct tried tried;

	if (connect->handle.foreign || !connect->choice.num_candidates) {
		mesh_connect_log_no_path(connect);
		return;
	}
	tried_fill(connect, &tried);
	snprintf(end, sizeof(end), "%s", tried.why);
	sentence_add(end, sizeof(end), rdma_advice(tried.peer));
	sentence_add(end, sizeof(end),
		     shared_subnet_text(process->name, process->endpoints, process->num_endpoints,
					words, sizeof(words)));
	sentence_add(end, sizeof(end),
		     shared_subnet_text(connect->handle.node, connect->handle.endpoints,
					connect->handle.num_endpoints, words, sizeof(words)));
	sentence_add(end, sizeof(end), neighbours_text(process, words, sizeof(words)));
	mesh_warn("node %s gave up connecting from %s (%s) to %s after %llu ms (%d path%s "
		  "tried%s): %s",
		  process->name, tried.nic->netdev, mesh_addr_text(&tried.nic->source, local),
		  tried.target, (unsigned long long)(now_ms - connect->started_ms),
		  connect->choice.num_candidates, connect->choice.num_candidates == 1 ? "" : "s",
		  tried.relays, end);
}

void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_neighbours *neighbours = mesh_setup_of(connect->net->process)->neighbours;
	uint64_t left_ms = mesh_clock_elapsed_ms(now_ms, connect->deadline_ms);
	struct tried tried;

	if (connect->slow_warned || now_ms - connect->started_ms < MESH_CONNECT_SLOW_MS)
		return;
	connect->slow_warned = true;
	if (neighbours)
		mesh_neighbours_ask(neighbours); /* an error that follows says what is there now */
	tried_fill(connect, &tried);
	mesh_warn("still connecting%s%s to %s (%s%s); giving up in %llu s",
		  tried.nic ? " from " : "", tried.nic ? tried.nic->netdev : "", tried.target,
		  tried.why, tried.relays, (unsigned long long)left_ms / 1000);
}

void mesh_connect_log_relays(const struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_process *process = connect->net->process;
	const unsigned long long age_ms = now_ms - connect->started_ms;
	char node[MESH_HANDLE_NODE_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];
	const struct mesh_dial *dial = NULL;
	int i;

	mesh_process_assert_locked(process);
	mesh_handle_node_text(&connect->handle, node);
	for (i = 0; i < connect->num_dials; i++) {
		if (connect->pairs[i].class == MESH_PATH_DIRECT && connect->dials[i].peer &&
		    !mesh_addr_is_link_local(&connect->dials[i].way.address.addr))
			dial = &connect->dials[i];
	}
	if (!dial)
		mesh_info("the routes to node %s have let nothing through for %llu ms: going over "
			  "relays",
			  node, age_ms);
	else if (mesh_log_limit_pass(&process->limits.dead_links, 1, now_ms, more))
		mesh_warn("the links to node %s have let nothing through for %llu ms (%s): going "
			  "over relays. `fi_mesh check --peer` on both nodes says more%s",
			  node, age_ms,
			  dial->peer->reason[0] ? dial->peer->reason : "TCP has no answer", more);
}

void mesh_connect_log_full(const struct mesh_connect *connect, int error)
{
	struct mesh_process *process = connect->net->process;
	char node[MESH_HANDLE_NODE_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&process->limits.full, FULL_LINES, mesh_clock_ms(), more))
		mesh_warn("node %s cannot make a connection to node %s: %s%s", process->name,
			  mesh_handle_node_text(&connect->handle, node), strerror(-error), more);
}

void mesh_connect_log_refused(const struct mesh_peer *peer, enum mesh_refusal refusal)
{
	struct mesh_log_limit *limit = &peer->process->limits.full;
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX] = "";

	if (refusal != MESH_REFUSAL_RESOURCES ||
	    mesh_log_limit_pass(limit, FULL_LINES, mesh_clock_ms(), more))
		mesh_warn("%s refused a connection: %s%s", mesh_peer_text(peer, text),
			  mesh_refusal_text(refusal), more);
}
