/* SPDX-License-Identifier: Apache-2.0 */
/* http_library.c - loads libmicrohttpd. */
#ifdef MESH_HAVE_MICROHTTPD
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "serve/http_library.h"

/* The ABI of the header that this was built with: all of its 0.9.x and 1.0.x have this name. */
#define LIBRARY "libmicrohttpd.so.12"

static int function_find(void *handle, const char *name, void *function)
{
	void *found = dlsym(handle, name);

	/* POSIX: a function's address fits into a pointer to data. */
	memcpy(function, &found, sizeof(found));
	return found ? 0 : -ENOENT;
}

int http_library_load(struct http_library *library)
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
#endif
