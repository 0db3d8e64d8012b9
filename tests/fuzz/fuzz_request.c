/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_request.c - method, URL and Host of a request for the page of `fi_mesh serve --http`. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "serve/http.h"

#include "fuzz_text.h"

#define NODE "spark-1.lab"
#define FULL "spark-1.lab.example"

static struct serve_site site;

static const char *full(void)
{
	return FULL;
}

/* A page that has ended: it runs no subcommand, and nothing waits for one. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	site = (struct serve_site){serve_page_open(), NODE, full};
	fuzz_check(site.page);
	serve_page_interrupt(site.page);
	return 0;
}

/* Names that a domain of others cannot have, said in another way than serve_host_is_ours() does. */
static bool is_ours(const char *host)
{
	static const char *const names[] = {NODE, FULL, "spark-1", "spark-1.local", "localhost"};
	char name[256];
	struct in_addr address;
	size_t i, len = strcspn(host, ":");

	if (*host == '[')
		return true;
	if (len >= sizeof(name))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcasecmp(name, names[i]))
			return true;
	}
	return inet_pton(AF_INET, name, &address) == 1;
}

static bool is_document(const char *url)
{
	return !strcmp(url, "/mesh.svg") || !strcmp(url, "/mesh.json") ||
	       !strcmp(url, "/watch.json") || !strcmp(url, "/check.json");
}

static enum serve_status expected(const struct serve_request *request)
{
	struct page_file file;

	if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0)
		return SERVE_METHOD_NOT_ALLOWED;
	if (!request->host || !is_ours(request->host))
		return SERVE_MISDIRECTED;
	if (page_file_find(request->url, &file))
		return SERVE_OK;
	return is_document(request->url) ? SERVE_UNAVAILABLE : SERVE_NOT_FOUND;
}

static void request_use(const struct serve_request *request)
{
	struct serve_answer answer;

	memset(&answer, 0xa5, sizeof(answer));
	serve_request_answer(&site, request, &answer);
	fuzz_check(answer.status == expected(request) && answer.type && !answer.owned);
	fuzz_check(answer.status == SERVE_OK ||
		   (answer.bytes == answer.line && answer.size == strnlen(answer.line, 100)));
}

/* "METHOD\nURL\nHOST"; HOST may be missing. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *rest = text;
	struct serve_request request;

	if (!text)
		return 0;
	request.method = strsep(&rest, "\n");
	request.url = rest ? strsep(&rest, "\n") : "/";
	request.host = rest;
	request_use(&request);
	request.method = "GET";
	request_use(&request);
	request.host = NODE;
	request_use(&request);
	free(text);
	return 0;
}
