/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON that is valid whatever bytes the kernel or a peer gave us. */
#ifndef MESH_FI_UTILS_COMMON_JSON_H
#define MESH_FI_UTILS_COMMON_JSON_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "nic/addr.h"

/* Each returns NULL if there is no memory; jansson's pack functions accept that and return NULL. */

/** A string; bytes that are not UTF-8 become '?'. NULL and "" become null. */
json_t *output_json_text(const char *text);

/** "10.1.0.1/24", or null for no address. */
json_t *output_json_addr(const struct mesh_addr *addr);

/** A number; null if it is negative: it is not known. */
json_t *output_json_known(double value);

/** "0x0002c90300ef1234": JSON's own numbers end at 53 bits. */
json_t *output_json_hex(uint64_t value);

/**
 * Appends @value to @list and returns @list; if either is NULL, for lack of memory, both are
 * released and the result is NULL.
 */
json_t *output_json_append(json_t *list, json_t *value);

/** Adds the members of @more to @object, and returns it; if either is NULL, the result is NULL. */
json_t *output_json_join(json_t *object, json_t *more);

/**
 * Prints @root and a newline, and releases it.
 *
 * @root: may be NULL: there was no memory
 *
 * Returns 0, or -1 (reported).
 */
int output_json_print(const char *who, FILE *file, json_t *root);

/** The same, without line breaks inside. */
int output_json_print_line(const char *who, FILE *file, json_t *root);

#endif
