/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what a request for the page is answered with. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "serve/http.h"

static void text_answer(struct serve_answer *answer, enum serve_status status, const char *text)
{
	snprintf(answer->line, sizeof(answer->line), "%s\n", text);
	answer->status = status;
	answer->type = "text/plain; charset=utf-8";
	answer->bytes = answer->line;
	answer->size = strlen(answer->line);
}

static void document_answer(const struct serve_site *site, const char *url,
			    struct serve_answer *answer)
{
	struct serve_document document;
	int ret = serve_page_get(site->page, url, &document);

	if (ret == -ENOENT) {
		text_answer(answer, SERVE_NOT_FOUND, "not found");
	} else if (ret) {
		text_answer(answer, SERVE_UNAVAILABLE,
			    *document.complaint ? document.complaint : strerror(-ret));
	} else {
		answer->status = SERVE_OK;
		answer->type = document.type;
		answer->bytes = answer->owned = document.text;
		answer->size = document.size;
	}
}

void serve_request_answer(const struct serve_site *site, const struct serve_request *request,
			  struct serve_answer *answer)
{
	struct page_file file;

	answer->owned = NULL;
	if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
		text_answer(answer, SERVE_METHOD_NOT_ALLOWED, "this page can only be read");
	} else if (!serve_host_is_ours(request->host, site->node, site->full)) {
		text_answer(answer, SERVE_MISDIRECTED, "use this node's address or its own name");
	} else if (page_file_find(request->url, &file)) {
		answer->status = SERVE_OK;
		answer->type = file.type;
		answer->bytes = file.bytes;
		answer->size = file.size;
	} else {
		document_answer(site, request->url, answer);
	}
}

#define NAME_MAX_BYTES 256

/* True if @name is the first label of @node, and @rest behind it. */
static bool is_label_with(const char *name, const char *node, const char *rest)
{
	size_t len = strcspn(node, ".");

	return len && !strncasecmp(name, node, len) && !strcasecmp(name + len, rest);
}

bool serve_host_is_ours(const char *host, const char *node, const char *(*full)(void))
{
	unsigned char address[sizeof(struct in6_addr)];
	size_t len = host ? strcspn(host, ":") : 0;
	char name[NAME_MAX_BYTES];

	if (host && *host == '[')
		return true; /* an IPv6 address: no name has brackets */
	if (!len || len >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)len, host);
	if (inet_pton(AF_INET, name, address) == 1 || !strcasecmp(name, "localhost"))
		return true;
	if (is_label_with(name, node, "") || is_label_with(name, node, ".local") ||
	    !strcasecmp(name, node))
		return true;
	/* The resolver is asked for names that begin as ours does, and for no others. */
	len = strcspn(node, ".");
	return len && !strncasecmp(name, node, len) && name[len] == '.' &&
	       !strcasecmp(name, full());
}

static char full_name[NAME_MAX_BYTES];

static void full_name_find(void)
{
	const struct addrinfo hints = {.ai_flags = AI_CANONNAME, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char host[NAME_MAX_BYTES];

	if (gethostname(host, sizeof(host)) || getaddrinfo(host, NULL, &hints, &found))
		return;
	if (found->ai_canonname)
		snprintf(full_name, sizeof(full_name), "%s", found->ai_canonname);
	freeaddrinfo(found);
}

const char *serve_host_full_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, full_name_find);
	return full_name;
}
