/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_versions.h - calls the plugin through each of its tables as NCCL would, behind one set of
 * signatures, so that a test can run for every version of the ABI. For test programs only.
 */
#ifndef TEST_NCCL_VERSIONS_H
#define TEST_NCCL_VERSIONS_H

#include <string.h>

#include <nccl/net_abi.h>

/* The properties that every version has. */
struct common_properties {
	struct nccl_net_identity identity;
	int pointer_support;
	struct nccl_net_link link;
};

struct version {
	int number;
	size_t properties_size;
	/* *context is written by v11 and later only. */
	enum nccl_result (*init)(nccl_logger logger, void **context);
	enum nccl_result (*finalize)(void *context); /* NULL before v11 */
	enum nccl_result (*get_properties)(int dev, void *properties);
	void (*common)(const void *properties, struct common_properties *common);
	nccl_listen_v11 *listen;
	nccl_connect_v11 *connect;
	nccl_accept_v7 *accept;
	nccl_register_v8 *reg_mr;
	nccl_isend_v9 *isend; /* sizes up to INT_MAX before v9 */
	nccl_irecv_v9 *irecv;
	nccl_devices_v6 *devices;
	nccl_deregister_v6 *dereg_mr;
	nccl_iflush_v6 *iflush;
	nccl_test_v6 *test;
	nccl_close_v6 *close_send;
	nccl_close_v6 *close_receive;
	nccl_close_v6 *close_listen;
};

#define CALL_INIT_V6(table) ((void)context, (table).init(logger))
#define CALL_INIT_V10(table) ((void)context, (table).init(logger, NULL))
#define CALL_INIT_V11(table) ((table).init(context, 7, NULL, logger, NULL))

#define CALL_LISTEN_V6(table) ((void)context, (table).listen(dev, handle, comm))
#define CALL_LISTEN_V11(table) ((table).listen(context, dev, handle, comm))

#define CALL_CONNECT_V6(table) ((void)context, (void)device, (table).connect(dev, handle, comm))
#define CALL_CONNECT_V7(table) ((void)context, (table).connect(dev, handle, comm, device))
#define CALL_CONNECT_V10(table) ((void)context, (table).connect(dev, NULL, handle, comm, device))
#define CALL_CONNECT_V11(table) ((table).connect(context, dev, handle, comm, device))

#define CALL_ACCEPT_V6(table) ((void)device, (table).accept(listen_comm, comm))
#define CALL_ACCEPT_V7(table) ((table).accept(listen_comm, comm, device))

#define CALL_ISEND_V6(table) ((table).isend(comm, data, (int)size, tag, registration, request))
#define CALL_ISEND_V9(table) ((table).isend(comm, data, size, tag, registration, request))
#define CALL_ISEND_V10(table) ((table).isend(comm, data, size, tag, registration, NULL, request))

#define CALL_IRECV_V6(table)                                                                       \
	int narrow[2] = {(int)sizes[0], n > 1 ? (int)sizes[1] : 0};                                \
	return (table).irecv(comm, n, data, narrow, tags, registrations, request)
#define CALL_IRECV_V9(table)                                                                       \
	return (table).irecv(comm, n, data, sizes, tags, registrations, request)
#define CALL_IRECV_V10(table)                                                                      \
	return (table).irecv(comm, n, data, sizes, tags, registrations, profiler_handles, request)

#define CALL_REG_MR_V6(table) ((table).reg_mr(comm, data, (int)size, type, registration))
#define CALL_REG_MR_V8(table) ((table).reg_mr(comm, data, size, type, registration))

/* @v: the version; @p: that of its properties; then those of the signatures. */
#define DRIVER(v, p, init_from, listen_from, connect_from, accept_from, reg_mr_from, isend_from,   \
	       irecv_from)                                                                         \
	static enum nccl_result init_v##v(nccl_logger logger, void **context)                      \
	{                                                                                          \
		return CALL_INIT_V##init_from(ncclNetPlugin_v##v);                                 \
	}                                                                                          \
	static enum nccl_result get_properties_v##v(int dev, void *properties)                     \
	{                                                                                          \
		return ncclNetPlugin_v##v.get_properties(dev, properties);                         \
	}                                                                                          \
	static void common_v##v(const void *memory, struct common_properties *common)              \
	{                                                                                          \
		const struct nccl_net_properties_v##p *properties = memory;                        \
		common->identity = properties->identity;                                           \
		common->pointer_support = properties->pointer_support;                             \
		common->link = properties->link;                                                   \
	}                                                                                          \
	static enum nccl_result listen_v##v(void *context, int dev, void *handle, void **comm)     \
	{                                                                                          \
		return CALL_LISTEN_V##listen_from(ncclNetPlugin_v##v);                             \
	}                                                                                          \
	static enum nccl_result connect_v##v(void *context, int dev, void *handle, void **comm,    \
					     struct nccl_device_handle **device)                   \
	{                                                                                          \
		return CALL_CONNECT_V##connect_from(ncclNetPlugin_v##v);                           \
	}                                                                                          \
	static enum nccl_result accept_v##v(void *listen_comm, void **comm,                        \
					    struct nccl_device_handle **device)                    \
	{                                                                                          \
		return CALL_ACCEPT_V##accept_from(ncclNetPlugin_v##v);                             \
	}                                                                                          \
	static enum nccl_result reg_mr_v##v(void *comm, void *data, size_t size, int type,         \
					    void **registration)                                   \
	{                                                                                          \
		return CALL_REG_MR_V##reg_mr_from(ncclNetPlugin_v##v);                             \
	}                                                                                          \
	static enum nccl_result isend_v##v(void *comm, void *data, size_t size, int tag,           \
					   void *registration, void **request)                     \
	{                                                                                          \
		return CALL_ISEND_V##isend_from(ncclNetPlugin_v##v);                               \
	}                                                                                          \
	static enum nccl_result irecv_v##v(void *comm, int n, void **data, size_t *sizes,          \
					   int *tags, void **registrations, void **request)        \
	{                                                                                          \
		void *profiler_handles[2] = {NULL, NULL};                                          \
		(void)profiler_handles;                                                            \
		CALL_IRECV_V##irecv_from(ncclNetPlugin_v##v);                                      \
	}

DRIVER(6, 6, 6, 6, 6, 6, 6, 6, 6)
DRIVER(7, 7, 6, 6, 7, 7, 6, 6, 6)
DRIVER(8, 8, 6, 6, 7, 7, 8, 6, 6)
DRIVER(9, 9, 6, 6, 7, 7, 8, 9, 9)
DRIVER(10, 9, 10, 6, 10, 7, 8, 10, 10)
DRIVER(11, 11, 11, 11, 11, 7, 8, 10, 10)
DRIVER(12, 12, 11, 11, 11, 7, 8, 10, 10)

#define VERSION(v, p, finalize_function)                                                           \
	{                                                                                          \
		.number = (v), .properties_size = sizeof(struct nccl_net_properties_v##p),         \
		.init = init_v##v, .finalize = (finalize_function),                                \
		.get_properties = get_properties_v##v, .common = common_v##v,                      \
		.listen = listen_v##v, .connect = connect_v##v, .accept = accept_v##v,             \
		.reg_mr = reg_mr_v##v, .isend = isend_v##v, .irecv = irecv_v##v,                   \
	}

#define VERSIONS 7

/** Fills @versions, the oldest first. */
static void versions_get(struct version versions[VERSIONS])
{
	const struct version drivers[VERSIONS] = {
		VERSION(6, 6, NULL),
		VERSION(7, 7, NULL),
		VERSION(8, 8, NULL),
		VERSION(9, 9, NULL),
		VERSION(10, 9, NULL),
		VERSION(11, 11, ncclNetPlugin_v11.finalize),
		VERSION(12, 12, ncclNetPlugin_v12.finalize),
	};

	memcpy(versions, drivers, sizeof(drivers));
#define SAME_SIGNATURES(i, v)                                                                      \
	versions[i].devices = ncclNetPlugin_v##v.devices;                                          \
	versions[i].dereg_mr = ncclNetPlugin_v##v.dereg_mr;                                        \
	versions[i].iflush = ncclNetPlugin_v##v.iflush;                                            \
	versions[i].test = ncclNetPlugin_v##v.test;                                                \
	versions[i].close_send = ncclNetPlugin_v##v.close_send;                                    \
	versions[i].close_receive = ncclNetPlugin_v##v.close_receive;                              \
	versions[i].close_listen = ncclNetPlugin_v##v.close_listen
	SAME_SIGNATURES(0, 6);
	SAME_SIGNATURES(1, 7);
	SAME_SIGNATURES(2, 8);
	SAME_SIGNATURES(3, 9);
	SAME_SIGNATURES(4, 10);
	SAME_SIGNATURES(5, 11);
	SAME_SIGNATURES(6, 12);
#undef SAME_SIGNATURES
}

#endif
