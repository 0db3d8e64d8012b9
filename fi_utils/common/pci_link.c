/* SPDX-License-Identifier: Apache-2.0 */
/* pci_link.c - the width and speed of a PCI Express link, and its bandwidth. */
#include <stdint.h>
#include <stdio.h>

#include "common/pci_link.h"
#include "nic/nic.h"

/* The highest rate with 8b/10b coding. */
#define LAST_8B10B_MTS 5000

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
