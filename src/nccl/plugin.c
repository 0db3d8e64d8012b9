/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the plugin's operations with the newest ABI's signatures, and the tables of all
 * versions of NCCL's net-plugin ABI.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <nccl/net_abi.h>

#include "base/log.h"
#include "base/version.h"
#include "nccl/plugin.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "transport/comm_life.h"
#include "transport/data.h"

_Static_assert(MESH_HANDLE_BYTES == NCCL_HANDLE_SIZE, "the handle is NCCL's");
_Static_assert(MESH_COMM_REQUESTS >= NCCL_REQUESTS_MAX, "NCCL may have this many requests");
_Static_assert(MESH_MESSAGE_MAX == NCCL_MESSAGE_BYTES_MAX, "the largest message is NCCL's");
_Static_assert(MESH_MESSAGE_MAX <= INT_MAX, "test reports sizes as int");
_Static_assert(sizeof(MESH_VERSION) <= MESH_VERSION_MAX, "VERSION has too many characters");

/* The speed that NCCL itself assumes for a NIC of unknown speed, in Mb/s (graph/topo.cc). */
#define SPEED_UNKNOWN_MBPS 10000
/* The plugin has no limit; NCCL requires a number. */
#define COMMS_MAX 65536
/*
 * NCCL copies the last component of pciPath into 16 bytes without a check (graph/xml.cc,
 * NVML_DEVICE_PCI_BUS_ID_BUFFER_V2_SIZE).
 */
#define PCI_ADDRESS_MAX 15

/* The pause after a failed message: otherwise NCCL retries it 100000 times a second. */
#define FAILED_PAUSE_NS 1000000

/* Written by init, read by every thread that logs; both may happen at once. */
static _Atomic(nccl_logger) nccl_log;

static const enum nccl_level levels[] = {
	[MESH_LOG_WARN] = NCCL_LEVEL_WARN,
	[MESH_LOG_INFO] = NCCL_LEVEL_INFO,
	[MESH_LOG_TRACE] = NCCL_LEVEL_TRACE,
};

static void log_to_nccl(enum mesh_log_level level, const char *file, int line, const char *text)
{
	nccl_logger logger = atomic_load(&nccl_log);

	/* A thread may still call this sink after it was replaced. */
	if (!logger)
		return;
	/* NCCL prints its own prefix and adds the newline; its own nets log "NET/<name> : ". */
	logger(levels[level], NCCL_SUBSYSTEM_INIT | NCCL_SUBSYSTEM_NET, file, line, "NET/Mesh : %s",
	       text);
}

void mesh_nccl_log_set(nccl_logger logger)
{
	atomic_store(&nccl_log, logger);
	mesh_log_sink_set(logger ? log_to_nccl : NULL);
}

/* The peer's, or of the network to it. */
static const int remote_errors[] = {
	ECANCELED,	 ECONNABORTED, ECONNREFUSED, ECONNRESET, EHOSTDOWN, EHOSTUNREACH,
	ENETDOWN,	 ENETRESET,    ENETUNREACH,  ENOTCONN,	 EPIPE,	    EPROTO,
	EPROTONOSUPPORT, EREMOTEIO,    ESHUTDOWN,    ETIMEDOUT,
};

/*
 * NCCL's result for 0 or a negative errno: others are of this node's kernel, devices or limits. The
 * function that returned the error has logged it. ncclTimeout is unknown to NCCL before 2.30.
 */
static enum nccl_result result_of(int error)
{
	size_t i;

	if (!error)
		return NCCL_RESULT_SUCCESS;
	if (error == -EINVAL || error == -EMSGSIZE)
		return NCCL_RESULT_INVALID_ARGUMENT;
	for (i = 0; i < sizeof(remote_errors) / sizeof(remote_errors[0]); i++)
		if (remote_errors[i] == -error)
			return NCCL_RESULT_REMOTE_ERROR;
	return NCCL_RESULT_SYSTEM_ERROR;
}

/*
 * Opens the plugin for one communicator. The communicator's id and configuration (a traffic class)
 * and the profiler are not used.
 */
static enum nccl_result plugin_init(void **context, uint64_t comm_id,
				    struct nccl_comm_config *config, nccl_logger logger,
				    nccl_profiler profiler)
{
	struct mesh_net *net = NULL;
	int error;

	(void)comm_id;
	(void)config;
	(void)profiler;
	/* NCCL 2.28 calls finalize even if init failed. */
	*context = NULL;
	mesh_nccl_log_set(logger);
	error = mesh_net_open(&net);
	if (!error)
		*context = net;
	return result_of(error);
}

static enum nccl_result plugin_finalize(void *context)
{
	mesh_net_close(context);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result plugin_devices(int *num_devices)
{
	*num_devices = mesh_net_num_nics();
	return NCCL_RESULT_SUCCESS;
}

/* The NIC's PCI path if NCCL can use it, or NULL. */
static char *pci_path_of(const struct mesh_nic *nic)
{
	const char *slash = strrchr(nic->pci_path, '/');

	if (!slash || !slash[1] || strlen(slash + 1) > PCI_ADDRESS_MAX)
		return NULL;
	return (char *)nic->pci_path;
}

/* Writes every byte: NCCL passes memory that is not zeroed. */
static enum nccl_result plugin_get_properties(int dev,
					      struct nccl_net_properties_newest *properties)
{
	const struct mesh_nic *nic = mesh_net_nic(dev);

	if (!nic) {
		mesh_warn("NCCL asked for NIC %d, but there are %d: please report this", dev,
			  mesh_net_num_nics());
		return NCCL_RESULT_INVALID_ARGUMENT;
	}
	/* Clears the padding and the members that are 0: forced flush, global mr, latency. */
	memset(properties, 0, sizeof(*properties));
	properties->identity.name = (char *)nic->name;
	properties->identity.pci_path = pci_path_of(nic);
	properties->identity.guid = nic->guid;
	properties->pointer_support = NCCL_POINTER_HOST;
	properties->link.speed = nic->speed_mbps > 0 ? nic->speed_mbps : SPEED_UNKNOWN_MBPS;
	properties->link.port = nic->port;
	properties->link.max_comms = COMMS_MAX;
	properties->link.max_receives = 1;
	properties->device.type = NCCL_DEVICE_HOST;
	properties->device.version = NCCL_DEVICE_NO_VERSION;
	/* NCCL copies this many entries. */
	properties->members.num_devs = 1;
	properties->members.devs[0] = dev;
	properties->limits.max_p2p_bytes = MESH_MESSAGE_MAX;
	properties->limits.max_coll_bytes = MESH_MESSAGE_MAX;
	properties->max_multi_request_size = 1;
	properties->rail_id = NCCL_UNDEFINED;
	properties->plane_id = NCCL_UNDEFINED;
	return NCCL_RESULT_SUCCESS;
}

/* A context is missing only if NCCL continues after a failed init. */
static enum nccl_result refuse_without_context(const char *operation)
{
	mesh_warn("NCCL called %s without a successful init: look for the reason above", operation);
	return NCCL_RESULT_INVALID_ARGUMENT;
}

static enum nccl_result plugin_listen(void *context, int dev, void *handle, void **listen_comm)
{
	struct mesh_listener *listener = NULL;
	int error;

	*listen_comm = NULL;
	if (!context)
		return refuse_without_context("listen");
	error = mesh_net_listen(context, dev, handle, &listener);
	if (!error)
		*listen_comm = listener;
	return result_of(error);
}

static enum nccl_result plugin_connect(void *context, int dev, void *handle, void **send_comm,
				       struct nccl_device_handle **send_device)
{
	struct mesh_comm *comm = NULL;
	int error;

	(void)send_device;
	/* After an error NCCL closes the comm that it finds here, and again at the end. */
	*send_comm = NULL;
	if (!context)
		return refuse_without_context("connect");
	error = mesh_net_connect(context, dev, handle, &comm);
	if (!error)
		*send_comm = comm;
	return result_of(error);
}

static enum nccl_result plugin_accept(void *listen_comm, void **receive_comm,
				      struct nccl_device_handle **receive_device)
{
	struct mesh_comm *comm = NULL;
	int error;

	(void)receive_device;
	*receive_comm = NULL;
	error = mesh_listener_accept(listen_comm, &comm);
	if (!error)
		*receive_comm = comm;
	return result_of(error);
}

static enum nccl_result plugin_reg_mr(void *comm, void *data, size_t size, int type,
				      void **registration)
{
	struct mesh_registration *opened = NULL;
	int error;

	*registration = NULL;
	if (type != NCCL_POINTER_HOST) {
		mesh_warn("NCCL registers GPU memory (type 0x%x), which this plugin does not "
			  "support and did not offer; set NCCL_NET_GDR_LEVEL=LOC",
			  (unsigned int)type);
		return NCCL_RESULT_INVALID_ARGUMENT;
	}
	error = mesh_registration_open(comm, data, size, &opened);
	if (!error)
		*registration = opened;
	return result_of(error);
}

/* Always succeeds: NCCL stops freeing other connections if one of these fails. */
static enum nccl_result plugin_dereg_mr(void *comm, void *registration)
{
	mesh_registration_close(comm, registration);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result plugin_isend(void *send_comm, void *data, size_t size, int tag,
				     void *registration, void *profiler_handle, void **request)
{
	int error;

	(void)tag;
	(void)profiler_handle;
	error = mesh_comm_send(send_comm, data, size, registration,
			       (struct mesh_request **)request);
	if (!error)
		return NCCL_RESULT_SUCCESS;
	*request = NULL; /* it may hold an old request, which NCCL would test */
	return result_of(error);
}

static enum nccl_result plugin_irecv(void *receive_comm, int n, void **data, size_t *sizes,
				     int *tags, void **registrations, void **profiler_handles,
				     void **request)
{
	int error;

	(void)tags;
	(void)profiler_handles;
	if (n != 1) {
		*request = NULL;
		mesh_warn("NCCL asked for a receive of %d buffers, but this plugin offers 1: "
			  "please report this",
			  n);
		return NCCL_RESULT_INVALID_ARGUMENT;
	}
	error = mesh_comm_receive(receive_comm, data[0], sizes[0], registrations[0],
				  (struct mesh_request **)request);
	if (!error)
		return NCCL_RESULT_SUCCESS;
	/* It may hold an old one, or NCCL_REQUEST_OPTIONAL_COMPLETION, which is not used. */
	*request = NULL;
	return result_of(error);
}

/* Nothing to flush: data is received in host memory only. */
static enum nccl_result plugin_iflush(void *receive_comm, int n, void **data, int *sizes,
				      void **registrations, void **request)
{
	(void)receive_comm;
	(void)n;
	(void)data;
	(void)sizes;
	(void)registrations;
	*request = NULL;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result plugin_test(void *request, int *done, int *sizes)
{
	int64_t size = mesh_request_test(request);

	*done = size >= 0;
	if (size < 0)
		return size == MESH_REQUEST_PENDING ? NCCL_RESULT_SUCCESS : result_of((int)size);
	if (sizes)
		sizes[0] = (int)size;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result plugin_close_comm(void *comm)
{
	mesh_comm_close(comm);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result plugin_close_listen(void *listen_comm)
{
	mesh_listener_close(listen_comm);
	return NCCL_RESULT_SUCCESS;
}

/* ---- the signatures of older versions: each difference is written once -------------------- */

/*
 * Up to v10 operations have no context argument, so they can only use a global variable. The first
 * successful init opens one context that they share; it lives as long as the process, because those
 * versions never finalize. NULL before.
 */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(void *) shared_context; /* changed under shared_lock */

static enum nccl_result init_v10(nccl_logger logger, nccl_profiler profiler)
{
	enum nccl_result result = NCCL_RESULT_SUCCESS;
	void *context;

	pthread_mutex_lock(&shared_lock);
	if (atomic_load(&shared_context)) {
		mesh_nccl_log_set(logger);
	} else {
		result = plugin_init(&context, 0, NULL, logger, profiler);
		atomic_store(&shared_context, context);
	}
	pthread_mutex_unlock(&shared_lock);
	return result;
}

static enum nccl_result init_v6(nccl_logger logger)
{
	return init_v10(logger, NULL);
}

static enum nccl_result listen_v6(int dev, void *handle, void **listen_comm)
{
	return plugin_listen(atomic_load(&shared_context), dev, handle, listen_comm);
}

static enum nccl_result connect_v7(int dev, void *handle, void **send_comm,
				   struct nccl_device_handle **send_device)
{
	return plugin_connect(atomic_load(&shared_context), dev, handle, send_comm, send_device);
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
	return plugin_accept(listen_comm, receive_comm, NULL);
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
	return plugin_reg_mr(comm, data, wide, type, registration);
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
	return message_result(plugin_test(request, done, sizes));
}

static enum nccl_result isend_v10(void *send_comm, void *data, size_t size, int tag,
				  void *registration, void *profiler_handle, void **request)
{
	return message_result(
		plugin_isend(send_comm, data, size, tag, registration, profiler_handle, request));
}

static enum nccl_result irecv_v10(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
				  void **registrations, void **profiler_handles, void **request)
{
	return message_result(plugin_irecv(receive_comm, n, data, sizes, tags, registrations,
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
	/* plugin_irecv() refuses any other n before it reads a size. */
	if (n == 1 && !size_widen(sizes[0], &wide))
		return NCCL_RESULT_INVALID_ARGUMENT;
	return irecv_v9(receive_comm, n, data, &wide, tags, registrations, request);
}

/*
 * Fills an older version's properties from the newest's. Macros, because the members have the same
 * names in structs of different types; each adds its version's members that are not 0 here.
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

/* At most one member: this plugin makes no virtual devices. */
#define PROPERTIES_V9(older, newest)                                                               \
	do {                                                                                       \
		PROPERTIES_V7(older, newest);                                                      \
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
		enum nccl_result result = plugin_get_properties(dev, &newest);                     \
                                                                                                   \
		if (!result)                                                                       \
			FILL(properties, &newest);                                                 \
		return result;                                                                     \
	}

GET_PROPERTIES(v6, PROPERTIES_V6)
GET_PROPERTIES(v7, PROPERTIES_V7)
GET_PROPERTIES(v8, PROPERTIES_V7)
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
	.name = MESH_PLUGIN_NAME, .devices = plugin_devices, .dereg_mr = plugin_dereg_mr,          \
	.iflush = plugin_iflush, .close_send = plugin_close_comm,                                  \
	.close_receive = plugin_close_comm, .close_listen = plugin_close_listen

/* v6 to v8: sizes are int. */
#define MESH_TABLE_SLOTS_INT_SIZES                                                                 \
	.init = init_v6, .listen = listen_v6, .isend = isend_v6, .irecv = irecv_v6, .test = test_v6

/* Since v11: the newest signatures. */
#define MESH_TABLE_SLOTS_CONTEXT                                                                   \
	.init = plugin_init, .listen = plugin_listen, .connect = plugin_connect,                   \
	.accept = plugin_accept, .reg_mr = plugin_reg_mr, .isend = plugin_isend,                   \
	.irecv = plugin_irecv, .test = plugin_test, .finalize = plugin_finalize

const struct nccl_net_v6 ncclNetPlugin_v6 = {
	MESH_TABLE_SLOTS,      MESH_TABLE_SLOTS_INT_SIZES, .get_properties = get_properties_v6,
	.connect = connect_v6, .accept = accept_v6,	   .reg_mr = reg_mr_v6,
};

const struct nccl_net_v7 ncclNetPlugin_v7 = {
	MESH_TABLE_SLOTS,      MESH_TABLE_SLOTS_INT_SIZES, .get_properties = get_properties_v7,
	.connect = connect_v7, .accept = plugin_accept,	   .reg_mr = reg_mr_v6,
};

const struct nccl_net_v8 ncclNetPlugin_v8 = {
	MESH_TABLE_SLOTS,      MESH_TABLE_SLOTS_INT_SIZES, .get_properties = get_properties_v8,
	.connect = connect_v7, .accept = plugin_accept,	   .reg_mr = plugin_reg_mr,
};

const struct nccl_net_v9 ncclNetPlugin_v9 = {
	MESH_TABLE_SLOTS,	 .init = init_v6,	.get_properties = get_properties_v9,
	.listen = listen_v6,	 .connect = connect_v7, .accept = plugin_accept,
	.reg_mr = plugin_reg_mr, .isend = isend_v9,	.irecv = irecv_v9,
	.test = test_v6,
};

const struct nccl_net_v10 ncclNetPlugin_v10 = {
	MESH_TABLE_SLOTS,	 .init = init_v10,	 .get_properties = get_properties_v9,
	.listen = listen_v6,	 .connect = connect_v10, .accept = plugin_accept,
	.reg_mr = plugin_reg_mr, .isend = isend_v10,	 .irecv = irecv_v10,
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
	.get_properties = plugin_get_properties,
};
