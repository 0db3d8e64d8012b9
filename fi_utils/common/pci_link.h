/* SPDX-License-Identifier: Apache-2.0 */
/* pci_link.h - the bandwidth of a PCI Express link, and its state as text. */
#ifndef MESH_FI_UTILS_COMMON_PCI_LINK_H
#define MESH_FI_UTILS_COMMON_PCI_LINK_H

#include <stdbool.h>

#include "nic/nic.h"

/**
 * Mb/s that @width lanes of @speed_mts carry in one direction, without the line coding (8b/10b up
 * to 5 GT/s, 128b/130b above; PCI Express Base Specification). Packet headers take another 5 to 15
 * %. 0 where something is unknown.
 */
int mesh_pci_link_mbps(int width, int speed_mts);

/** True if it is known to run with fewer lanes, or more slowly, than the card can. */
bool mesh_pci_link_is_reduced(const struct mesh_pci_link *link);

/* "x16 at 32.0 GT/s" */
#define MESH_PCI_LINK_TEXT_MAX 48

/** Writes "x4 at 8.0 GT/s" ("" if unknown) into @text (MESH_PCI_LINK_TEXT_MAX); returns @text. */
const char *mesh_pci_link_text(int width, int speed_mts, char *text);

#endif
