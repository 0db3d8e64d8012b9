/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reads whole files, and closes written ones. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/file.h"

/* Reads until the end; NULL with errno set. */
static char *stream_read(FILE *file, size_t *size)
{
	size_t capacity = 4096, len = 0, got;
	char *text = malloc(capacity), *grown;

	while (text && (got = fread(text + len, 1, capacity - len - 1, file))) {
		len += got;
		if (len < capacity - 1)
			continue;
		if (capacity >= FILE_READ_MAX) {
			errno = EFBIG;
			break;
		}
		capacity *= 2;
		grown = realloc(text, capacity);
		if (!grown)
			break;
		text = grown;
	}
	if (!text || ferror(file) || !feof(file)) {
		free(text);
		return NULL;
	}
	text[len] = '\0';
	*size = len;
	return text;
}

char *file_read(const char *who, const char *path, size_t *size)
{
	bool from_stdin = !strcmp(path, "-");
	FILE *file = from_stdin ? stdin : fopen(path, "re");
	char *text = file ? stream_read(file, size) : NULL;

	if (!text)
		fprintf(stderr, "%s: cannot read %s: %s\n", who, path, strerror(errno));
	if (file && !from_stdin)
		fclose(file);
	return text;
}

int file_close(FILE *file)
{
	/* fclose() reports only its own write: ferror() also knows of earlier failures. */
	bool lost = ferror(file);

	if (fclose(file))
		return -errno;
	return lost ? -EIO : 0;
}
