/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - `fi_mesh serve --http`: the page, what is shown there, and who may read it. */
#ifndef MESH_FI_UTILS_SERVE_HTTP_H
#define MESH_FI_UTILS_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/self.h"

/* ---- the files of the page, from the folder page/ -------------------------------------------- */

struct page_file {
	const char *type; /* of HTTP's Content-Type */
	const char *bytes;
	size_t size;
};

/** Finds the file that has this path, such as "/" or "/page.css"; false: there is none. */
bool page_file_find(const char *path, struct page_file *file);

/* ---- what it shows --------------------------------------------------------------------------- */

/*
 * What the page shows: the output of other subcommands, which a request runs if the last output is
 * older than a document's period.
 */

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

/* ---- a request ------------------------------------------------------------------------------- */

/*
 * What a request for the page of `fi_mesh serve --http` is answered with. Whoever reaches the port
 * has chosen every part of the request.
 */

/* What is served. */
struct serve_site {
	struct serve_page *page;   /* owned by the caller */
	const char *node;	   /* this node's name */
	const char *(*full)(void); /* see serve_host_is_ours() */
};

struct serve_request {
	const char *method, *url; /* the URL without what follows a '?' */
	const char *host;	  /* of the header; NULL: there is none */
};

/* HTTP's (RFC 9110, 15). */
enum serve_status {
	SERVE_OK = 200,
	SERVE_NOT_FOUND = 404,
	SERVE_METHOD_NOT_ALLOWED = 405,
	SERVE_MISDIRECTED = 421,
	SERVE_UNAVAILABLE = 503,
};

struct serve_answer {
	enum serve_status status;
	const char *type;  /* of HTTP's Content-Type; never freed */
	const char *bytes; /* @owned, @line or a constant */
	size_t size;
	char *owned;	/* to be freed; or NULL */
	char line[256]; /* a text for people */
};

/** Answers a request, after some seconds at most. Any thread may call it. */
void serve_request_answer(const struct serve_site *site, const struct serve_request *request,
			  struct serve_answer *answer);

/**
 * True if a request for @host comes from a page of this node. A page elsewhere may let a name of
 * its own resolve to our address, and read with the browser of somebody who reaches us (DNS
 * rebinding). It owns all names of its domain, NODE.ITS.DOMAIN as well. So @host, without its port,
 * must be an address, localhost, @node, the first label of @node, that with ".local" (which no
 * name server delegates), or what full() returns.
 *
 * @host: the value of the request's header; NULL: it has none
 * @full: this node's name with its domain, as the resolver has it, or ""; called only if nothing
 * else decides
 */
bool serve_host_is_ours(const char *host, const char *node, const char *(*full)(void));

/**
 * This host's name with its domain, as `hostname --fqdn` prints it; "" if it has none. The first
 * call asks the resolver and may wait for it. Thread-safe.
 */
const char *serve_host_full_name(void);

/* ---- the protocol ---------------------------------------------------------------------------- */

/*
 * `fi_mesh serve --http`: a read-only page over HTTP. The protocol is libmicrohttpd's, which is
 * loaded only here: fi_mesh needs it for nothing else.
 */

struct serve_http;

/**
 * Listens on @addr, with threads of its own.
 *
 * @self: an address of its mesh NICs is refused, because the page belongs to the management network
 *
 * Returns NULL if it cannot (reported).
 */
struct serve_http *serve_http_open(const struct mesh_addr *addr, uint16_t port,
				   const struct peer_self *self);

/** Ends all requests. NULL is allowed. */
void serve_http_close(struct serve_http *http);

#endif
