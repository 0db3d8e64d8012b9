/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the counters as tables and JSON. */
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "nic/nic_select.h"
#include "system/stats_file.h"

#include "common/json.h"
#include "common/output.h"
#include "common/stats_folders.h"
#include "common/table.h"
#include "watch/print.h"
#include "watch/sample.h"

#define COUNT(titles) (int)(sizeof(titles) / sizeof((titles)[0]))

/* "-" before there is a second sample, or where it is not known. */
static void rate_cell(struct output_table *table, bool known, uint64_t now, uint64_t before,
		      double seconds)
{
	char text[WATCH_RATE_TEXT_MAX];

	output_table_text(table,
			  known ? watch_rate_text(watch_rate(now, before, seconds), text) : "-");
}

static const char *bytes_text(uint64_t bytes, char *text)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static enum output_style traffic_style(enum watch_traffic traffic, const struct watch_nic *nic)
{
	if (traffic == WATCH_RDMA)
		return OUTPUT_GOOD;
	/* Highlighted: an RDMA NIC whose traffic goes through the kernel. */
	if (*nic->rdma && (traffic == WATCH_KERNEL || traffic == WATCH_BOTH))
		return OUTPUT_NOTICE;
	return OUTPUT_PLAIN;
}

static void nic_row(struct output_table *table, const struct watch_nic *nic,
		    const struct watch_nic *before, double seconds)
{
	enum watch_traffic traffic = watch_traffic(nic, before, seconds);
	const struct watch_nic *base = before ? before : nic;
	bool netdev = before && nic->netdev_known, rdma = before && nic->rdma_known;
	uint64_t errors = nic->netdev_errors + nic->rdma_errors;
	char text[32];

	output_table_text(table, nic->netdev);
	output_table_text(table, *nic->rdma ? nic->rdma : "-");
	if (nic->up)
		output_table_text(table, mesh_nic_speed_text(nic->speed_mbps, text));
	else
		output_table_cell(table, OUTPUT_BAD, "link down");
	output_table_cell(table, traffic_style(traffic, nic), "%s", watch_traffic_text(traffic));
	rate_cell(table, netdev, nic->netdev_tx, base->netdev_tx, seconds);
	rate_cell(table, netdev, nic->netdev_rx, base->netdev_rx, seconds);
	rate_cell(table, rdma, nic->rdma_tx, base->rdma_tx, seconds);
	rate_cell(table, rdma, nic->rdma_rx, base->rdma_rx, seconds);
	output_table_cell(table, errors ? OUTPUT_NOTICE : OUTPUT_PLAIN, "%llu",
			  (unsigned long long)errors);
}

static void nics_print(FILE *file, const struct watch_sample *now,
		       const struct watch_sample *before)
{
	static const char *const titles[] = {"NIC",	   "RDMA",	   "SPEED",
					     "TRAFFIC",	   "NETDEV SENDS", "RECEIVES",
					     "RDMA SENDS", "RECEIVES",	   "ERRORS"};
	struct output_table *table = output_table_new(titles, COUNT(titles));
	int i;

	for (i = 0; i < now->num_nics; i++)
		nic_row(table, &now->nics[i], watch_nic_find(before, &now->nics[i]),
			watch_seconds(now, before));
	output_table_end(table, file, 0);
}

static void link_row(struct output_table *table, const struct watch_link *link,
		     const struct watch_link *before, bool has_before, double seconds)
{
	const struct mesh_stats_entry *entry = &link->entry;
	const struct mesh_counters *counters = &entry->counters;
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX], text[32];
	struct mesh_addr from, to;

	stats_entry_addresses(entry, &from, &to);
	output_table_number(table, link->pid);
	output_table_cell(table, OUTPUT_STRONG, "%s", entry->peer);
	output_table_text(table, entry->nic);
	output_table_cell(table, OUTPUT_PLAIN, "%s %s %s", mesh_addr_text(&from, local),
			  entry->sending ? "->" : "<-", mesh_addr_text(&to, remote));
	output_table_cell(table, OUTPUT_PLAIN, "%s%s%s",
			  mesh_provider_id_text((enum mesh_provider_id)entry->provider),
			  entry->via == MESH_STATS_DIRECT ? "" : ", ",
			  entry->via == MESH_STATS_DIRECT ? "" : mesh_stats_via_text(entry->via));
	rate_cell(table, has_before, counters->bytes, before ? before->entry.counters.bytes : 0,
		  seconds);
	output_table_text(table, bytes_text(counters->bytes, text));
	output_table_number(table, counters->messages);
	output_table_number(table, counters->segments);
	if (link->down_paths)
		output_table_cell(table, OUTPUT_BAD, "%u, %u down", link->open_paths,
				  link->down_paths);
	else if (link->parked_paths)
		output_table_cell(table, OUTPUT_NOTICE, "%u, %u drained", link->open_paths,
				  link->parked_paths);
	else
		output_table_number(table, link->open_paths);
	output_table_cell(table, counters->losses ? OUTPUT_NOTICE : OUTPUT_PLAIN, "%llu",
			  (unsigned long long)counters->losses);
	output_table_text(table, bytes_text(counters->resent, text));
	output_table_cell(table, counters->errors ? OUTPUT_BAD : OUTPUT_PLAIN, "%llu",
			  (unsigned long long)counters->errors);
}

static void links_print(FILE *file, const struct watch_sample *now,
			const struct watch_sample *before)
{
	static const char *const titles[] = {
		"PID",	    "PEER",	"NIC",	 "ADDRESSES", "PROVIDER", "RATE",  "BYTES",
		"MESSAGES", "SEGMENTS", "PATHS", "LOSSES",    "RESENT",	  "ERRORS"};
	struct output_table *table = output_table_new(titles, COUNT(titles));
	int i;

	for (i = 0; i < now->num_links; i++)
		link_row(table, &now->links[i], watch_link_find(before, &now->links[i]),
			 before != NULL, watch_seconds(now, before));
	fputc('\n', file);
	output_table_end(table, file, 0);
}

static void circuit_row(struct output_table *table, const struct watch_circuit *circuit,
			const struct watch_circuit *before, bool has_before, double seconds)
{
	const struct mesh_stats_circuit *entry = &circuit->circuit;
	const struct mesh_circuit_counters *counters = &entry->counters;
	char text[32];

	output_table_number(table, circuit->pid);
	output_table_cell(table, OUTPUT_STRONG, "%s -> %s", entry->origin, entry->target);
	output_table_cell(table, OUTPUT_PLAIN, "%s -> %s", entry->nic_up, entry->nic_down);
	rate_cell(table, has_before, counters->bytes, before ? before->circuit.counters.bytes : 0,
		  seconds);
	output_table_text(table, bytes_text(counters->bytes, text));
	output_table_number(table, counters->segments);
	output_table_number(table, counters->messages);
	output_table_number(table, circuit->open);
	output_table_cell(table, OUTPUT_PLAIN, "%" PRIu64 " of %" PRIu64, counters->used,
			  counters->slots);
	output_table_text(table, bytes_text(counters->memory, text));
}

/* What the processes of this node relay for others. */
static void circuits_print(FILE *file, const struct watch_sample *now,
			   const struct watch_sample *before)
{
	static const char *const titles[] = {"PID",	 "RELAYED",  "NICS",	 "RATE",  "BYTES",
					     "SEGMENTS", "MESSAGES", "CIRCUITS", "SLOTS", "MEMORY"};
	struct output_table *table = output_table_new(titles, COUNT(titles));
	int i;

	for (i = 0; i < now->num_circuits; i++)
		circuit_row(table, &now->circuits[i], watch_circuit_find(before, &now->circuits[i]),
			    before != NULL, watch_seconds(now, before));
	fputc('\n', file);
	output_table_end(table, file, 0);
}

static void process_print(FILE *file, const struct watch_process *process, bool with_user)
{
	const struct mesh_process_counters *counters = &process->header.counters;
	const struct passwd *user = with_user ? getpwuid(process->uid) : NULL;
	char program[MESH_STATS_NAME_MAX];

	snprintf(program, sizeof(program), "%s", process->header.program);
	fprintf(file, "%s (pid %u", output_clean(program), process->header.pid);
	if (user)
		fprintf(file, ", user %s", user->pw_name);
	else if (with_user)
		fprintf(file, ", user %u", process->uid);
	fprintf(file, "): %llu connections opened, %d paths open",
		(unsigned long long)counters->comms_opened, process->num_open);
	if (counters->comms_failed)
		fprintf(file, ", %s%llu connections failed%s", output_style(file, OUTPUT_BAD),
			(unsigned long long)counters->comms_failed,
			output_style(file, OUTPUT_PLAIN));
	if (counters->peers_lost)
		fprintf(file, ", %llu of %llu peers lost", (unsigned long long)counters->peers_lost,
			(unsigned long long)counters->peers_up);
	if (counters->retries)
		fprintf(file, ", %llu connection attempts repeated",
			(unsigned long long)counters->retries);
	if (counters->refused)
		fprintf(file, ", %llu connections refused", (unsigned long long)counters->refused);
	if (counters->unlisted)
		fprintf(file, ", %llu paths or circuits are not listed, because the page is full",
			(unsigned long long)counters->unlisted);
	fputc('\n', file);
}

static void processes_print(FILE *file, const struct watch_sample *now)
{
	bool several = false;
	int i;

	for (i = 1; i < now->num_processes; i++)
		several = several || now->processes[i].uid != now->processes[0].uid;
	fputc('\n', file);
	for (i = 0; i < now->num_processes; i++)
		process_print(file, &now->processes[i], several);
	if (now->num_unread)
		fprintf(file,
			"%d processes have counters that cannot be read: they run another version "
			"of the plugin.\n",
			now->num_unread);
	if (now->error && now->error != -ENOENT)
		fprintf(file, "The counters of other processes cannot be read: %s.\n",
			strerror(-now->error));
	if (!now->num_processes && !now->num_unread)
		fprintf(file, "No process uses the plugin now.\n");
}

void watch_print(FILE *file, const struct watch_sample *now, const struct watch_sample *before)
{
	if (now->num_nics)
		nics_print(file, now, before);
	else
		fprintf(file, "No NIC of this node can carry the mesh; `fi_mesh nics` says why.\n");
	if (now->num_links)
		links_print(file, now, before);
	if (now->num_circuits)
		circuits_print(file, now, before);
	processes_print(file, now);
}

/* ---- JSON ------------------------------------------------------------------------------- */

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
	const struct watch_nic *base = before ? before : nic;
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
			 rate(before && nic->rdma_known, nic->rdma_tx, base->rdma_tx, seconds),
			 "rx_bytes_per_s",
			 rate(before && nic->rdma_known, nic->rdma_rx, base->rdma_rx, seconds),
			 "errors", count(nic->rdma_errors), "hw_counters", hw);
}

static json_t *nic_json(const struct watch_nic *nic, const struct watch_nic *before, double seconds)
{
	static const char *const words[] = {
		[WATCH_UNKNOWN] = NULL, [WATCH_IDLE] = "idle", [WATCH_KERNEL] = "kernel",
		[WATCH_RDMA] = "rdma",	[WATCH_BOTH] = "both",
	};
	const struct watch_nic *base = before ? before : nic;
	bool known = nic->netdev_known;

	return json_pack(
		"{s:o, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "netdev",
		output_json_text(nic->netdev), "up", nic->up, "speed_mbps", nic->speed_mbps,
		"traffic", output_json_text(words[watch_traffic(nic, before, seconds)]), "tx_bytes",
		known ? count(nic->netdev_tx) : json_null(), "rx_bytes",
		known ? count(nic->netdev_rx) : json_null(), "tx_bytes_per_s",
		rate(before && known, nic->netdev_tx, base->netdev_tx, seconds), "rx_bytes_per_s",
		rate(before && known, nic->netdev_rx, base->netdev_rx, seconds), "errors",
		count(nic->netdev_errors), "rdma", rdma_json(nic, before, seconds));
}

static json_t *link_json(const struct watch_link *link, const struct watch_link *before,
			 bool has_before, double seconds)
{
	const struct mesh_stats_entry *entry = &link->entry;
	const struct mesh_counters *counters = &entry->counters;
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX];
	struct mesh_addr from, to;

	stats_entry_addresses(entry, &from, &to);
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
