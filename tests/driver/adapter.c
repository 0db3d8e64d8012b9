/* SPDX-License-Identifier: Apache-2.0 */
/* adapter.c - one binding per ABI, and the calls that differ between them. */
#include <stdio.h>
#include <string.h>

#include "adapter.h"

/* Slots that all versions have with the same type. */
#define BIND_COMMON(adapter, table)                                                                \
	do {                                                                                       \
		(adapter)->plugin_name = (table)->name;                                            \
		(adapter)->devices = (table)->devices;                                             \
		(adapter)->dereg_mr = (table)->dereg_mr;                                           \
		(adapter)->test = (table)->test;                                                   \
		(adapter)->close_send = (table)->close_send;                                       \
		(adapter)->close_receive = (table)->close_receive;                                 \
		(adapter)->close_listen = (table)->close_listen;                                   \
	} while (0)

static void bind_v6(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v6 *table = plugin;

	BIND_COMMON(adapter, table);
	adapter->init_v6 = table->init;
	adapter->properties_v6 = table->get_properties;
	adapter->listen_v6 = table->listen;
	adapter->connect_v6 = table->connect;
	adapter->accept_v6 = table->accept;
	adapter->reg_mr_v6 = table->reg_mr;
	adapter->isend_v6 = table->isend;
	adapter->irecv_v6 = table->irecv;
}

static void bind_v7(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v7 *table = plugin;

	BIND_COMMON(adapter, table);
	adapter->init_v6 = table->init;
	adapter->properties_v7 = table->get_properties;
	adapter->listen_v6 = table->listen;
	adapter->connect_v7 = table->connect;
	adapter->accept_v7 = table->accept;
	adapter->reg_mr_v6 = table->reg_mr;
	adapter->isend_v6 = table->isend;
	adapter->irecv_v6 = table->irecv;
	adapter->irecv_consumed = table->irecv_consumed;
}

static void bind_v8(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v8 *table = plugin;

	BIND_COMMON(adapter, table);
	adapter->init_v6 = table->init;
	adapter->properties_v8 = table->get_properties;
	adapter->listen_v6 = table->listen;
	adapter->connect_v7 = table->connect;
	adapter->accept_v7 = table->accept;
	adapter->reg_mr_v8 = table->reg_mr;
	adapter->isend_v6 = table->isend;
	adapter->irecv_v6 = table->irecv;
	adapter->irecv_consumed = table->irecv_consumed;
}

static void bind_v9(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v9 *table = plugin;

	BIND_COMMON(adapter, table);
	adapter->init_v6 = table->init;
	adapter->properties_v9 = table->get_properties;
	adapter->listen_v6 = table->listen;
	adapter->connect_v7 = table->connect;
	adapter->accept_v7 = table->accept;
	adapter->reg_mr_v8 = table->reg_mr;
	adapter->isend_v9 = table->isend;
	adapter->irecv_v9 = table->irecv;
	adapter->irecv_consumed = table->irecv_consumed;
}

static void bind_v10(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v10 *table = plugin;

	BIND_COMMON(adapter, table);
	adapter->init_v10 = table->init;
	adapter->properties_v9 = table->get_properties;
	adapter->listen_v6 = table->listen;
	adapter->connect_v10 = table->connect;
	adapter->accept_v7 = table->accept;
	adapter->reg_mr_v8 = table->reg_mr;
	adapter->isend_v10 = table->isend;
	adapter->irecv_v10 = table->irecv;
	adapter->irecv_consumed = table->irecv_consumed;
}

/* v11 and v12 differ in the properties only. */
#define BIND_V11(adapter, table)                                                                   \
	do {                                                                                       \
		BIND_COMMON(adapter, table);                                                       \
		(adapter)->init_v11 = (table)->init;                                               \
		(adapter)->listen_v11 = (table)->listen;                                           \
		(adapter)->connect_v11 = (table)->connect;                                         \
		(adapter)->accept_v7 = (table)->accept;                                            \
		(adapter)->reg_mr_v8 = (table)->reg_mr;                                            \
		(adapter)->isend_v10 = (table)->isend;                                             \
		(adapter)->irecv_v10 = (table)->irecv;                                             \
		(adapter)->irecv_consumed = (table)->irecv_consumed;                               \
		(adapter)->finalize = (table)->finalize;                                           \
		(adapter)->set_attributes = (table)->set_attributes;                               \
	} while (0)

static void bind_v11(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v11 *table = plugin;

	BIND_V11(adapter, table);
	adapter->properties_v11 = table->get_properties;
}

static void bind_v12(struct adapter *adapter, const void *plugin)
{
	const struct nccl_net_v12 *table = plugin;

	BIND_V11(adapter, table);
	adapter->properties_v12 = table->get_properties;
}

static const struct abi {
	const char *symbol;
	void (*bind)(struct adapter *adapter, const void *table);
} abis[] = {
	{"ncclNetPlugin_v6", bind_v6},	 {"ncclNetPlugin_v7", bind_v7},
	{"ncclNetPlugin_v8", bind_v8},	 {"ncclNetPlugin_v9", bind_v9},
	{"ncclNetPlugin_v10", bind_v10}, {"ncclNetPlugin_v11", bind_v11},
	{"ncclNetPlugin_v12", bind_v12},
};

const char *adapter_symbol(int abi)
{
	if (abi < ADAPTER_ABI_OLDEST || abi > ADAPTER_ABI_NEWEST)
		return NULL;
	return abis[abi - ADAPTER_ABI_OLDEST].symbol;
}

void adapter_bind(struct adapter *adapter, int abi, const void *table, struct activity *activity)
{
	memset(adapter, 0, sizeof(*adapter));
	adapter->abi = abi;
	adapter->activity = activity;
	abis[abi - ADAPTER_ABI_OLDEST].bind(adapter, table);
}

const char *adapter_missing(const struct adapter *a)
{
	if (!a->plugin_name)
		return "name";
	if (!a->init_v6 && !a->init_v10 && !a->init_v11)
		return "init";
	if (!a->devices)
		return "devices";
	if (!a->properties_v6 && !a->properties_v7 && !a->properties_v8 && !a->properties_v9 &&
	    !a->properties_v11 && !a->properties_v12)
		return "getProperties";
	if (!a->listen_v6 && !a->listen_v11)
		return "listen";
	if (!a->connect_v6 && !a->connect_v7 && !a->connect_v10 && !a->connect_v11)
		return "connect";
	if (!a->accept_v6 && !a->accept_v7)
		return "accept";
	if ((!a->reg_mr_v6 && !a->reg_mr_v8) || !a->dereg_mr)
		return "regMr or deregMr";
	if (!a->isend_v6 && !a->isend_v9 && !a->isend_v10)
		return "isend";
	if (!a->irecv_v6 && !a->irecv_v9 && !a->irecv_v10)
		return "irecv";
	if (!a->test)
		return "test";
	if (!a->close_send || !a->close_receive || !a->close_listen)
		return "closeSend, closeRecv or closeListen";
	if (a->abi >= 11 && !a->finalize)
		return "finalize";
	return NULL;
}

/* Calls with the plugin's name on the door, so that a call that hangs is seen. */
#define CALL(adapter, name, expression)                                                            \
	__extension__({                                                                            \
		enum nccl_result call_result;                                                      \
		activity_enter((adapter)->activity, name);                                         \
		call_result = (expression);                                                        \
		activity_leave((adapter)->activity);                                               \
		call_result;                                                                       \
	})

enum nccl_result adapter_init(struct adapter *a, uint64_t comm_id, nccl_logger logger,
			      nccl_profiler profiler)
{
	struct nccl_comm_config config = {.traffic_class = NCCL_UNDEFINED};

	if (a->init_v11)
		return CALL(a, "init",
			    a->init_v11(&a->context, comm_id, &config, logger, profiler));
	if (a->init_v10)
		return CALL(a, "init", a->init_v10(logger, profiler));
	return CALL(a, "init", a->init_v6(logger));
}

enum nccl_result adapter_devices(const struct adapter *a, int *num_devices)
{
	return CALL(a, "devices", a->devices(num_devices));
}

enum nccl_result adapter_listen(const struct adapter *a, int dev, void *handle, void **listen_comm)
{
	if (a->listen_v11)
		return CALL(a, "listen", a->listen_v11(a->context, dev, handle, listen_comm));
	return CALL(a, "listen", a->listen_v6(dev, handle, listen_comm));
}

enum nccl_result adapter_connect(const struct adapter *a, int dev, void *handle, void **send_comm)
{
	struct nccl_comm_config config = {.traffic_class = NCCL_UNDEFINED};
	struct nccl_device_handle *device = NULL;

	if (a->connect_v11)
		return CALL(a, "connect",
			    a->connect_v11(a->context, dev, handle, send_comm, &device));
	if (a->connect_v10)
		return CALL(a, "connect", a->connect_v10(dev, &config, handle, send_comm, &device));
	if (a->connect_v7)
		return CALL(a, "connect", a->connect_v7(dev, handle, send_comm, &device));
	return CALL(a, "connect", a->connect_v6(dev, handle, send_comm));
}

enum nccl_result adapter_accept(const struct adapter *a, void *listen_comm, void **receive_comm)
{
	struct nccl_device_handle *device = NULL;

	if (a->accept_v7)
		return CALL(a, "accept", a->accept_v7(listen_comm, receive_comm, &device));
	return CALL(a, "accept", a->accept_v6(listen_comm, receive_comm));
}

enum nccl_result adapter_reg_mr(const struct adapter *a, void *comm, void *data, size_t size,
				int type, void **registration)
{
	if (a->reg_mr_v8)
		return CALL(a, "regMr", a->reg_mr_v8(comm, data, size, type, registration));
	/* As in NCCL's compat code. */
	if (size >= 1u << 31)
		return NCCL_RESULT_INTERNAL_ERROR;
	return CALL(a, "regMr", a->reg_mr_v6(comm, data, (int)size, type, registration));
}

enum nccl_result adapter_dereg_mr(const struct adapter *a, void *comm, void *registration)
{
	return CALL(a, "deregMr", a->dereg_mr(comm, registration));
}

enum nccl_result adapter_isend(const struct adapter *a, void *send_comm, void *data, size_t size,
			       int tag, void *registration, void *profiler_handle, void **request)
{
	if (a->isend_v10)
		return CALL(a, "isend",
			    a->isend_v10(send_comm, data, size, tag, registration, profiler_handle,
					 request));
	if (a->isend_v9)
		return CALL(a, "isend",
			    a->isend_v9(send_comm, data, size, tag, registration, request));
	return CALL(a, "isend",
		    a->isend_v6(send_comm, data, (int)size, tag, registration, request));
}

enum nccl_result adapter_irecv(const struct adapter *a, void *receive_comm, void *data, size_t size,
			       int tag, void *registration, void *profiler_handle, void **request)
{
	int size_int = (int)size;

	if (a->irecv_v10)
		return CALL(a, "irecv",
			    a->irecv_v10(receive_comm, 1, &data, &size, &tag, &registration,
					 &profiler_handle, request));
	if (a->irecv_v9)
		return CALL(
			a, "irecv",
			a->irecv_v9(receive_comm, 1, &data, &size, &tag, &registration, request));
	/* NCCL's compat code for v6 to v8 hides the flag; v9's does not. */
	if (*request == (void *)NCCL_REQUEST_OPTIONAL_COMPLETION)
		*request = NULL;
	return CALL(a, "irecv",
		    a->irecv_v6(receive_comm, 1, &data, &size_int, &tag, &registration, request));
}

enum nccl_result adapter_test(const struct adapter *a, void *request, int *done, int *sizes)
{
	return CALL(a, "test", a->test(request, done, sizes));
}

enum nccl_result adapter_consumed(const struct adapter *a, void *receive_comm, void *request)
{
	if (!a->irecv_consumed)
		return NCCL_RESULT_SUCCESS;
	return CALL(a, "irecvConsumed", a->irecv_consumed(receive_comm, 1, request));
}

enum nccl_result adapter_close_send(const struct adapter *a, void *comm)
{
	return CALL(a, "closeSend", a->close_send(comm));
}

enum nccl_result adapter_close_receive(const struct adapter *a, void *comm)
{
	return CALL(a, "closeRecv", a->close_receive(comm));
}

enum nccl_result adapter_close_listen(const struct adapter *a, void *comm)
{
	return CALL(a, "closeListen", a->close_listen(comm));
}

enum nccl_result adapter_hint(const struct adapter *a, int num_peers, int num_flows)
{
	struct nccl_comm_attributes side = {
		.max_concurrent_peers = num_peers,
		.min_concurrent_peers = num_peers,
		.max_flows_per_peer = num_flows,
		.min_flows_per_peer = num_flows,
	};
	struct nccl_net_attributes attributes = {.send = side, .receive = side};

	if (!a->set_attributes)
		return NCCL_RESULT_SUCCESS;
	attributes.operations = 1u << 4; /* ncclFuncAllReduce */
	attributes.algorithms = 1u << 1; /* NCCL_ALGO_RING */
	attributes.protocols = 1u << 2;	 /* NCCL_PROTO_SIMPLE */
	return CALL(a, "setNetAttr", a->set_attributes(a->context, &attributes));
}

enum nccl_result adapter_finalize(const struct adapter *a)
{
	if (!a->finalize)
		return NCCL_RESULT_SUCCESS;
	return CALL(a, "finalize", a->finalize(a->context));
}

const char *adapter_result_text(enum nccl_result result)
{
	static const char *const names[] = {
		"ncclSuccess",	     "ncclUnhandledCudaError", "ncclSystemError",
		"ncclInternalError", "ncclInvalidArgument",    "ncclInvalidUsage",
		"ncclRemoteError",   "ncclInProgress",	       "ncclTimeout",
	};

	if ((unsigned int)result >= sizeof(names) / sizeof(names[0]))
		return "a result that NCCL does not know";
	return names[result];
}
