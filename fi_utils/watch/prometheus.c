/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prometheus.c - the counters in Prometheus' text format 0.0.4
 * (prometheus.io/docs/instrumenting/exposition_formats).
 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/stats_folders.h"
#include "watch/print.h"
#include "watch/sample.h"

static void head(FILE *file, const char *name, const char *type, const char *help)
{
	fprintf(file, "# HELP nccl_mesh_%s %s\n# TYPE nccl_mesh_%s %s\n", name, help, name, type);
}

/*
 * A label's value: backslash, quote and newline are escaped; bytes that are not ASCII become '?'.
 */
static void label(FILE *file, const char *separator, const char *name, const char *value)
{
	fprintf(file, "%s%s=\"", separator, name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fprintf(file, "\\%c", *value);
		else
			fputc((unsigned char)*value < 0x20 || (unsigned char)*value >= 0x7f
				      ? '?'
				      : *value,
			      file);
	}
	fputc('"', file);
}

/* Ends a line whose labels are written. @at: the counter's offset in @counters */
static void value(FILE *file, const void *counters, size_t at)
{
	uint64_t count;

	memcpy(&count, (const char *)counters + at, sizeof(count));
	fprintf(file, "} %" PRIu64 "\n", count);
}

/* ---- NICs --------------------------------------------------------------------------------- */

/* The labels that all metrics of an RDMA port have. */
static void rdma_labels(FILE *file, const struct watch_nic *nic)
{
	char port[16];

	snprintf(port, sizeof(port), "%d", nic->rdma_port);
	label(file, "{", "nic", nic->netdev);
	label(file, ",", "device", nic->rdma);
	label(file, ",", "port", port);
}

/* @at: the counter's offset in struct watch_nic; @rdma: it is the RDMA port's. */
static void nic_metric(FILE *file, const struct watch_sample *sample, const char *name, bool rdma,
		       size_t at, const char *help)
{
	int i;

	head(file, name, "counter", help);
	for (i = 0; i < sample->num_nics; i++) {
		const struct watch_nic *nic = &sample->nics[i];

		if (!(rdma ? nic->rdma_known : nic->netdev_known))
			continue;
		fprintf(file, "nccl_mesh_%s", name);
		if (rdma)
			rdma_labels(file, nic);
		else
			label(file, "{", "nic", nic->netdev);
		value(file, nic, at);
	}
}

static void state_metrics(FILE *file, const struct watch_sample *sample)
{
	int i;

	head(file, "nic_up", "gauge", "1 if the NIC carries the mesh, 0 if its link is down");
	for (i = 0; i < sample->num_nics; i++) {
		fprintf(file, "nccl_mesh_nic_up");
		label(file, "{", "nic", sample->nics[i].netdev);
		fprintf(file, "} %d\n", sample->nics[i].up);
	}
	head(file, "nic_speed_bits_per_second", "gauge", "Speed of a link that is up, if known");
	for (i = 0; i < sample->num_nics; i++) {
		if (!sample->nics[i].speed_mbps)
			continue;
		fprintf(file, "nccl_mesh_nic_speed_bits_per_second");
		label(file, "{", "nic", sample->nics[i].netdev);
		fprintf(file, "} %" PRIu64 "\n", (uint64_t)sample->nics[i].speed_mbps * 1000000);
	}
}

static void hw_metric(FILE *file, const struct watch_sample *sample)
{
	int i, k;

	head(file, "rdma_hw_counter_total", "counter", "hw_counters of the RDMA port");
	for (i = 0; i < sample->num_nics; i++) {
		for (k = 0; k < sample->nics[i].num_hw; k++) {
			fprintf(file, "nccl_mesh_rdma_hw_counter_total");
			rdma_labels(file, &sample->nics[i]);
			label(file, ",", "counter", sample->nics[i].hw[k].name);
			fprintf(file, "} %" PRIu64 "\n", sample->nics[i].hw[k].value);
		}
	}
}

/* ---- what the plugin counts --------------------------------------------------------------- */

static void link_labels(FILE *file, const struct watch_link *link)
{
	const struct mesh_stats_entry *entry = &link->entry;
	char local[MESH_ADDR_TEXT_MAX], remote[MESH_ADDR_TEXT_MAX], pid[16];
	struct mesh_addr from, to;

	stats_entry_addresses(entry, &from, &to);
	snprintf(pid, sizeof(pid), "%u", link->pid);
	label(file, "{", "nic", entry->nic);
	label(file, ",", "peer", entry->peer);
	label(file, ",", "direction", entry->sending ? "send" : "receive");
	label(file, ",", "local", mesh_addr_text(&from, local));
	label(file, ",", "remote", mesh_addr_text(&to, remote));
	label(file, ",", "provider", mesh_provider_id_text((enum mesh_provider_id)entry->provider));
	label(file, ",", "via", mesh_stats_via_text(entry->via));
	label(file, ",", "pid", pid);
}

static void link_metric(FILE *file, const struct watch_sample *sample, const char *name, size_t at,
			const char *help)
{
	int i;

	head(file, name, "counter", help);
	for (i = 0; i < sample->num_links; i++) {
		fprintf(file, "nccl_mesh_%s", name);
		link_labels(file, &sample->links[i]);
		value(file, &sample->links[i].entry.counters, at);
	}
}

static void paths_metric(FILE *file, const struct watch_sample *sample)
{
	int i;

	head(file, "link_paths", "gauge", "Open paths");
	for (i = 0; i < sample->num_links; i++) {
		fprintf(file, "nccl_mesh_link_paths");
		link_labels(file, &sample->links[i]);
		fprintf(file, "} %u\n", sample->links[i].open_paths);
	}
	head(file, "link_paths_down", "gauge", "Open paths whose link is lost");
	for (i = 0; i < sample->num_links; i++) {
		fprintf(file, "nccl_mesh_link_paths_down");
		link_labels(file, &sample->links[i]);
		fprintf(file, "} %u\n", sample->links[i].down_paths);
	}
	head(file, "link_paths_drained", "gauge",
	     "Open paths that `fi_mesh drain` took out of use");
	for (i = 0; i < sample->num_links; i++) {
		fprintf(file, "nccl_mesh_link_paths_drained");
		link_labels(file, &sample->links[i]);
		fprintf(file, "} %u\n", sample->links[i].parked_paths);
	}
}

static void circuit_labels(FILE *file, const struct watch_circuit *circuit)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%u", circuit->pid);
	label(file, "{", "from", circuit->circuit.origin);
	label(file, ",", "to", circuit->circuit.target);
	label(file, ",", "nic_from", circuit->circuit.nic_up);
	label(file, ",", "nic_to", circuit->circuit.nic_down);
	label(file, ",", "pid", pid);
}

static void circuit_metric(FILE *file, const struct watch_sample *sample, const char *name,
			   size_t at, const char *help)
{
	int i;

	head(file, name, "counter", help);
	for (i = 0; i < sample->num_circuits; i++) {
		fprintf(file, "nccl_mesh_%s", name);
		circuit_labels(file, &sample->circuits[i]);
		value(file, &sample->circuits[i].circuit.counters, at);
	}
}

static void slots_metric(FILE *file, const struct watch_sample *sample)
{
	int i;

	head(file, "relay_circuits", "gauge", "Open circuits");
	for (i = 0; i < sample->num_circuits; i++) {
		fprintf(file, "nccl_mesh_relay_circuits");
		circuit_labels(file, &sample->circuits[i]);
		fprintf(file, "} %u\n", sample->circuits[i].open);
	}
	head(file, "relay_slots", "gauge", "Parts of the circuits' memory");
	for (i = 0; i < sample->num_circuits; i++) {
		fprintf(file, "nccl_mesh_relay_slots");
		circuit_labels(file, &sample->circuits[i]);
		fprintf(file, "} %" PRIu64 "\n", sample->circuits[i].circuit.counters.slots);
	}
	head(file, "relay_slots_used", "gauge", "Parts that hold a segment");
	for (i = 0; i < sample->num_circuits; i++) {
		fprintf(file, "nccl_mesh_relay_slots_used");
		circuit_labels(file, &sample->circuits[i]);
		fprintf(file, "} %" PRIu64 "\n", sample->circuits[i].circuit.counters.used);
	}
}

static void process_metric(FILE *file, const struct watch_sample *sample, const char *name,
			   size_t at, const char *help)
{
	char pid[16];
	int i;

	head(file, name, "counter", help);
	for (i = 0; i < sample->num_processes; i++) {
		const struct mesh_stats_header *header = &sample->processes[i].header;

		snprintf(pid, sizeof(pid), "%u", header->pid);
		fprintf(file, "nccl_mesh_%s", name);
		label(file, "{", "pid", pid);
		label(file, ",", "program", header->program);
		value(file, &header->counters, at);
	}
}

#define NIC(member) offsetof(struct watch_nic, member)
#define LINK(member) offsetof(struct mesh_counters, member)
#define CIRCUIT(member) offsetof(struct mesh_circuit_counters, member)
#define PROCESS(member) offsetof(struct mesh_process_counters, member)

void watch_print_prometheus(FILE *file, const struct watch_sample *now)
{
	state_metrics(file, now);
	nic_metric(file, now, "nic_transmit_bytes_total", false, NIC(netdev_tx),
		   "Bytes sent through the kernel's network stack");
	nic_metric(file, now, "nic_receive_bytes_total", false, NIC(netdev_rx),
		   "Bytes received through the kernel's network stack");
	nic_metric(file, now, "nic_errors_total", false, NIC(netdev_errors), "Errors and drops");
	nic_metric(file, now, "rdma_transmit_bytes_total", true, NIC(rdma_tx),
		   "Bytes sent by the RDMA port");
	nic_metric(file, now, "rdma_receive_bytes_total", true, NIC(rdma_rx),
		   "Bytes received by the RDMA port");
	nic_metric(file, now, "rdma_errors_total", true, NIC(rdma_errors), "Errors and discards");
	hw_metric(file, now);
	link_metric(file, now, "link_bytes_total", LINK(bytes), "Bytes of messages");
	link_metric(file, now, "link_messages_total", LINK(messages), "Complete messages");
	link_metric(file, now, "link_segments_total", LINK(segments), "RMA writes");
	link_metric(file, now, "link_small_messages_total", LINK(small),
		    "Messages that needed no grant");
	link_metric(file, now, "link_busy_total", LINK(busy), "Times that the provider was busy");
	link_metric(file, now, "link_errors_total", LINK(errors), "Operations that failed");
	link_metric(file, now, "link_losses_total", LINK(losses), "Times that a path was lost");
	link_metric(file, now, "link_resent_bytes_total", LINK(resent),
		    "Bytes that were sent again after a loss");
	paths_metric(file, now);
	circuit_metric(file, now, "relay_bytes_total", CIRCUIT(bytes),
		       "Bytes of segments that were relayed");
	circuit_metric(file, now, "relay_segments_total", CIRCUIT(segments),
		       "Segments that were relayed");
	circuit_metric(file, now, "relay_messages_total", CIRCUIT(messages),
		       "Small messages and grants that were relayed");
	circuit_metric(file, now, "relay_copied_bytes_total", CIRCUIT(copied),
		       "Bytes of small messages that the CPU copied");
	slots_metric(file, now);
	process_metric(file, now, "connections_opened_total", PROCESS(comms_opened),
		       "NCCL connections made");
	process_metric(file, now, "connections_failed_total", PROCESS(comms_failed),
		       "NCCL connections that ended with an error");
	process_metric(file, now, "peers_up_total", PROCESS(peers_up), "Processes reached");
	process_metric(file, now, "peers_lost_total", PROCESS(peers_lost), "Processes lost");
	process_metric(file, now, "connect_retries_total", PROCESS(retries),
		       "Connection attempts that were repeated");
	process_metric(file, now, "refused_total", PROCESS(refused), "Connections not taken");
}
