/* SPDX-License-Identifier: Apache-2.0 */
/* http_library.h - libmicrohttpd, loaded when it is needed. */
#ifndef MESH_FI_UTILS_SERVE_HTTP_LIBRARY_H
#define MESH_FI_UTILS_SERVE_HTTP_LIBRARY_H

#include <microhttpd.h>

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

/** Loads it. Returns 0 or -ENOENT (reported). It stays loaded: its threads may still end. */
int http_library_load(struct http_library *library);

#endif
