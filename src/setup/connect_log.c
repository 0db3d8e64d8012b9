/* SPDX-License-Identifier: Apache-2.0 */
/* connect_log.c - messages to the user about a connection attempt. */
#include <stdio.h>

#include "base/log.h"
#include "nic/nic_skipped.h"
#include "setup/connect_log.h"
#include "setup/connect_try.h"
#include "setup/nic_watch.h"

/* If a connection takes longer, one WARN reports it. */
#define SLOW_MS 5000
#define ENDPOINTS_TEXT_MAX 384
#define SKIPPED_TEXT_MAX 512

/* Logs every address on both sides, so that the reader sees which cable is missing. */
void mesh_connect_log_no_path(const struct mesh_connect *connect)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_handle *handle = &connect->handle;
	const struct mesh_path_choice *choice = &connect->choice;
	char local[ENDPOINTS_TEXT_MAX], remote[ENDPOINTS_TEXT_MAX], skipped[SKIPPED_TEXT_MAX];
	char node[MESH_HANDLE_NODE_TEXT_MAX];

	mesh_handle_node_text(handle, node);
	mesh_nics_skipped_text(mesh_nic_watch_table(process), handle->endpoints,
			       handle->num_endpoints, skipped, sizeof(skipped));
	mesh_endpoints_text(process->endpoints, process->num_endpoints, process, local,
			    sizeof(local));
	mesh_endpoints_text(handle->endpoints, handle->num_endpoints, NULL, remote, sizeof(remote));
	if (choice->provider_differs)
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
			"node %s cannot connect to node %s: no common subnet. Here: %s; there: %s. "
			"Is there a cable between the two, with addresses of one subnet at both "
			"ends?%s%s",
			process->name, node, local, remote, *skipped ? " Skipped here: " : "",
			skipped);
}

void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms)
{
	struct mesh_process *process = connect->net->process;
	const struct mesh_peer *peer = mesh_connect_try_informative(connect);
	char local[MESH_ADDR_TEXT_MAX], text[MESH_PEER_TEXT_MAX], why[MESH_PEER_REASON_MAX];
	const struct mesh_domain *domain = peer->domain;

	if (peer->state == MESH_PEER_CONNECTING && !peer->reason[0])
		snprintf(why, sizeof(why),
			 "no answer from TCP port %u: is the cable in, the peer's link up, and no "
			 "firewall between?",
			 peer->control_port);
	else
		snprintf(why, sizeof(why), "%.200s",
			 peer->reason[0] ? peer->reason : "it does not answer our request");
	mesh_warn(
		"node %s gave up connecting from %s (%s) to %s after %llu ms (%d path%s tried): %s",
		process->name, domain->nic->netdev, mesh_addr_text(&domain->nic->source, local),
		mesh_peer_text(peer, text), (unsigned long long)(now_ms - connect->started_ms),
		connect->choice.num_candidates, connect->choice.num_candidates == 1 ? "" : "s",
		why);
}

void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms)
{
	const struct mesh_peer *peer = mesh_connect_try_informative(connect);
	char text[MESH_PEER_TEXT_MAX];

	if (connect->slow_warned || now_ms - connect->started_ms < SLOW_MS)
		return;
	connect->slow_warned = true;
	mesh_warn("still connecting from %s to %s (%s); giving up in %llu s",
		  peer->domain->nic->netdev, mesh_peer_text(peer, text),
		  peer->reason[0] ? peer->reason : "no answer yet",
		  (unsigned long long)(connect->deadline_ms - now_ms) / 1000);
}
