/* SPDX-License-Identifier: Apache-2.0 */
/* nics_print.c - the NIC table for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mesh/mesh/nic_select.h>

#include "nics.h"

enum column {
	COLUMN_DEV,
	COLUMN_NIC,
	COLUMN_SPEED,
	COLUMN_RDMA,
	COLUMN_PROVIDER,
	COLUMN_ADDRESS,
	COLUMN_MTU,
	COLUMN_PCI,
	NUM_COLUMNS
};

struct row {
	char cells[NUM_COLUMNS][MESH_ADDR_TEXT_MAX];
};

static void header_fill(struct row *row)
{
	static const char *const titles[NUM_COLUMNS] = {
		[COLUMN_DEV] = "DEV",		[COLUMN_NIC] = "NIC",
		[COLUMN_SPEED] = "SPEED",	[COLUMN_RDMA] = "RDMA",
		[COLUMN_PROVIDER] = "PROVIDER", [COLUMN_ADDRESS] = "ADDRESS",
		[COLUMN_MTU] = "MTU",		[COLUMN_PCI] = "PCI",
	};
	int i;

	for (i = 0; i < NUM_COLUMNS; i++)
		snprintf(row->cells[i], sizeof(row->cells[i]), "%s", titles[i]);
}

static void row_fill(struct row *row, int dev, const struct mesh_nic *nic,
		     const struct nics_provider *provider)
{
	const size_t size = sizeof(row->cells[0]);
	const char *slash = strrchr(nic->pci_path, '/');

	snprintf(row->cells[COLUMN_DEV], size, "%d", dev);
	snprintf(row->cells[COLUMN_NIC], size, "%s", nic->netdev);
	mesh_nic_speed_text(nic->speed_mbps, row->cells[COLUMN_SPEED]);
	if (*nic->rdma.device)
		snprintf(row->cells[COLUMN_RDMA], size, "%s:%d", nic->rdma.device, nic->rdma.port);
	else
		snprintf(row->cells[COLUMN_RDMA], size, "-");
	snprintf(row->cells[COLUMN_PROVIDER], size, "%s", provider->name ? provider->name : "-");
	mesh_addr_text_prefix(&nic->source, row->cells[COLUMN_ADDRESS]);
	snprintf(row->cells[COLUMN_MTU], size, "%d", nic->mtu);
	snprintf(row->cells[COLUMN_PCI], size, "%.40s", slash ? slash + 1 : "-");
}

static void rows_print(FILE *file, const struct row *rows, int num_rows)
{
	int i, k, widths[NUM_COLUMNS] = {0};

	for (i = 0; i < num_rows; i++)
		for (k = 0; k < NUM_COLUMNS; k++)
			if ((int)strlen(rows[i].cells[k]) > widths[k])
				widths[k] = (int)strlen(rows[i].cells[k]);
	for (i = 0; i < num_rows; i++)
		for (k = 0; k < NUM_COLUMNS; k++)
			if (k < NUM_COLUMNS - 1)
				fprintf(file, "%-*s  ", widths[k], rows[i].cells[k]);
			else
				fprintf(file, "%s\n", rows[i].cells[k]);
}

static void taken_print(FILE *file, const struct mesh_nic_table *table,
			const struct nics_provider *providers)
{
	struct row *rows;
	int i;

	rows = calloc((size_t)table->num_taken + 1, sizeof(*rows));
	if (!rows) {
		fprintf(file, "out of memory\n");
		return;
	}
	header_fill(&rows[0]);
	for (i = 0; i < table->num_taken; i++)
		row_fill(&rows[i + 1], i, &table->nics[i], &providers[i]);
	rows_print(file, rows, table->num_taken + 1);
	free(rows);
	for (i = 0; i < table->num_taken; i++)
		if (providers[i].note)
			fprintf(file, "\n%s: %s\n", table->nics[i].netdev, providers[i].note);
}

/* The reason without "left: ", which the heading says. */
static const char *bare_reason(const struct mesh_nic *nic)
{
	static const char left[] = "left: ";
	size_t len = sizeof(left) - 1;

	return strncmp(nic->reason, left, len) ? nic->reason : nic->reason + len;
}

void nics_print(FILE *file, const struct mesh_nic_table *table,
		const struct nics_provider *providers)
{
	int i, len, width = 0;

	if (table->num_taken)
		taken_print(file, table, providers);
	else
		fprintf(file, "No NIC of this node can carry the mesh.\n");
	for (i = table->num_taken; i < table->num_nics; i++) {
		len = (int)strlen(table->nics[i].netdev);
		width = len > width ? len : width;
	}
	if (table->num_nics > table->num_taken)
		fprintf(file, "\nNot used:\n");
	for (i = table->num_taken; i < table->num_nics; i++)
		fprintf(file, "  %-*s  %s\n", width, table->nics[i].netdev,
			bare_reason(&table->nics[i]));
}
