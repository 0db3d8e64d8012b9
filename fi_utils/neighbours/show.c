/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - the neighbours and the findings about the links, as text or JSON. */
#include <stdio.h>
#include <string.h>

#include "nic/addr.h"
#include "nic/nic_select.h"

#include "common/finding.h"
#include "common/json.h"
#include "common/output.h"
#include "common/table.h"
#include "neighbours/show.h"

#define COLUMNS 7
#define RUNS_TEXT_MAX 48

static const char *const role_names[] = {
	[MESH_NEIGHBOUR_RANK] = "rank",
	[MESH_NEIGHBOUR_SERVICE] = "service",
};

/* Foreign bytes: a role of a later version has no name. */
static const char *role_text(uint8_t role)
{
	if (role < sizeof(role_names) / sizeof(role_names[0]) && role_names[role])
		return role_names[role];
	return "other";
}

/* ---- text ---------------------------------------------------------------------------------- */

static const char *runs_text(const struct mesh_neighbour *about, char *text)
{
	int i, services = 0, relays = 0, ranks;

	for (i = 0; i < about->num_processes; i++) {
		services += about->processes[i].role == MESH_NEIGHBOUR_SERVICE;
		relays += about->processes[i].role == MESH_NEIGHBOUR_SERVICE &&
			  about->processes[i].control_port;
	}
	ranks = about->total_processes - services;
	if (!ranks && !services)
		return "nothing";
	*text = '\0';
	if (ranks)
		snprintf(text, RUNS_TEXT_MAX, "%d process%s%s", ranks, ranks == 1 ? "" : "es",
			 services ? " and " : "");
	output_add(text, RUNS_TEXT_MAX, "%s%s", services ? "fi_mesh serve" : "",
		   relays ? " --relay" : "");
	return text;
}

static const char *address_text(const struct mesh_neighbour *about, char *text)
{
	struct mesh_addr addr;

	if (!about->num_addrs)
		return "-";
	mesh_neighbour_addr_get(&about->addrs[0], &addr);
	return mesh_addr_text_prefix(&addr, text);
}

static void row_add(struct output_table *rows, const char *netdev, const struct mesh_heard *heard)
{
	const struct mesh_neighbour *about = &heard->about;
	char address[MESH_ADDR_TEXT_MAX], speed[MESH_NIC_SPEED_TEXT_MAX], runs[RUNS_TEXT_MAX];

	output_table_cell(rows, OUTPUT_STRONG, "%s", netdev);
	output_table_cell(rows, OUTPUT_PLAIN, "%s%s%s%s", about->node, *about->site ? " (" : "",
			  about->site, *about->site ? ")" : "");
	output_table_text(rows, heard->error ? "-" : about->netdev);
	output_table_text(rows, heard->error ? "-" : address_text(about, address));
	output_table_text(rows,
			  heard->error ? "-" : mesh_nic_speed_text((int)about->speed_mbps, speed));
	if (heard->error)
		output_table_text(rows, "-");
	else
		output_table_number(rows, about->mtu);
	output_table_text(rows, heard->error ? "another version" : runs_text(about, runs));
}

static void silent_row_add(struct output_table *rows, const char *netdev, const char *why)
{
	int i;

	output_table_cell(rows, OUTPUT_STRONG, "%s", netdev);
	output_table_cell(rows, OUTPUT_NOTICE, "%s", why);
	for (i = 2; i < COLUMNS; i++)
		output_table_text(rows, "-");
}

/* A row for each node at the other end, with the NIC there that belongs to ours. */
static void nic_rows_add(struct output_table *rows, const struct mesh_asking *asking, int index)
{
	const char *netdev = asking->links[index].about.netdev;
	const struct mesh_asked *asked = &asking->asked[index];
	const struct mesh_heard *node, *partner;
	struct mesh_asked_cable cable;
	int i, at = 0;

	mesh_cable_find(asking, index, &cable);
	if (!asked->num_heard || cable.far < MESH_CABLE_LOOP) {
		silent_row_add(rows, netdev, "no answer");
		return;
	}
	for (i = 0; i < asked->num_heard && cable.far == MESH_CABLE_LOOP; i++)
		row_add(rows, netdev, asked->heard[i]);
	while ((node = mesh_cable_node_next(&cable, &at))) {
		partner = mesh_cable_partner(asking, &cable, index, node);
		row_add(rows, netdev, partner ? partner : node);
	}
}

static void halves_print(FILE *file, const struct mesh_asking *asking)
{
	struct mesh_asked_cable cable;
	int i, k;

	for (i = 0; i < asking->num_links; i++) {
		mesh_cable_find(asking, i, &cable);
		if (mesh_cable_half(asking, &cable, i) < 0 || cable.nics[0] != i)
			continue;
		for (k = 0; k < cable.num_nics; k++)
			fprintf(file, "%s%s", k ? " and " : "",
				asking->links[cable.nics[k]].about.netdev);
		fprintf(file, ": the halves of one cable\n");
	}
}

/* Prints what is wrong with the NICs whose link is down. */
static void down_print(FILE *file, const struct mesh_nic_table *table)
{
	int i;

	for (i = 0; i < table->num_nics; i++) {
		struct check_result result = {0};

		if (table->nics[i].verdict != MESH_NIC_LINK_DOWN)
			continue;
		neighbours_judge_down(&table->nics[i], &result);
		check_print(file, table->nics[i].netdev, &result, true);
		check_result_free(&result);
	}
}

void neighbours_print(FILE *file, const struct mesh_asking *asking,
		      const struct check_result *results, const struct mesh_nic_table *table)
{
	static const char *const titles[COLUMNS] = {"NIC",   "node", "its NIC", "address",
						    "speed", "MTU",  "runs"};
	struct output_table *rows = output_table_new(titles, COLUMNS);
	bool wrong = false;
	int i;

	for (i = 0; i < asking->num_links; i++) {
		nic_rows_add(rows, asking, i);
		wrong |= check_verdict_of(&results[i]) != CHECK_PASS;
	}
	for (i = 0; i < table->num_nics; i++) {
		if (table->nics[i].verdict != MESH_NIC_LINK_DOWN)
			continue;
		silent_row_add(rows, table->nics[i].netdev,
			       table->nics[i].state == MESH_NIC_DOWN ? "down" : "no carrier");
		wrong = true;
	}
	output_table_end(rows, file, 0);
	halves_print(file, asking);
	if (wrong)
		fprintf(file, "\n");
	for (i = 0; i < asking->num_links; i++)
		check_print(file, asking->links[i].about.netdev, &results[i], true);
	down_print(file, table);
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static json_t *addresses_json(const struct mesh_neighbour *about)
{
	json_t *list = json_array();
	struct mesh_addr addr;
	int i;

	for (i = 0; i < about->num_addrs; i++) {
		mesh_neighbour_addr_get(&about->addrs[i], &addr);
		list = output_json_append(list, output_json_addr(&addr));
	}
	return list;
}

static json_t *providers_json(const struct mesh_neighbour *about)
{
	json_t *list = json_array();
	int id;

	for (id = MESH_PROVIDER_NONE + 1; id <= MESH_PROVIDER_ID_MAX; id++) {
		if (about->providers & 1u << id)
			list = output_json_append(list, json_string(mesh_provider_id_text(
								(enum mesh_provider_id)id)));
	}
	return list;
}

static json_t *processes_json(const struct mesh_neighbour *about)
{
	const struct mesh_neighbour_process *process;
	json_t *list = json_array();
	int i;

	for (i = 0; i < about->num_processes; i++) {
		process = &about->processes[i];
		list = output_json_append(
			list,
			json_pack("{s:s, s:o, s:o, s:i, s:i}", "role", role_text(process->role),
				  "process_id", output_json_hex(process->process_id), "job",
				  process->job ? output_json_hex(process->job) : json_null(),
				  "control_port", process->control_port, "protocol",
				  process->protocol));
	}
	return list;
}

/* Of another version only the names are known. */
static json_t *neighbour_json(const struct mesh_heard *heard)
{
	const struct mesh_neighbour *about = &heard->about;

	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:o, s:i, s:o, s:o, s:o, s:I, s:I, s:o, s:i}",
			 "node", output_json_text(about->node), "node_id",
			 heard->error ? json_null() : output_json_hex(about->node_id), "version",
			 output_json_text(about->product), "readable", !heard->error, "netdev",
			 output_json_text(about->netdev), "site", output_json_text(about->site),
			 "protocol", about->protocol, "from", output_json_addr(&heard->from),
			 "addresses", addresses_json(about), "providers", providers_json(about),
			 "mtu", (json_int_t)about->mtu, "speed_mbps", (json_int_t)about->speed_mbps,
			 "processes", processes_json(about), "total_processes",
			 about->total_processes);
}

static json_t *nic_json(const struct mesh_asking *asking, int index,
			const struct check_result *result)
{
	const struct mesh_neighbour *about = &asking->links[index].about;
	const struct mesh_asked *asked = &asking->asked[index];
	json_t *list = json_array();
	struct mesh_asked_cable cable;
	int i;

	mesh_cable_find(asking, index, &cable);
	for (i = 0; i < asked->num_heard; i++)
		list = output_json_append(list, neighbour_json(asked->heard[i]));
	return output_json_join(check_json("link", about->netdev, result),
				json_pack("{s:o, s:i, s:o, s:o, s:I, s:I, s:o}", "netdev",
					  output_json_text(about->netdev), "cable",
					  cable.nics[0] + 1, "addresses", addresses_json(about),
					  "providers", providers_json(about), "mtu",
					  (json_int_t)about->mtu, "speed_mbps",
					  (json_int_t)about->speed_mbps, "neighbours", list));
}

static json_t *down_json(const struct mesh_nic *nic)
{
	struct check_result result = {0};
	json_t *json;

	neighbours_judge_down(nic, &result);
	json = output_json_join(check_json("link", nic->netdev, &result),
				json_pack("{s:s, s:n, s:[], s:[], s:i, s:i, s:[]}", "netdev",
					  nic->netdev, "cable", "addresses", "providers", "mtu",
					  nic->mtu, "speed_mbps", 0, "neighbours"));
	check_result_free(&result);
	return json;
}

int neighbours_print_json(const char *who, FILE *file, const struct mesh_asking *asking,
			  const struct check_result *results, const struct mesh_nic_table *table)
{
	struct check_totals totals = {{0}};
	json_t *list = json_array();
	int i;

	for (i = 0; i < asking->num_links; i++) {
		totals.counts[check_verdict_of(&results[i])]++;
		list = output_json_append(list, nic_json(asking, i, &results[i]));
	}
	for (i = 0; i < table->num_nics; i++) {
		if (table->nics[i].verdict != MESH_NIC_LINK_DOWN)
			continue;
		totals.counts[CHECK_FAIL]++;
		list = output_json_append(list, down_json(&table->nics[i]));
	}
	return output_json_print(
		who, file,
		output_json_join(check_totals_json(&totals, "nics", list),
				 json_pack("{s:o, s:o}", "node",
					   output_json_text(asking->self->node), "node_id",
					   output_json_hex(asking->self->node_id))));
}
