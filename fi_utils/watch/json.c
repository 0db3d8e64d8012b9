/* SPDX-License-Identifier: Apache-2.0 */
/* json.c - the counters as JSON: one object a line. */
#include <stdio.h>

#include "base/clock.h"

#include "common/json.h"
#include "watch/json.h"
#include "watch/rates.h"
#include "watch/sample.h"

static json_t *count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* The value, or null if it is unknown or there is only one sample. */
static json_t *rate(bool known, uint64_t now, uint64_t before, double seconds)
{
	return known && seconds > 0 ? json_real(watch_rate(now, before, seconds)) : json_null();
}

static json_t *rdma_json(const struct watch_nic *nic, const struct watch_nic *before,
			 double seconds)
{
	json_t *hw = json_object();
	int i;

	if (!*nic->rdma) {
		json_decref(hw);
		return json_null();
	}
	for (i = 0; i < nic->num_hw; i++)
		json_object_set_new(hw, nic->hw[i].name, count(nic->hw[i].value));
	return json_pack("{s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "device",
			 output_json_text(nic->rdma), "port", nic->rdma_port, "tx_bytes",
			 nic->rdma_known ? count(nic->rdma_tx) : json_null(), "rx_bytes",
			 nic->rdma_known ? count(nic->rdma_rx) : json_null(), "tx_bytes_per_s",
			 rate(before && nic->rdma_known, nic->rdma_tx, before ? before->rdma_tx : 0,
			      seconds),
			 "rx_bytes_per_s",
			 rate(before && nic->rdma_known, nic->rdma_rx, before ? before->rdma_rx : 0,
			      seconds),
			 "errors", count(nic->rdma_errors), "hw_counters", hw);
}

static json_t *nic_json(const struct watch_nic *nic, const struct watch_nic *before, double seconds)
{
	static const char *const words[] = {
		[WATCH_UNKNOWN] = NULL, [WATCH_IDLE] = "idle", [WATCH_KERNEL] = "kernel",
		[WATCH_RDMA] = "rdma",	[WATCH_BOTH] = "both",
	};
	bool known = nic->netdev_known;

	return json_pack(
		"{s:o, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "netdev",
		output_json_text(nic->netdev), "up", nic->up, "speed_mbps", nic->speed_mbps,
		"traffic", output_json_text(words[watch_traffic(nic, before, seconds)]), "tx_bytes",
		known ? count(nic->netdev_tx) : json_null(), "rx_bytes",
		known ? count(nic->netdev_rx) : json_null(), "tx_bytes_per_s",
		rate(before && known, nic->netdev_tx, before ? before->netdev_tx : 0, seconds),
		"rx_bytes_per_s",
		rate(before && known, nic->netdev_rx, before ? before->netdev_rx : 0, seconds),
		"errors", count(nic->netdev_errors), "rdma", rdma_json(nic, before, seconds));
}

static json_t *link_json(const struct watch_link *link, const struct watch_link *before,
			 bool has_before, double seconds)
{
	const struct mesh_stats_entry *entry = &link->entry;
	const struct mesh_counters *counters = &entry->counters;
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_addr from, to;

	mesh_stats_addresses(entry, &from, &to);
	return json_pack(
		"{s:i, s:o, s:o, s:s, s:s, s:s, s:s, s:b, s:s, s:i, s:i, s:i, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o}",
		"pid", (int)link->pid, "peer", output_json_text(entry->peer), "nic",
		output_json_text(entry->nic), "local", mesh_addr_text(&from, local), "remote",
		mesh_addr_text(&to, remote), "direction", entry->sending ? "send" : "receive",
		"provider", mesh_provider_id_text((enum mesh_provider_id)entry->provider),
		"relayed", entry->via == MESH_STATS_RELAY, "via", mesh_stats_via_text(entry->via),
		"open_paths", (int)link->open_paths, "down_paths", (int)link->down_paths,
		"drained_paths", (int)link->parked_paths, "bytes", count(counters->bytes),
		"bytes_per_s",
		rate(has_before, counters->bytes, before ? before->entry.counters.bytes : 0,
		     seconds),
		"messages", count(counters->messages), "segments", count(counters->segments),
		"small", count(counters->small), "busy", count(counters->busy), "errors",
		count(counters->errors), "losses", count(counters->losses), "resent",
		count(counters->resent));
}

static json_t *circuit_json(const struct watch_circuit *circuit, const struct watch_circuit *before,
			    bool has_before, double seconds)
{
	const struct mesh_stats_circuit *entry = &circuit->circuit;
	const struct mesh_circuit_counters *counters = &entry->counters;

	return json_pack(
		"{s:i, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i}", "pid",
		(int)circuit->pid, "from", output_json_text(entry->origin), "to",
		output_json_text(entry->target), "nic_from", output_json_text(entry->nic_up),
		"nic_to", output_json_text(entry->nic_down), "open_circuits", (int)circuit->open,
		"bytes", count(counters->bytes), "bytes_per_s",
		rate(has_before, counters->bytes, before ? before->circuit.counters.bytes : 0,
		     seconds),
		"segments", count(counters->segments), "messages", count(counters->messages),
		"copied", count(counters->copied), "memory", count(counters->memory), "slots",
		(int)counters->slots, "used_slots", (int)counters->used);
}

static json_t *process_json(const struct watch_process *process)
{
	const struct mesh_stats_header *header = &process->header;
	const struct mesh_process_counters *counters = &header->counters;

	return json_pack("{s:i, s:I, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "pid", (int)header->pid, "uid", (json_int_t)process->uid, "program",
			 output_json_text(header->program), "node", output_json_text(header->node),
			 "node_id", output_json_hex(header->node_id), "started_ms",
			 count(header->started_ms), "open_paths", process->num_open, "comms_opened",
			 count(counters->comms_opened), "comms_failed",
			 count(counters->comms_failed), "peers_up", count(counters->peers_up),
			 "peers_lost", count(counters->peers_lost), "retries",
			 count(counters->retries), "refused", count(counters->refused), "unlisted",
			 count(counters->unlisted));
}

int watch_print_json(FILE *file, const struct watch_sample *now, const struct watch_sample *before)
{
	json_t *nics = json_array(), *links = json_array(), *processes = json_array();
	json_t *circuits = json_array();
	double seconds = watch_seconds(now, before);
	int i;

	for (i = 0; i < now->num_nics && nics; i++)
		nics = output_json_append(
			nics,
			nic_json(&now->nics[i], watch_nic_find(before, &now->nics[i]), seconds));
	for (i = 0; i < now->num_links && links; i++)
		links = output_json_append(links, link_json(&now->links[i],
							    watch_link_find(before, &now->links[i]),
							    before != NULL, seconds));
	for (i = 0; i < now->num_circuits && circuits; i++)
		circuits = output_json_append(
			circuits, circuit_json(&now->circuits[i],
					       watch_circuit_find(before, &now->circuits[i]),
					       before != NULL, seconds));
	for (i = 0; i < now->num_processes && processes; i++)
		processes = output_json_append(processes, process_json(&now->processes[i]));
	return output_json_print_line("fi_mesh watch", file,
				      json_pack("{s:f, s:f, s:o, s:o, s:o, s:o, s:i}", "time",
						(double)mesh_clock_wall_ms() / 1000, "seconds",
						seconds, "nics", nics, "links", links, "circuits",
						circuits, "processes", processes, "unreadable",
						now->num_unread));
}
