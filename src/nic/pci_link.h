/* SPDX-License-Identifier: Apache-2.0 */
/* pci_link.h - how wide and fast a PCI Express card is connected. */
#ifndef MESH_NIC_PCI_LINK_H
#define MESH_NIC_PCI_LINK_H

#include <stdbool.h>

/* Lanes, and MT/s of one lane (8000 is PCIe 3.0's "8.0 GT/s"); 0 where unknown. */
struct mesh_pci_link {
	int width, speed_mts;		/* now: LnkSta of lspci -vv */
	int max_width, max_speed_mts;	/* of the card: LnkCap */
	int slot_width, slot_speed_mts; /* of the port above it */
};

#endif
