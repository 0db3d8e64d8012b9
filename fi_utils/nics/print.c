/* SPDX-License-Identifier: Apache-2.0 */
/* print.c - the NIC table as text. */
#include <stdio.h>
#include <string.h>

#include "nic/nic_order.h"
#include "nic/nic_select.h"
#include "nic/rdma_port.h"

#include "common/output.h"
#include "common/pci_link.h"
#include "common/table.h"
#include "nics/print.h"
#include "nics/provider.h"

static void rdma_cells(struct output_table *rows, const struct mesh_nic *nic)
{
	const struct mesh_gid *gid = mesh_gid_find(&nic->rdma, &nic->source);

	if (*nic->rdma.device)
		output_table_cell(rows, OUTPUT_PLAIN, "%s:%d", nic->rdma.device, nic->rdma.port);
	else
		output_table_cell(rows, OUTPUT_PLAIN, "-");
	output_table_cell(rows, OUTPUT_PLAIN, "%s",
			  nic->kind == MESH_NIC_INFINIBAND ? "InfiniBand" : "Ethernet");
	if (*nic->rdma.device && gid)
		output_table_cell(rows, OUTPUT_PLAIN, "%d %s", gid->index,
				  mesh_gid_type_text(gid->type));
	else
		output_table_cell(rows, OUTPUT_PLAIN, "-");
}

static void pci_cells(struct output_table *rows, const struct mesh_nic *nic)
{
	const struct mesh_pci_link *link = &nic->pci_link;
	const char *slash = strrchr(nic->pci_path, '/');
	char now[MESH_PCI_LINK_TEXT_MAX], best[MESH_PCI_LINK_TEXT_MAX];

	output_table_cell(rows, OUTPUT_PLAIN, "%s", slash ? slash + 1 : "-");
	mesh_pci_link_text(link->width, link->speed_mts, now);
	mesh_pci_link_text(link->max_width, link->max_speed_mts, best);
	if (mesh_pci_link_is_reduced(link))
		output_table_cell(rows, OUTPUT_NOTICE, "%s (card: %s)", now, best);
	else
		output_table_cell(rows, OUTPUT_PLAIN, "%s", *now ? now : "-");
}

static void row_add(struct output_table *rows, int dev, const struct mesh_nic *nic,
		    const struct nics_provider *provider)
{
	char text[MESH_ADDR_TEXT_MAX];

	output_table_cell(rows, OUTPUT_PLAIN, "%d", dev);
	output_table_cell(rows, OUTPUT_STRONG, "%s", nic->netdev);
	output_table_cell(rows, OUTPUT_PLAIN, "%s", mesh_nic_speed_text(nic->speed_mbps, text));
	rdma_cells(rows, nic);
	output_table_cell(rows, OUTPUT_PLAIN, "%s", provider->name ? provider->name : "-");
	output_table_cell(rows, OUTPUT_PLAIN, "%s", mesh_addr_text_prefix(&nic->source, text));
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
	struct output_table *rows = output_table_new(num_columns);
	int i, lines = 0;

	output_table_titles(rows, titles);
	for (i = 0; i < table->num_taken; i++)
		row_add(rows, i, &table->nics[i], &providers[i]);
	output_table_print(rows, file, 0);
	output_table_free(rows);
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
	left = output_table_new(2);
	for (i = table->num_taken; i < table->num_nics; i++) {
		output_table_cell(left, OUTPUT_PLAIN, "%s", table->nics[i].netdev);
		output_table_cell(left, OUTPUT_PLAIN, "%s", mesh_nic_bare_reason(&table->nics[i]));
	}
	fprintf(file, "\nNot used:\n");
	output_table_print(left, file, 2);
	output_table_free(left);
}
