/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the plugin's operations: translates NCCL's calls into the transport's. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

#include "base/log.h"
#include "base/version.h"
#include "nccl/plugin.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "transport/comm_open.h"
#include "transport/receive.h"
#include "transport/registration.h"
#include "transport/request.h"
#include "transport/send.h"

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

enum nccl_result mesh_plugin_init(void **context, uint64_t comm_id, struct nccl_comm_config *config,
				  nccl_logger logger, nccl_profiler profiler)
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

enum nccl_result mesh_plugin_finalize(void *context)
{
	mesh_net_close(context);
	return NCCL_RESULT_SUCCESS;
}

enum nccl_result mesh_plugin_devices(int *num_devices)
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

enum nccl_result mesh_plugin_get_properties(int dev, struct nccl_net_properties_newest *properties)
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

enum nccl_result mesh_plugin_listen(void *context, int dev, void *handle, void **listen_comm)
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

enum nccl_result mesh_plugin_connect(void *context, int dev, void *handle, void **send_comm,
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

enum nccl_result mesh_plugin_accept(void *listen_comm, void **receive_comm,
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

enum nccl_result mesh_plugin_reg_mr(void *comm, void *data, size_t size, int type,
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

enum nccl_result mesh_plugin_dereg_mr(void *comm, void *registration)
{
	mesh_registration_close(comm, registration);
	return NCCL_RESULT_SUCCESS;
}

enum nccl_result mesh_plugin_isend(void *send_comm, void *data, size_t size, int tag,
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

enum nccl_result mesh_plugin_irecv(void *receive_comm, int n, void **data, size_t *sizes, int *tags,
				   void **registrations, void **profiler_handles, void **request)
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
	/* It may hold an old request, or NCCL_REQUEST_OPTIONAL_COMPLETION, which is not used. */
	*request = NULL;
	return result_of(error);
}

enum nccl_result mesh_plugin_iflush(void *receive_comm, int n, void **data, int *sizes,
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

enum nccl_result mesh_plugin_test(void *request, int *done, int *sizes)
{
	int64_t size = mesh_request_test(request);

	*done = size >= 0;
	if (size < 0)
		return size == MESH_REQUEST_PENDING ? NCCL_RESULT_SUCCESS : result_of((int)size);
	if (sizes)
		sizes[0] = (int)size;
	return NCCL_RESULT_SUCCESS;
}

enum nccl_result mesh_plugin_close_comm(void *comm)
{
	mesh_comm_close(comm);
	return NCCL_RESULT_SUCCESS;
}

enum nccl_result mesh_plugin_close_listen(void *listen_comm)
{
	mesh_listener_close(listen_comm);
	return NCCL_RESULT_SUCCESS;
}
