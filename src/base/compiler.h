/* SPDX-License-Identifier: Apache-2.0 */
/* compiler.h - what C does not have: attributes of functions, from a member to its struct. */
#ifndef MESH_BASE_COMPILER_H
#define MESH_BASE_COMPILER_H

#include <stddef.h>

/*
 * The compiler keeps such a function, with the registers and the stack that it needs, out of those
 * that call it: what runs for each message stays short.
 */
#define MESH_COLD __attribute__((cold, noinline))

/** The struct of @type whose @member is at @pointer. */
#define mesh_container_of(pointer, type, member)                                                   \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
