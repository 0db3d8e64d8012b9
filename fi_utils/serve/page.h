/* SPDX-License-Identifier: Apache-2.0 */
/*
 * page.h - what the page of `fi_mesh serve --http` shows: the output of other subcommands, which a
 * request runs if the last output is older than a document's period.
 */
#ifndef MESH_FI_UTILS_SERVE_PAGE_H
#define MESH_FI_UTILS_SERVE_PAGE_H

#include <stddef.h>

struct serve_page;

/** A copy of a document for one request. */
struct serve_document {
	const char *type; /* of HTTP's Content-Type; never freed */
	char *text;	  /* owned by the caller; NULL: @complaint says why */
	size_t size;
	char complaint[200];
};

/** Returns NULL without memory. */
struct serve_page *serve_page_open(void);

/** From now on no subcommand is begun. */
void serve_page_interrupt(struct serve_page *page);

/** No request may be waiting. */
void serve_page_close(struct serve_page *page);

/**
 * Gets the document of @path, such as "/mesh.svg". If it is old, it waits until the subcommand has
 * ended, some seconds at most. Any thread may call it.
 *
 * Returns 0; -ENOENT: there is no such document; -EAGAIN: there is none now, @document->complaint
 * says why; -ENOMEM.
 */
int serve_page_get(struct serve_page *page, const char *path, struct serve_document *document);

#endif
