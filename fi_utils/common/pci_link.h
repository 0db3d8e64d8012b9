/* SPDX-License-Identifier: Apache-2.0 */
/* pci_link.h - a PCI Express link: its width and speed, its bandwidth, its state as text. */
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

/**
 * Reads a current_link_speed or max_link_speed file, "8.0 GT/s PCIe", into MT/s. "Unknown" is 0;
 * old kernels print "8 GT/s". Returns 0 or -EINVAL; @mts is written on success only.
 */
int mesh_pci_speed_parse(const char *text, int *mts);

/**
 * Reads the PCIe links of all NICs from the folders of their PCI functions and those above; a value
 * that is missing there (virtual functions, other buses) is 0.
 */
void mesh_pci_links_load(struct mesh_nic_table *table);

/** True if it is known to run with fewer lanes, or more slowly, than the card can. */
bool mesh_pci_link_is_reduced(const struct mesh_pci_link *link);

/* "x16 at 32.0 GT/s" */
#define MESH_PCI_LINK_TEXT_MAX 48

/** Writes "x4 at 8.0 GT/s" ("" if unknown) into @text (MESH_PCI_LINK_TEXT_MAX); returns @text. */
const char *mesh_pci_link_text(int width, int speed_mts, char *text);

#endif
