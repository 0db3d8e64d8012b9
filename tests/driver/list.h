/* SPDX-License-Identifier: Apache-2.0 */
/* list.h - numbers on a command line: "8,64K,4M". */
#ifndef DRIVER_LIST_H
#define DRIVER_LIST_H

#include <stddef.h>
#include <stdint.h>

/**
 * Reads decimal numbers from @least to @most with commas between them, each with or without K, M or
 * G (powers of 1024) behind it.
 *
 * @max: so many have room in @numbers
 *
 * Returns how many there are; 0 if the text is anything else.
 */
size_t list_read(const char *text, uint64_t least, uint64_t most, uint64_t *numbers, size_t max);

#endif
