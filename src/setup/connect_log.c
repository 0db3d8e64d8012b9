/* SPDX-License-Identifier: Apache-2.0 */
/* connect_log.c - messages to the user about a connection attempt. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "nic/nic.h"
#include "system/nic_table.h"
#include "setup/connect_log.h"
#include "setup/relay_try.h"
#include "setup/connect_try.h"
#include "setup/neighbour_hints.h"
#include "setup/nic_watch.h"
#include "setup/candidates.h"

/* Lines about connections that find no room, here or there, within MESH_LOG_LIMIT_PERIOD_MS. */
#define FULL_LINES 8
#define ENDPOINTS_TEXT_MAX 512
#define SKIPPED_TEXT_MAX 512
#define END_TEXT_MAX MESH_LOG_LINE_MAX
#define RELAY_TEXT_MAX 512
#define ROUTE_TEXT_MAX (IF_NAMESIZE + 2 * MESH_ADDR_TEXT_MAX + 16)

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

/* What may help to find the missing cable. */
MESH_HOLDS(process)
static const char *advice_text(const struct mesh_connect *connect, char *text, size_t size)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_nic_table *table = mesh_nic_watch_table(process);
	const struct mesh_handle *handle = &connect->handle;
	char skipped[SKIPPED_TEXT_MAX] = "Skipped here: ", words[MESH_NEIGHBOUR_HINT_MAX];
	size_t used = strlen(skipped);

	mesh_spares_hint(process, table, text, size);
	if (*mesh_nics_skipped_text(table, handle->endpoints, handle->num_endpoints, skipped + used,
				    sizeof(skipped) - used))
		sentence_add(text, size, skipped);
	sentence_add(text, size, mesh_neighbour_hints_text(process, words, sizeof(words)));
	sentence_add(text, size,
		     mesh_neighbour_hints_route_text(process, handle, words, sizeof(words)));
	return text;
}

/*
 * Logs every address on both sides, so that the reader sees which cable is missing.
 *
 * @relays: why no relay helps, "" if none was asked
 */
MESH_HOLDS(process)
static void no_path_log(const struct mesh_connect *connect, const char *relays)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	const struct mesh_path_choice *choice = &connect->choice;
	char local[ENDPOINTS_TEXT_MAX], remote[ENDPOINTS_TEXT_MAX], advice[END_TEXT_MAX];
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	mesh_handle_node_text(handle, node);
	mesh_endpoints_text(process->endpoints, process->num_endpoints, process, local,
			    sizeof(local));
	remote_text(handle, remote, sizeof(remote));
	if (choice->differing.provider)
		mesh_warn(
			"node %s cannot connect to node %s: on their common subnet we use the "
			"provider %s and it uses %s. Set NCCL_MESH_PROVIDER to the same on all "
			"nodes. Here: %s; there: %s",
			process->name, node,
			mesh_provider_id_text(process->endpoints[choice->differing.local].provider),
			mesh_provider_id_text(handle->endpoints[choice->differing.remote].provider),
			local, remote);
	else
		mesh_warn(
			"node %s cannot connect to node %s: no common subnet, and no route between "
			"their mesh NICs%s. Here: %s; there: %s. Is there a cable between the two, "
			"with addresses of one subnet at both ends?%s",
			process->name, node, relays, local, remote,
			advice_text(connect, advice, sizeof(advice)));
}

/* NICs lead there by their addresses or routes, and libfabric cannot open any of them. */
MESH_HOLDS(process)
static void unopened_log(const struct mesh_connect *connect, const char *relays)
{
	const struct mesh_process *process = connect->net->process;
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	mesh_warn("node %s cannot connect to node %s: libfabric cannot open %s, which leads "
		  "there%s. An earlier line has the cause",
		  process->name, mesh_handle_node_text(&connect->handle, node),
		  process->nics[connect->unopened - 1]->netdev, relays);
}

/* There is no candidate. @relays: see no_path_log() */
MESH_HOLDS(process)
static void no_candidate_log(const struct mesh_connect *connect, const char *relays)
{
	if (connect->unopened)
		unopened_log(connect, relays);
	else
		no_path_log(connect, relays);
}

/* What a guest says: its user knows the rest, and there is little room for it. */
MESH_HOLDS(process)
static void guest_log(const struct mesh_connect *connect)
{
	char why[RELAY_TEXT_MAX];

	mesh_warn("no relay leads to node %s: %s", connect->handle.node,
		  connect->relay ? mesh_relay_try_text(connect->relay, why, sizeof(why))
				 : "none may be asked");
}

void mesh_connect_log_no_path(const struct mesh_connect *connect)
{
	if (connect->handle.foreign)
		return; /* the line about the handle says enough */
	if (connect->net->process->role == MESH_PROCESS_GUEST)
		guest_log(connect);
	else
		no_candidate_log(connect, "");
}

/* Why no relay helps, if relays were asked until the deadline; else "". */
MESH_HOLDS(process)
static const char *relays_text(const struct mesh_connect *connect, uint64_t now_ms, char *text,
			       size_t size)
{
	char why[RELAY_TEXT_MAX];

	*text = '\0';
	if (connect->relay)
		snprintf(text, size, "; no neighbour relays, asked for %llu ms (%s)",
			 (unsigned long long)(now_ms - connect->started_ms),
			 mesh_relay_try_text(connect->relay, why, sizeof(why)));
	return text;
}

/* Until the connection is given up. */
static unsigned long long seconds_left(const struct mesh_connect *connect, uint64_t now_ms)
{
	return now_ms < connect->deadline_ms ? (connect->deadline_ms - now_ms) / 1000 : 0;
}

void mesh_connect_relay_log_slow(struct mesh_connect *connect, uint64_t now_ms)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX], why[RELAY_TEXT_MAX];

	if (connect->slow_warned || now_ms - connect->started_ms < MESH_CONNECT_SLOW_MS)
		return;
	connect->slow_warned = true;
	mesh_warn("still connecting to node %s through neighbours (%s); giving up in %llu s",
		  mesh_handle_node_text(&connect->handle, node),
		  mesh_relay_try_text(connect->relay, why, sizeof(why)),
		  seconds_left(connect, now_ms));
}

/* What the user may do about a peer that TCP reaches and RDMA does not; "" for others. */
MESH_HOLDS(process)
static const char *rdma_advice(const struct mesh_peer *peer)
{
	if (peer->domain->provider != MESH_PROVIDER_VERBS_RXM || !peer->name[0] || peer->refusal)
		return "";
	if (peer->routed)
		return "The path is routed: does each router on the way pass UDP port 4791? "
		       "NCCL_MESH_PROVIDER='verbs;ofi_rxm,tcp' on all nodes allows tcp, which is "
		       "much slower";
	return "NCCL_MESH_PROVIDER='verbs;ofi_rxm,tcp' on all nodes allows tcp, which is much "
	       "slower";
}

/* Why no relay helps either; "" if none was asked. */
MESH_HOLDS(process)
static const char *no_relay_text(const struct mesh_connect *connect, char *text, size_t size)
{
	const struct mesh_relay_try *relay = connect->relay;
	char why[RELAY_TEXT_MAX / 2];

	*text = '\0';
	if (relay)
		snprintf(text, size, "No relay has led there either (%s)",
			 mesh_relay_try_text(relay, why, sizeof(why)));
	return text;
}

/* Why this peer is not up. */
MESH_HOLDS(process)
static const char *peer_why(const struct mesh_peer *peer, char *why)
{
	if (peer->state == MESH_PEER_CONNECTING && !peer->reason[0])
		snprintf(why, MESH_PEER_REASON_MAX,
			 "no answer from TCP port %u: is the cable in, the peer's link up, and no "
			 "firewall between?",
			 peer->control_port);
	else
		snprintf(why, MESH_PEER_REASON_MAX, "%.200s",
			 peer->reason[0] ? peer->reason : "it does not answer our request");
	return why;
}

/* "from ab (10.7.1.1) to 10.7.2.2" */
MESH_HOLDS(process)
static const char *route_text(const struct mesh_connect *connect,
			      const struct mesh_path_candidate *pair, char *text)
{
	const struct mesh_process *process = connect->net->process;
	const struct mesh_nic *nic = process->nics[process->endpoints[pair->local].nic];
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];

	snprintf(text, ROUTE_TEXT_MAX, "from %s (%s) to %s", nic->netdev,
		 mesh_addr_text(&nic->source, local),
		 mesh_addr_text(&connect->handle.endpoints[pair->remote].addr, remote));
	return text;
}

/* The candidates let nothing through, and relays lead nowhere. */
MESH_HOLDS(process)
static void dead_log_timeout(const struct mesh_connect *connect, uint64_t now_ms)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX], route[ROUTE_TEXT_MAX], relays[RELAY_TEXT_MAX];

	mesh_warn("node %s gave up connecting to node %s after %llu ms: the %s let nothing "
		  "through, as %s. %s",
		  connect->net->process->name, mesh_handle_node_text(&connect->handle, node),
		  (unsigned long long)(now_ms - connect->started_ms),
		  mesh_path_class_is_routed(connect->choice.candidates[0].class) ? "routes"
										 : "links",
		  route_text(connect, &connect->choice.candidates[0], route),
		  no_relay_text(connect, relays, sizeof(relays)));
}

MESH_HOLDS(process)
static void direct_log_timeout(const struct mesh_connect *connect, const struct mesh_peer *peer,
			       uint64_t now_ms)
{
	struct mesh_process *process = connect->net->process;
	char local[MESH_ADDR_TEXT_MAX], text[MESH_PEER_TEXT_MAX], why[MESH_PEER_REASON_MAX];
	char neighbours[MESH_NEIGHBOUR_HINT_MAX], end[END_TEXT_MAX], relays[RELAY_TEXT_MAX];
	const struct mesh_domain *domain = peer->domain;

	snprintf(end, sizeof(end), "%s", peer_why(peer, why));
	sentence_add(end, sizeof(end), rdma_advice(peer));
	sentence_add(end, sizeof(end), no_relay_text(connect, relays, sizeof(relays)));
	sentence_add(end, sizeof(end),
		     mesh_neighbour_hints_text(process, neighbours, sizeof(neighbours)));
	mesh_warn("node %s gave up connecting from %s (%s) to %s after %llu ms (%d path%s tried): "
		  "%s",
		  process->name, domain->nic->netdev, mesh_addr_text(&domain->nic->source, local),
		  mesh_peer_text(peer, text), (unsigned long long)(now_ms - connect->started_ms),
		  connect->choice.num_candidates, connect->choice.num_candidates == 1 ? "" : "s",
		  end);
}

/* The NIC of the best candidate. */
MESH_HOLDS(process)
static const struct mesh_nic *best_nic(const struct mesh_connect *connect)
{
	const struct mesh_process *process = connect->net->process;

	return process->nics[process->endpoints[connect->choice.candidates[0].local].nic];
}

void mesh_connect_log_away(struct mesh_connect *connect, uint64_t now_ms)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	if (connect->away_warned || mesh_carrier_is_up(best_nic(connect)))
		return;
	connect->away_warned = true;
	mesh_warn("still connecting from %s to node %s (%s has no carrier: is its cable plugged in "
		  "at both ends?); giving up in %llu s",
		  best_nic(connect)->netdev, mesh_handle_node_text(&connect->handle, node),
		  best_nic(connect)->netdev, seconds_left(connect, now_ms));
}

/* No domain of a candidate is open. @relays: see relays_text() */
MESH_HOLDS(process)
static void unopened_log_timeout(const struct mesh_connect *connect, uint64_t now_ms,
				 const char *relays)
{
	char node[MESH_HANDLE_NODE_TEXT_MAX];
	const struct mesh_nic *nic = best_nic(connect);

	mesh_warn("node %s gave up connecting to node %s after %llu ms: libfabric has not opened "
		  "%s, which leads there%s. %s",
		  connect->net->process->name, mesh_handle_node_text(&connect->handle, node),
		  (unsigned long long)(now_ms - connect->started_ms), nic->netdev, relays,
		  mesh_carrier_is_up(nic) ? "Is this node short of CPU time or memory?"
					  : "The NIC has no carrier: is its cable plugged in?");
}

void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_peer *tried = mesh_connect_try_informative(connect);
	char relays[RELAY_TEXT_MAX + 64];

	if (connect->handle.foreign)
		return;
	relays_text(connect, now_ms, relays, sizeof(relays));
	if (connect->net->process->role == MESH_PROCESS_GUEST)
		guest_log(connect);
	else if (!connect->choice.num_candidates)
		no_candidate_log(connect, relays);
	else if (connect->state == MESH_CONNECT_OPEN_SENT && connect->num_dials)
		dead_log_timeout(connect, now_ms);
	else if (!tried)
		unopened_log_timeout(connect, now_ms, relays);
	else
		direct_log_timeout(connect, tried, now_ms);
}

void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_peer *peer = mesh_connect_try_informative(connect);
	char text[MESH_PEER_TEXT_MAX];

	if (connect->slow_warned || !peer || now_ms - connect->started_ms < MESH_CONNECT_SLOW_MS)
		return;
	connect->slow_warned = true;
	mesh_neighbour_hints_look(connect->net->process);
	mesh_warn("still connecting from %s to %s (%s); giving up in %llu s",
		  peer->domain->nic->netdev, mesh_peer_text(peer, text),
		  peer->reason[0] ? peer->reason : "no answer yet", seconds_left(connect, now_ms));
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
			  "over relays. 'fi_mesh check --peer' on both nodes says more%s",
			  node, age_ms,
			  dial->peer->reason[0] ? dial->peer->reason : "TCP has no answer", more);
}

void mesh_connect_log_full(const struct mesh_peer *peer, int error)
{
	char text[MESH_PEER_TEXT_MAX], more[MESH_LOG_LIMIT_TEXT_MAX];

	if (mesh_log_limit_pass(&peer->process->limits.full, FULL_LINES, mesh_clock_ms(), more))
		mesh_warn("cannot make a connection to %s: %s%s", mesh_peer_text(peer, text),
			  strerror(-error), more);
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
