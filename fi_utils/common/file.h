/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - reads whole files, and closes written ones. */
#ifndef MESH_FI_UTILS_COMMON_FILE_H
#define MESH_FI_UTILS_COMMON_FILE_H

#include <stddef.h>
#include <stdio.h>

/* A plan of the largest mesh has about 400 MB; more than this is not read. */
#define FILE_READ_MAX ((size_t)1 << 30)

/**
 * Reads @path, "-" for standard input.
 *
 * @who: for messages, "fi_mesh plan"
 *
 * Returns the text with a zero behind its *@size bytes, to be freed; NULL (reported) otherwise.
 */
char *file_read(const char *who, const char *path, size_t *size);

/**
 * Closes a file that was written.
 *
 * Returns 0, or a negative errno if any write to it has failed.
 */
int file_close(FILE *file);

#endif
