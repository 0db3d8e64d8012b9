/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the NIC table as text and JSON. */
#include <stdio.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/nic_select.h"
#include "nic/rdma_port.h"

#include "common/json.h"
#include "common/output.h"
#include "common/pci_link.h"
#include "common/table.h"
#include "nics/print.h"

/* "" for MESH_GID_UNKNOWN. */
static const char *gid_type_text(enum mesh_gid_type type)
{
	static const char *const names[] = {
		[MESH_GID_UNKNOWN] = "",
		[MESH_GID_IB] = "IB",
		[MESH_GID_ROCE_V1] = "RoCE v1",
		[MESH_GID_ROCE_V2] = "RoCE v2",
	};

	return names[type];
}

static void rdma_cells(struct output_table *rows, const struct mesh_nic *nic)
{
	const struct mesh_gid *gid = mesh_gid_find(&nic->rdma, &nic->source);

	if (*nic->rdma.device)
		output_table_cell(rows, OUTPUT_PLAIN, "%s:%d", nic->rdma.device, nic->rdma.port);
	else
		output_table_text(rows, "-");
	output_table_text(rows, nic->kind == MESH_NIC_INFINIBAND ? "InfiniBand" : "Ethernet");
	if (*nic->rdma.device && gid)
		output_table_cell(rows, OUTPUT_PLAIN, "%d %s", gid->index,
				  gid_type_text(gid->type));
	else
		output_table_text(rows, "-");
}

static void pci_cells(struct output_table *rows, const struct mesh_nic *nic)
{
	const struct mesh_pci_link *link = &nic->pci_link;
	const char *slash = strrchr(nic->pci_path, '/');
	char now[MESH_PCI_LINK_TEXT_MAX], best[MESH_PCI_LINK_TEXT_MAX];

	output_table_text(rows, slash ? slash + 1 : "-");
	mesh_pci_link_text(link->width, link->speed_mts, now);
	mesh_pci_link_text(link->max_width, link->max_speed_mts, best);
	if (mesh_pci_link_is_reduced(link))
		output_table_cell(rows, OUTPUT_NOTICE, "%s (card: %s)", now, best);
	else
		output_table_text(rows, *now ? now : "-");
}

static void row_add(struct output_table *rows, int dev, const struct mesh_nic *nic,
		    const struct nics_provider *provider)
{
	char text[MESH_ADDR_TEXT_MAX];

	output_table_cell(rows, OUTPUT_PLAIN, "%d", dev);
	output_table_cell(rows, OUTPUT_STRONG, "%s", nic->netdev);
	output_table_text(rows, mesh_nic_speed_text(nic->speed_mbps, text));
	rdma_cells(rows, nic);
	output_table_text(rows, provider->name ? provider->name : "-");
	output_table_text(rows, mesh_addr_text_prefix(&nic->source, text));
	output_table_cell(rows, OUTPUT_PLAIN, "%d", nic->mtu);
	pci_cells(rows, nic);
}

/*
 * Prints one line of addresses that the mesh does not use; *lines counts such lines below the
 * table.
 */
static void others_print(FILE *file, const struct mesh_nic *nic, int *lines)
{
	char text[MESH_ADDR_TEXT_MAX];
	int i, num = 0;

	for (i = 0; i < nic->num_addrs; i++) {
		if (mesh_addr_equal(&nic->addrs[i], &nic->source))
			continue;
		if (!num++)
			fprintf(file, "%s%s also has ", (*lines)++ ? "" : "\n", nic->netdev);
		else
			fputs(", ", file);
		fputs(mesh_addr_text_prefix(&nic->addrs[i], text), file);
	}
	if (num)
		fputc('\n', file);
}

static void taken_print(FILE *file, const struct mesh_nic_table *table,
			const struct nics_provider *providers)
{
	static const char *const titles[] = {"DEV",  "NIC", "SPEED",	"RDMA",
					     "LINK", "GID", "PROVIDER", "ADDRESS",
					     "MTU",  "PCI", "PCI LINK"};
	const int num_columns = sizeof(titles) / sizeof(titles[0]);
	struct output_table *rows = output_table_new(titles, num_columns);
	int i, lines = 0;

	for (i = 0; i < table->num_taken; i++)
		row_add(rows, i, &table->nics[i], &providers[i]);
	output_table_end(rows, file, 0);
	for (i = 0; i < table->num_taken; i++) {
		others_print(file, &table->nics[i], &lines);
		if (providers[i].note)
			fprintf(file, "%s%s: %s\n", lines++ ? "" : "\n", table->nics[i].netdev,
				providers[i].note);
	}
}

void nics_print(FILE *file, const struct mesh_nic_table *table,
		const struct nics_provider *providers, const char *site)
{
	struct output_table *left;
	int i;

	if (*site)
		fprintf(file, "Site: %s\n\n", site);

	if (table->num_taken)
		taken_print(file, table, providers);
	else
		fprintf(file, "No NIC of this node can carry the mesh.\n");
	if (table->num_nics == table->num_taken)
		return;
	left = output_table_new(NULL, 2);
	for (i = table->num_taken; i < table->num_nics; i++) {
		output_table_text(left, table->nics[i].netdev);
		output_table_text(left, mesh_nic_bare_reason(&table->nics[i]));
	}
	fprintf(file, "\nNot used:\n");
	output_table_end(left, file, 2);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static json_t *addrs_json(const struct mesh_nic *nic)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < nic->num_addrs && list; i++)
		list = output_json_append(list, output_json_addr(&nic->addrs[i]));
	return list;
}

static json_t *mac_json(const struct mesh_nic *nic)
{
	int i, num = nic->kind == MESH_NIC_INFINIBAND ? 8 : 6;
	char text[3 * 8 + 1] = "";

	for (i = 0; i < num; i++)
		snprintf(text + 3 * i, 4, "%02x%s", nic->mac[i], i < num - 1 ? ":" : "");
	return json_string(text);
}

static const char *kind_name(enum mesh_nic_kind kind)
{
	static const char *const names[] = {
		[MESH_NIC_PHYSICAL] = "physical",     [MESH_NIC_VIRTUAL] = "virtual",
		[MESH_NIC_INFINIBAND] = "infiniband", [MESH_NIC_LOOPBACK] = "loopback",
		[MESH_NIC_BRIDGE] = "bridge",	      [MESH_NIC_CONTAINER] = "container",
		[MESH_NIC_WIRELESS] = "wireless",
	};

	return names[kind];
}

static json_t *gid_json(const struct mesh_gid *gid)
{
	struct mesh_addr addr = {.family = MESH_FAMILY_IPV6};
	char text[MESH_ADDR_TEXT_MAX];

	if (!gid)
		return json_null();
	memcpy(addr.bytes, gid->bytes, 16);
	return json_pack("{s:i, s:s, s:o}", "index", gid->index, "gid", mesh_addr_text(&addr, text),
			 "type", output_json_text(gid_type_text(gid->type)));
}

static json_t *gids_json(const struct mesh_rdma_port *rdma)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < rdma->num_gids && list; i++)
		list = output_json_append(list, gid_json(&rdma->gids[i]));
	return list;
}

static json_t *rdma_json(const struct mesh_nic *nic)
{
	const struct mesh_rdma_port *rdma = &nic->rdma;

	if (!*rdma->device)
		return json_null();
	return json_pack("{s:o, s:i, s:s, s:o, s:b, s:i, s:o, s:o, s:o}", "device",
			 output_json_text(rdma->device), "port", rdma->port, "link_layer",
			 rdma->link_layer == MESH_LINK_LAYER_INFINIBAND ? "InfiniBand" : "Ethernet",
			 "state", output_json_text(rdma->state), "active",
			 mesh_rdma_port_is_active(rdma), "speed_mbps", rdma->speed_mbps,
			 "node_guid", output_json_hex(rdma->node_guid), "gid_in_use",
			 gid_json(mesh_gid_find(rdma, &nic->source)), "gids", gids_json(rdma));
}

static json_t *pci_link_json(const struct mesh_pci_link *link)
{
	if (!link->width && !link->max_width)
		return json_null();
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i}", "width", link->width, "speed_mts",
			 link->speed_mts, "max_width", link->max_width, "max_speed_mts",
			 link->max_speed_mts, "slot_width", link->slot_width, "slot_speed_mts",
			 link->slot_speed_mts);
}

static json_t *nic_json(const struct mesh_nic *nic, int dev, const struct nics_provider *provider)
{
	return json_pack(
		"{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:o, s:b, s:b, s:b, s:o, s:i,"
		" s:i, s:o, s:o, s:o, s:i, s:o, s:o}",
		"netdev", output_json_text(nic->netdev), "taken", mesh_nic_is_taken(nic), "reason",
		output_json_text(nic->reason), "dev",
		mesh_nic_is_taken(nic) ? json_integer(dev) : json_null(), "provider",
		output_json_text(provider ? provider->name : NULL), "provider_note",
		output_json_text(provider ? provider->note : NULL), "source",
		output_json_addr(&nic->source), "addresses", addrs_json(nic), "ifindex",
		(int)nic->ifindex, "kind", kind_name(nic->kind), "link_kind",
		output_json_text(nic->link_kind), "admin_up", nic->state != MESH_NIC_DOWN,
		"carrier", mesh_nic_has_carrier(nic), "default_route",
		nic->management == MESH_NIC_DEFAULT_ROUTE, "mac", mac_json(nic), "mtu", nic->mtu,
		"speed_mbps", nic->speed_mbps, "pci_path", output_json_text(nic->pci_path),
		"pci_link", pci_link_json(&nic->pci_link), "guid", output_json_hex(nic->guid),
		"port", nic->port, "name", output_json_text(nic->name), "rdma", rdma_json(nic));
}

int nics_print_json(FILE *file, const struct mesh_nic_table *table,
		    const struct nics_provider *providers, const char *site)
{
	json_t *list = json_array();
	int i;

	for (i = 0; i < table->num_nics && list; i++)
		list = output_json_append(
			list,
			nic_json(&table->nics[i], i, i < table->num_taken ? &providers[i] : NULL));
	return output_json_print("fi_mesh nics", file,
				 json_pack("{s:o, s:i, s:o}", "site", output_json_text(site),
					   "taken", table->num_taken, "nics", list));
}
