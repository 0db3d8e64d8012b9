/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leftovers.h - what a process of the world still has after finalize: threads, descriptors, memory.
 *
 * The program has malloc() and so on in place of the C library's, and knows of each block which
 * process it was allocated for, and by which function. Sanitizers have their own: not with them.
 */
#ifndef TESTS_WORLD_LEFTOVERS_H
#define TESTS_WORLD_LEFTOVERS_H

#include "world.h"

/** What the process has allocated until now is no leftover: the plugin keeps some of it. */
void leftovers_keep(const struct world_node *node);

/**
 * Fails if the process has a thread, a descriptor, or memory of the plugin's beyond what it may
 * keep. @plugin: an address in it
 */
void leftovers_check(const struct world_node *node, const void *plugin);

#endif
