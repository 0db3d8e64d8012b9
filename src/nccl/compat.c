/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat.c - the tables of all versions of NCCL's net-plugin ABI, and the signatures of the older
 * ones; each difference is written once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <nccl/net_abi.h>

#include "base/log.h"
#include "nccl/plugin.h"

/* The pause after a failed message: otherwise NCCL retries it 100000 times a second. */
#define FAILED_PAUSE_NS 1000000

/*
 * Up to v10 operations have no context argument, so they can only use a global variable. The first
 * successful init opens one context that they share; it lives as long as the process, because those
 * versions never finalize. NULL before.
 */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static void *shared_context; /* under shared_lock */

static void *shared_context_get(void)
{
	void *context;

	pthread_mutex_lock(&shared_lock);
	context = shared_context;
	pthread_mutex_unlock(&shared_lock);
	return context;
}

static enum nccl_result init_v10(nccl_logger logger, nccl_profiler profiler)
{
	enum nccl_result result = NCCL_RESULT_SUCCESS;

	pthread_mutex_lock(&shared_lock);
	if (shared_context)
		mesh_nccl_log_set(logger);
	else
		result = mesh_plugin_init(&shared_context, 0, NULL, logger, profiler);
	pthread_mutex_unlock(&shared_lock);
	return result;
}

static enum nccl_result init_v6(nccl_logger logger)
{
	return init_v10(logger, NULL);
}

static enum nccl_result listen_v6(int dev, void *handle, void **listen_comm)
{
	return mesh_plugin_listen(shared_context_get(), dev, handle, listen_comm);
}

static enum nccl_result connect_v7(int dev, void *handle, void **send_comm,
				   struct nccl_device_handle **send_device)
{
	return mesh_plugin_connect(shared_context_get(), dev, handle, send_comm, send_device);
}

static enum nccl_result connect_v6(int dev, void *handle, void **send_comm)
{
	return connect_v7(dev, handle, send_comm, NULL);
}

static enum nccl_result connect_v10(int dev, struct nccl_comm_config *config, void *handle,
				    void **send_comm, struct nccl_device_handle **send_device)
{
	(void)config;
	return connect_v7(dev, handle, send_comm, send_device);
}

/* Without device handles. */
static enum nccl_result accept_v6(void *listen_comm, void **receive_comm)
{
	return mesh_plugin_accept(listen_comm, receive_comm, NULL);
}

/* Up to v8 sizes are int. Converts one; returns false, after a WARN line, if it is negative. */
static bool size_widen(int size, size_t *wide)
{
	if (size < 0) {
		mesh_warn("NCCL passed a size of %d bytes: please report this", size);
		return false;
	}
	*wide = (size_t)size;
	return true;
}

static enum nccl_result reg_mr_v6(void *comm, void *data, int size, int type, void **registration)
{
	size_t wide;

	*registration = NULL;
	if (!size_widen(size, &wide))
		return NCCL_RESULT_INVALID_ARGUMENT;
	return mesh_plugin_reg_mr(comm, data, wide, type, registration);
}

/*
 * NCCL before 2.28 handles a failed message badly (proxy.cc). 2.18, 2.26 and 2.27 lose the error:
 * ncclCommGetAsyncError() reports success while kernels wait. 2.19 to 2.25 retry the same message
 * in a busy loop, with three log lines each time; in 2.23 to 2.25 ncclCommAbort() waits for that
 * loop to end. The plugin cannot end it, because it must not report a failed message as complete.
 * So it warns once, and slows the loop down.
 */
static enum nccl_result message_result(enum nccl_result result)
{
	static const struct timespec pause = {.tv_nsec = FAILED_PAUSE_NS};
	static atomic_flag warned = ATOMIC_FLAG_INIT;

	if (!result)
		return result;
	if (!atomic_flag_test_and_set(&warned))
		mesh_warn("NCCL before 2.28 may hide this failure from the program, or hang in "
			  "ncclCommAbort: kill processes that hang, or use NCCL 2.28 or later");
	nanosleep(&pause, NULL);
	return result;
}

static enum nccl_result test_v6(void *request, int *done, int *sizes)
{
	return message_result(mesh_plugin_test(request, done, sizes));
}

static enum nccl_result isend_v10(void *send_comm, void *data, size_t size, int tag,
				  void *registration, void *profiler_handle, void **request)
{
	return message_result(mesh_plugin_isend(send_comm, data, size, tag, registration,
						profiler_handle, request));
}

static enum nccl_result irecv_v10(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
				  void **registrations, void **profiler_handles, void **request)
{
	return message_result(mesh_plugin_irecv(receive_comm, n, data, sizes, tags, registrations,
						profiler_handles, request));
}

/* Without profiler handles. */
static enum nccl_result isend_v9(void *send_comm, void *data, size_t size, int tag,
				 void *registration, void **request)
{
	return isend_v10(send_comm, data, size, tag, registration, NULL, request);
}

static enum nccl_result isend_v6(void *send_comm, void *data, int size, int tag, void *registration,
				 void **request)
{
	size_t wide;

	*request = NULL;
	if (!size_widen(size, &wide))
		return NCCL_RESULT_INVALID_ARGUMENT;
	return isend_v9(send_comm, data, wide, tag, registration, request);
}

static enum nccl_result irecv_v9(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
				 void **registrations, void **request)
{
	return irecv_v10(receive_comm, n, data, sizes, tags, registrations, NULL, request);
}

static enum nccl_result irecv_v6(void *receive_comm, int n, void **data, int *sizes, int *tags,
				 void **registrations, void **request)
{
	size_t wide = 0;

	*request = NULL;
	/* mesh_plugin_irecv() refuses any other n before it reads a size. */
	if (n == 1 && !size_widen(sizes[0], &wide))
		return NCCL_RESULT_INVALID_ARGUMENT;
	return irecv_v9(receive_comm, n, data, &wide, tags, registrations, request);
}

/*
 * Fills an older version's properties from the newest's. Macros, because the members have the same
 * names in structs of different types; each adds its version's members.
 */
#define PROPERTIES_V6(older, newest)                                                               \
	do {                                                                                       \
		memset((older), 0, sizeof(*(older))); /* padding too */                            \
		(older)->identity = (newest)->identity;                                            \
		(older)->pointer_support = (newest)->pointer_support;                              \
		(older)->link = (newest)->link;                                                    \
	} while (0)

#define PROPERTIES_V7(older, newest)                                                               \
	do {                                                                                       \
		PROPERTIES_V6(older, newest);                                                      \
		(older)->device = (newest)->device;                                                \
	} while (0)

#define PROPERTIES_V8(older, newest)                                                               \
	do {                                                                                       \
		PROPERTIES_V7(older, newest);                                                      \
		(older)->registration_is_global = (newest)->registration_is_global;                \
	} while (0)

/* At most one member: this plugin makes no virtual devices. */
#define PROPERTIES_V9(older, newest)                                                               \
	do {                                                                                       \
		PROPERTIES_V8(older, newest);                                                      \
		(older)->force_flush = (newest)->force_flush;                                      \
		(older)->members.num_devs = (newest)->members.num_devs;                            \
		(older)->members.devs[0] = (newest)->members.devs[0];                              \
		(older)->limits = (newest)->limits;                                                \
	} while (0)

#define PROPERTIES_V11(older, newest)                                                              \
	do {                                                                                       \
		PROPERTIES_V9(older, newest);                                                      \
		(older)->max_multi_request_size = (newest)->max_multi_request_size;                \
	} while (0)

/* Writes every byte of @properties. */
#define GET_PROPERTIES(version, FILL)                                                              \
	static enum nccl_result get_properties_##version(                                          \
		int dev, struct nccl_net_properties_##version *properties)                         \
	{                                                                                          \
		struct nccl_net_properties_newest newest;                                          \
		enum nccl_result result = mesh_plugin_get_properties(dev, &newest);                \
                                                                                                   \
		if (!result)                                                                       \
			FILL(properties, &newest);                                                 \
		return result;                                                                     \
	}

GET_PROPERTIES(v6, PROPERTIES_V6)
GET_PROPERTIES(v7, PROPERTIES_V7)
GET_PROPERTIES(v8, PROPERTIES_V8)
GET_PROPERTIES(v9, PROPERTIES_V9) /* v10 has the same struct */
GET_PROPERTIES(v11, PROPERTIES_V11)

/*
 * The tables. These slots are NULL on purpose, in all versions that have them:
 *   reg_mr_dmabuf   GPU memory is not offered, so NCCL never calls it
 *   get_device_mr, irecv_consumed   for code on the GPU; the second would be called on every step
 *   make_vdevice    NCCL must not fuse NICs: in a mesh they lead to different neighbours
 *   set_attributes  hints that the plugin does not use
 */

/* In every version. */
#define MESH_TABLE_SLOTS                                                                           \
	.name = MESH_PLUGIN_NAME, .devices = mesh_plugin_devices,                                  \
	.dereg_mr = mesh_plugin_dereg_mr, .iflush = mesh_plugin_iflush,                            \
	.close_send = mesh_plugin_close_comm, .close_receive = mesh_plugin_close_comm,             \
	.close_listen = mesh_plugin_close_listen

/* v6 to v8: sizes are int. */
#define MESH_TABLE_SLOTS_INT_SIZES                                                                 \
	.init = init_v6, .listen = listen_v6, .isend = isend_v6, .irecv = irecv_v6, .test = test_v6

/* Since v11: the newest signatures. */
#define MESH_TABLE_SLOTS_CONTEXT                                                                   \
	.init = mesh_plugin_init, .listen = mesh_plugin_listen, .connect = mesh_plugin_connect,    \
	.accept = mesh_plugin_accept, .reg_mr = mesh_plugin_reg_mr, .isend = mesh_plugin_isend,    \
	.irecv = mesh_plugin_irecv, .test = mesh_plugin_test, .finalize = mesh_plugin_finalize

const struct nccl_net_v6 ncclNetPlugin_v6 = {
	MESH_TABLE_SLOTS,      MESH_TABLE_SLOTS_INT_SIZES, .get_properties = get_properties_v6,
	.connect = connect_v6, .accept = accept_v6,	   .reg_mr = reg_mr_v6,
};

const struct nccl_net_v7 ncclNetPlugin_v7 = {
	MESH_TABLE_SLOTS,      MESH_TABLE_SLOTS_INT_SIZES,   .get_properties = get_properties_v7,
	.connect = connect_v7, .accept = mesh_plugin_accept, .reg_mr = reg_mr_v6,
};

const struct nccl_net_v8 ncclNetPlugin_v8 = {
	MESH_TABLE_SLOTS,      MESH_TABLE_SLOTS_INT_SIZES,   .get_properties = get_properties_v8,
	.connect = connect_v7, .accept = mesh_plugin_accept, .reg_mr = mesh_plugin_reg_mr,
};

const struct nccl_net_v9 ncclNetPlugin_v9 = {
	MESH_TABLE_SLOTS,
	.init = init_v6,
	.get_properties = get_properties_v9,
	.listen = listen_v6,
	.connect = connect_v7,
	.accept = mesh_plugin_accept,
	.reg_mr = mesh_plugin_reg_mr,
	.isend = isend_v9,
	.irecv = irecv_v9,
	.test = test_v6,
};

const struct nccl_net_v10 ncclNetPlugin_v10 = {
	MESH_TABLE_SLOTS,
	.init = init_v10,
	.get_properties = get_properties_v9,
	.listen = listen_v6,
	.connect = connect_v10,
	.accept = mesh_plugin_accept,
	.reg_mr = mesh_plugin_reg_mr,
	.isend = isend_v10,
	.irecv = irecv_v10,
	.test = test_v6,
};

const struct nccl_net_v11 ncclNetPlugin_v11 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_CONTEXT,
	.get_properties = get_properties_v11,
};

const struct nccl_net_v12 ncclNetPlugin_v12 = {
	MESH_TABLE_SLOTS,
	MESH_TABLE_SLOTS_CONTEXT,
	.get_properties = mesh_plugin_get_properties,
};
