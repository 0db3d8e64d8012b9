/* SPDX-License-Identifier: Apache-2.0 */
/* page_files.h - the files of the page, from the folder page/. */
#ifndef MESH_FI_UTILS_SERVE_PAGE_FILES_H
#define MESH_FI_UTILS_SERVE_PAGE_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct page_file {
	const char *type; /* of HTTP's Content-Type */
	const char *bytes;
	size_t size;
};

/** Finds the file that has this path, such as "/" or "/page.css"; false: there is none. */
bool page_file_find(const char *path, struct page_file *file);

#endif
