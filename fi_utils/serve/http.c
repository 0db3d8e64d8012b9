/* SPDX-License-Identifier: Apache-2.0 */
/* http.c - `fi_mesh serve --http`: answers requests for the page and its documents. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"

static const char who[] = "fi_mesh serve";

#ifdef MESH_HAVE_MICROHTTPD

#include <microhttpd.h>

/* ---- libmicrohttpd ---------------------------------------------------------------------- */

/* Its functions of these names. */
struct http_library {
	void *handle;
	__typeof__(&MHD_start_daemon) start_daemon;
	__typeof__(&MHD_stop_daemon) stop_daemon;
	__typeof__(&MHD_create_response_from_buffer) create_response;
	__typeof__(&MHD_destroy_response) destroy_response;
	__typeof__(&MHD_add_response_header) add_header;
	__typeof__(&MHD_queue_response) queue_response;
	__typeof__(&MHD_lookup_connection_value) lookup_value;
};

/* The ABI of the header that this was built with: all of its 0.9.x and 1.0.x have this name. */
#define LIBRARY "libmicrohttpd.so.12"

static int function_find(void *handle, const char *name, void *function)
{
	void *found = dlsym(handle, name);

	/* POSIX: a function's address fits into a pointer to data. */
	memcpy(function, &found, sizeof(found));
	return found ? 0 : -ENOENT;
}

/* Loads it. Returns 0 or -ENOENT (reported). It stays loaded: its threads may still end. */
static int http_library_load(struct http_library *library)
{
	struct {
		const char *name;
		void *function;
	} functions[] = {
		{"MHD_start_daemon", &library->start_daemon},
		{"MHD_stop_daemon", &library->stop_daemon},
		{"MHD_create_response_from_buffer", &library->create_response},
		{"MHD_destroy_response", &library->destroy_response},
		{"MHD_add_response_header", &library->add_header},
		{"MHD_queue_response", &library->queue_response},
		{"MHD_lookup_connection_value", &library->lookup_value},
	};
	size_t i;

	library->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library->handle) {
		fprintf(stderr,
			"fi_mesh serve: --http needs %s: %s (Debian 12: libmicrohttpd12; Debian "
			"13, Ubuntu 24.04: libmicrohttpd12t64; Fedora, Arch: libmicrohttpd)\n",
			LIBRARY, dlerror());
		return -ENOENT;
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!function_find(library->handle, functions[i].name, functions[i].function))
			continue;
		fprintf(stderr, "fi_mesh serve: %s has no %s\n", LIBRARY, functions[i].name);
		return -ENOENT;
	}
	return 0;
}

/* Connections at once, of all browsers and of one host; a browser has six. */
#define CONNECTIONS_MAX 32
#define CONNECTIONS_OF_HOST_MAX 16
/* A connection that sends nothing for so long is closed. */
#define IDLE_SECONDS 20
#define REQUEST_BYTES_MAX (16 << 10)

struct serve_http {
	struct http_library library;
	struct MHD_Daemon *daemon;
	struct serve_site site; /* its page is owned, its name is of the caller's peer_self */
};

/* ---- answers ------------------------------------------------------------------------------ */

/* Only what comes from here, and no page of others around it. */
#define POLICY                                                                                     \
	"default-src 'none'; connect-src 'self'; img-src 'self' blob:; script-src 'self'; "        \
	"style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

static const char *const headers[][2] = {
	{"Content-Security-Policy", POLICY},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cache-Control", "no-store"},
};

/* What is to become of the answer's bytes. */
static enum MHD_ResponseMemoryMode memory_mode(const struct serve_answer *answer)
{
	if (answer->owned)
		return MHD_RESPMEM_MUST_FREE;
	return answer->bytes == answer->line ? MHD_RESPMEM_MUST_COPY : MHD_RESPMEM_PERSISTENT;
}

static enum MHD_Result reply(const struct serve_http *http, struct MHD_Connection *connection,
			     struct serve_answer *answer)
{
	const struct http_library *library = &http->library;
	struct MHD_Response *response =
		library->create_response(answer->size, (char *)answer->bytes, memory_mode(answer));
	enum MHD_Result result;
	size_t i;

	if (!response) {
		free(answer->owned);
		return MHD_NO;
	}
	library->add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type);
	if (answer->status == SERVE_METHOD_NOT_ALLOWED)
		library->add_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	for (i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		library->add_header(response, headers[i][0], headers[i][1]);
	result = library->queue_response(connection, answer->status, response);
	library->destroy_response(response);
	return result;
}

static enum MHD_Result request(void *arg, struct MHD_Connection *connection, const char *url,
			       const char *method, const char *version, const char *upload,
			       size_t *upload_size, void **state)
{
	const struct serve_http *http = arg;
	const struct serve_request asked = {
		.method = method,
		.url = url,
		.host = http->library.lookup_value(connection, MHD_HEADER_KIND,
						   MHD_HTTP_HEADER_HOST),
	};
	struct serve_answer answer;

	(void)version;
	(void)upload;
	(void)upload_size;
	(void)state;
	serve_request_answer(&http->site, &asked, &answer);
	return reply(http, connection, &answer);
}

/* ---- open, close -------------------------------------------------------------------------- */

/* The management network's: not every address, and no cable's. */
static int address_check(const struct mesh_addr *addr, const struct peer_self *self)
{
	static const struct mesh_addr any = {.family = MESH_FAMILY_NONE};
	char text[MESH_ADDR_TEXT_MAX];
	int i, k;

	mesh_addr_text(addr, text);
	if (!memcmp(addr->bytes, any.bytes, sizeof(any.bytes))) {
		fprintf(stderr,
			"%s: --http takes one address, of the management network or 127.0.0.1, not "
			"all of them\n",
			who);
		return -EINVAL;
	}
	for (i = 0; i < self->num_nics; i++) {
		const struct mesh_nic *nic = &self->table.nics[i];

		for (k = 0; k < nic->num_addrs; k++) {
			if (!mesh_addr_equal(&nic->addrs[k], addr))
				continue;
			fprintf(stderr,
				"%s: %s is on %s, which carries the mesh: --http takes an address "
				"of the management network, or 127.0.0.1\n",
				who, text, nic->netdev);
			return -EINVAL;
		}
	}
	return 0;
}

/* What a browser may do wrong is not this server's trouble. */
static void log_nothing(void *arg, const char *format, va_list args)
{
	(void)arg;
	(void)format;
	(void)args;
}

static int daemon_start(struct serve_http *http, const struct mesh_addr *addr, uint16_t port)
{
	struct sockaddr_storage sockaddr;
	unsigned int flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL_INTERNAL_THREAD |
			     MHD_USE_ERROR_LOG;

	mesh_addr_to_sockaddr(addr, port, &sockaddr);
	if (addr->family == MESH_FAMILY_IPV6)
		flags |= MHD_USE_IPv6;
	http->daemon = http->library.start_daemon(
		flags, port, NULL, NULL, request, http, MHD_OPTION_EXTERNAL_LOGGER, log_nothing,
		NULL, MHD_OPTION_SOCK_ADDR, &sockaddr, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS_OF_HOST_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned int)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)REQUEST_BYTES_MAX, MHD_OPTION_END);
	return http->daemon ? 0 : -errno;
}

struct serve_http *serve_http_open(const struct mesh_addr *addr, uint16_t port,
				   const struct peer_self *self)
{
	struct serve_http *http;
	char text[MESH_ADDR_TEXT_MAX];
	int ret;

	if (address_check(addr, self))
		return NULL;
	http = calloc(1, sizeof(*http));
	if (!http || http_library_load(&http->library)) {
		free(http);
		return NULL;
	}
	http->site = (struct serve_site){serve_page_open(), self->name, serve_host_full_name};
	errno = 0;
	ret = http->site.page ? daemon_start(http, addr, port) : -ENOMEM;
	mesh_addr_text(addr, text);
	if (ret || !http->daemon) {
		fprintf(stderr, "%s: cannot serve the page on %s, port %u: %s\n", who, text, port,
			ret ? strerror(-ret) : "libmicrohttpd does not start");
		serve_http_close(http);
		return NULL;
	}
	printf("page: http://%s%s%s:%u/\n", addr->family == MESH_FAMILY_IPV6 ? "[" : "", text,
	       addr->family == MESH_FAMILY_IPV6 ? "]" : "", port);
	return http;
}

void serve_http_close(struct serve_http *http)
{
	if (!http)
		return;
	if (http->site.page)
		serve_page_interrupt(http->site.page);
	if (http->daemon)
		http->library.stop_daemon(http->daemon);
	if (http->site.page)
		serve_page_close(http->site.page);
	free(http);
}

#else

struct serve_http *serve_http_open(const struct mesh_addr *addr, uint16_t port,
				   const struct peer_self *self)
{
	(void)addr;
	(void)port;
	(void)self;
	fprintf(stderr,
		"%s: --http: this fi_mesh was built without libmicrohttpd (Debian, Ubuntu: "
		"libmicrohttpd-dev)\n",
		who);
	return NULL;
}

void serve_http_close(struct serve_http *http)
{
	(void)http;
}

#endif
