/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - what a request for the page of `fi_mesh serve --http` is answered with. Whoever
 * reaches the port has chosen every part of the request.
 */
#ifndef MESH_FI_UTILS_SERVE_REQUEST_H
#define MESH_FI_UTILS_SERVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

struct serve_page;

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
 * its own lead to our address, and read with the browser of somebody who reaches us (DNS
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

#endif
