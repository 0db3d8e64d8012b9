/* SPDX-License-Identifier: Apache-2.0 */
/* adapter.c - what an ABI demands, and the calls that differ between them. */
#include <stddef.h>
#include <string.h>

#include "adapter.h"

/* The table as that of a version: the later ones have its slots at the same offsets. */
#define NET(adapter, version) ((const struct nccl_net_v##version *)(adapter)->table)

const char *adapter_symbol(int abi)
{
	static const char *const symbols[] = {
		"ncclNetPlugin_v6",  "ncclNetPlugin_v7",  "ncclNetPlugin_v8",  "ncclNetPlugin_v9",
		"ncclNetPlugin_v10", "ncclNetPlugin_v11", "ncclNetPlugin_v12",
	};

	if (abi < ADAPTER_ABI_OLDEST || abi > ADAPTER_ABI_NEWEST)
		return NULL;
	return symbols[abi - ADAPTER_ABI_OLDEST];
}

void adapter_bind(struct adapter *adapter, int abi, const void *table, struct activity *activity)
{
	memset(adapter, 0, sizeof(*adapter));
	adapter->abi = abi;
	adapter->table = table;
	adapter->plugin_name = NET(adapter, 6)->name;
	adapter->activity = activity;
}

/* A slot that must not be NULL, in the versions from @since on. */
#define DEMANDED(since, slot, name)                                                                \
	{                                                                                          \
		since, offsetof(struct nccl_net_newest, slot), name                                \
	}

const char *adapter_missing(const struct adapter *adapter)
{
	static const struct {
		int since;
		size_t offset;
		const char *name;
	} demanded[] = {
		DEMANDED(6, name, "name"),
		DEMANDED(6, init, "init"),
		DEMANDED(6, devices, "devices"),
		DEMANDED(6, get_properties, "getProperties"),
		DEMANDED(6, listen, "listen"),
		DEMANDED(6, connect, "connect"),
		DEMANDED(6, accept, "accept"),
		DEMANDED(6, reg_mr, "regMr"),
		DEMANDED(6, dereg_mr, "deregMr"),
		DEMANDED(6, isend, "isend"),
		DEMANDED(6, irecv, "irecv"),
		DEMANDED(6, test, "test"),
		DEMANDED(6, close_send, "closeSend"),
		DEMANDED(6, close_receive, "closeRecv"),
		DEMANDED(6, close_listen, "closeListen"),
		DEMANDED(11, finalize, "finalize"),
	};

	for (size_t i = 0; i < sizeof(demanded) / sizeof(demanded[0]); i++)
		if (adapter->abi >= demanded[i].since &&
		    !*(void *const *)((const char *)adapter->table + demanded[i].offset))
			return demanded[i].name;
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

	if (a->abi >= 11)
		return CALL(a, "init",
			    NET(a, 11)->init(&a->context, comm_id, &config, logger, profiler));
	if (a->abi >= 10)
		return CALL(a, "init", NET(a, 10)->init(logger, profiler));
	return CALL(a, "init", NET(a, 6)->init(logger));
}

enum nccl_result adapter_devices(const struct adapter *a, int *num_devices)
{
	return CALL(a, "devices", NET(a, 6)->devices(num_devices));
}

enum nccl_result adapter_listen(const struct adapter *a, int dev, void *handle, void **listen_comm)
{
	if (a->abi >= 11)
		return CALL(a, "listen", NET(a, 11)->listen(a->context, dev, handle, listen_comm));
	return CALL(a, "listen", NET(a, 6)->listen(dev, handle, listen_comm));
}

enum nccl_result adapter_connect(const struct adapter *a, int dev, void *handle, void **send_comm)
{
	struct nccl_comm_config config = {.traffic_class = NCCL_UNDEFINED};
	struct nccl_device_handle *device = NULL;

	if (a->abi >= 11)
		return CALL(a, "connect",
			    NET(a, 11)->connect(a->context, dev, handle, send_comm, &device));
	if (a->abi >= 10)
		return CALL(a, "connect",
			    NET(a, 10)->connect(dev, &config, handle, send_comm, &device));
	if (a->abi >= 7)
		return CALL(a, "connect", NET(a, 7)->connect(dev, handle, send_comm, &device));
	return CALL(a, "connect", NET(a, 6)->connect(dev, handle, send_comm));
}

enum nccl_result adapter_accept(const struct adapter *a, void *listen_comm, void **receive_comm)
{
	struct nccl_device_handle *device = NULL;

	if (a->abi >= 7)
		return CALL(a, "accept", NET(a, 7)->accept(listen_comm, receive_comm, &device));
	return CALL(a, "accept", NET(a, 6)->accept(listen_comm, receive_comm));
}

enum nccl_result adapter_reg_mr(const struct adapter *a, void *comm, void *data, size_t size,
				int type, void **registration)
{
	if (a->abi >= 8)
		return CALL(a, "regMr", NET(a, 8)->reg_mr(comm, data, size, type, registration));
	/* As in NCCL's compat code. */
	if (size >= 1u << 31)
		return NCCL_RESULT_INTERNAL_ERROR;
	return CALL(a, "regMr", NET(a, 6)->reg_mr(comm, data, (int)size, type, registration));
}

enum nccl_result adapter_dereg_mr(const struct adapter *a, void *comm, void *registration)
{
	return CALL(a, "deregMr", NET(a, 6)->dereg_mr(comm, registration));
}

enum nccl_result adapter_isend(const struct adapter *a, void *send_comm, void *data, size_t size,
			       int tag, void *registration, void *profiler_handle, void **request)
{
	if (a->abi >= 10)
		return CALL(a, "isend",
			    NET(a, 10)->isend(send_comm, data, size, tag, registration,
					      profiler_handle, request));
	if (a->abi >= 9)
		return CALL(a, "isend",
			    NET(a, 9)->isend(send_comm, data, size, tag, registration, request));
	return CALL(a, "isend",
		    NET(a, 6)->isend(send_comm, data, (int)size, tag, registration, request));
}

enum nccl_result adapter_irecv(const struct adapter *a, void *receive_comm, void *data, size_t size,
			       int tag, void *registration, void *profiler_handle, void **request)
{
	int size_int = (int)size;

	if (a->abi >= 10)
		return CALL(a, "irecv",
			    NET(a, 10)->irecv(receive_comm, 1, &data, &size, &tag, &registration,
					      &profiler_handle, request));
	if (a->abi >= 9)
		return CALL(a, "irecv",
			    NET(a, 9)->irecv(receive_comm, 1, &data, &size, &tag, &registration,
					     request));
	/* NCCL's compat code for v6 to v8 hides the flag; v9's does not. */
	if (*request == (void *)NCCL_REQUEST_OPTIONAL_COMPLETION)
		*request = NULL;
	return CALL(
		a, "irecv",
		NET(a, 6)->irecv(receive_comm, 1, &data, &size_int, &tag, &registration, request));
}

enum nccl_result adapter_test(const struct adapter *a, void *request, int *done, int *sizes)
{
	return CALL(a, "test", NET(a, 6)->test(request, done, sizes));
}

enum nccl_result adapter_consumed(const struct adapter *a, void *receive_comm, void *request)
{
	if (a->abi < 7 || !NET(a, 7)->irecv_consumed)
		return NCCL_RESULT_SUCCESS;
	return CALL(a, "irecvConsumed", NET(a, 7)->irecv_consumed(receive_comm, 1, request));
}

enum nccl_result adapter_close_send(const struct adapter *a, void *comm)
{
	return CALL(a, "closeSend", NET(a, 6)->close_send(comm));
}

enum nccl_result adapter_close_receive(const struct adapter *a, void *comm)
{
	return CALL(a, "closeRecv", NET(a, 6)->close_receive(comm));
}

enum nccl_result adapter_close_listen(const struct adapter *a, void *comm)
{
	return CALL(a, "closeListen", NET(a, 6)->close_listen(comm));
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

	if (a->abi < 11 || !NET(a, 11)->set_attributes)
		return NCCL_RESULT_SUCCESS;
	attributes.operations = 1u << 4; /* ncclFuncAllReduce */
	attributes.algorithms = 1u << 1; /* NCCL_ALGO_RING */
	attributes.protocols = 1u << 2;	 /* NCCL_PROTO_SIMPLE */
	return CALL(a, "setNetAttr", NET(a, 11)->set_attributes(a->context, &attributes));
}

enum nccl_result adapter_finalize(const struct adapter *a)
{
	if (a->abi < 11)
		return NCCL_RESULT_SUCCESS;
	return CALL(a, "finalize", NET(a, 11)->finalize(a->context));
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
