/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - what a request for the page is answered with. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "serve/host_name.h"
#include "serve/page.h"
#include "serve/page_files.h"
#include "serve/request.h"

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
