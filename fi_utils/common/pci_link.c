/* SPDX-License-Identifier: Apache-2.0 */
/* pci_link.c - the width and speed of a PCI Express link, and its bandwidth. */
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pci_link.h"
#include "system/sysfs.h"

/* PCI Express Base Specification: x1 to x32. */
#define LANES_MAX 32
/* PCIe 7.0 has 128. */
#define GTPS_MAX 1000
/* The highest rate with 8b/10b coding. */
#define LAST_8B10B_MTS 5000

int mesh_pci_speed_parse(const char *text, int *mts)
{
	unsigned long whole, tenth = 0;
	char *end;

	if (!strncmp(text, "Unknown", 7)) { /* "Unknown", "Unknown speed" */
		*mts = 0;
		return 0;
	}
	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	whole = strtoul(text, &end, 10);
	if (end[0] == '.' && isdigit((unsigned char)end[1]))
		tenth = strtoul(end + 1, &end, 10);
	if (whole > GTPS_MAX || tenth > 9 || (strcmp(end, " GT/s PCIe") && strcmp(end, " GT/s")))
		return -EINVAL;
	*mts = (int)(whole * 1000 + tenth * 100);
	return 0;
}

/* Lanes of a width file; 0 where there is none. The kernel writes 255 for a link that is down. */
static int pci_width_read(const struct mesh_sysfs *folder, const char *file)
{
	uint64_t width;

	if (mesh_sysfs_read_number(folder, UINT8_MAX, &width, "%s", file) || width > LANES_MAX)
		return 0;
	return (int)width;
}

static int pci_speed_read(const struct mesh_sysfs *folder, const char *file)
{
	char text[64];
	int mts = 0;

	if (!mesh_sysfs_read(folder, text, sizeof(text), "%s", file))
		mesh_pci_speed_parse(text, &mts);
	return mts;
}

static void link_load(const char *pci_path, struct mesh_pci_link *link)
{
	struct mesh_sysfs folder;

	memset(link, 0, sizeof(*link));
	if (!*pci_path)
		return;
	if (!mesh_sysfs_open(pci_path, &folder)) {
		link->width = pci_width_read(&folder, "current_link_width");
		link->max_width = pci_width_read(&folder, "max_link_width");
		link->speed_mts = pci_speed_read(&folder, "current_link_speed");
		link->max_speed_mts = pci_speed_read(&folder, "max_link_speed");
		link->slot_width = pci_width_read(&folder, "../max_link_width");
		link->slot_speed_mts = pci_speed_read(&folder, "../max_link_speed");
	}
	mesh_sysfs_close(&folder);
}

void mesh_pci_links_load(struct mesh_nic_table *table)
{
	int i;

	for (i = 0; i < table->num_nics; i++)
		link_load(table->nics[i].pci_path, &table->nics[i].pci_link);
}

int mesh_pci_link_mbps(int width, int speed_mts)
{
	int64_t raw = (int64_t)width * speed_mts;

	return (int)(speed_mts <= LAST_8B10B_MTS ? raw * 8 / 10 : raw * 128 / 130);
}

bool mesh_pci_link_is_reduced(const struct mesh_pci_link *link)
{
	return (link->width && link->width < link->max_width) ||
	       (link->speed_mts && link->speed_mts < link->max_speed_mts);
}

const char *mesh_pci_link_text(int width, int speed_mts, char *text)
{
	*text = '\0';
	if (width && speed_mts)
		snprintf(text, MESH_PCI_LINK_TEXT_MAX, "x%d at %d.%d GT/s", width, speed_mts / 1000,
			 speed_mts % 1000 / 100);
	return text;
}
