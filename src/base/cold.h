/* SPDX-License-Identifier: Apache-2.0 */
/* cold.h - marks functions that run seldom. */
#ifndef MESH_BASE_COLD_H
#define MESH_BASE_COLD_H

/*
 * The compiler keeps such a function, with the registers and the stack that it needs, out of those
 * that call it: what runs for each message stays short.
 */
#define MESH_COLD __attribute__((cold, noinline))

#endif
