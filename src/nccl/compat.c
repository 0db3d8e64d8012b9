/* SPDX-License-Identifier: Apache-2.0 */
/* compat.c - the signatures of the older ABI versions; each difference is written once. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/log.h"
#include "nccl/compat.h"
#include "nccl/log.h"
#include "nccl/plugin.h"
#include "nccl/properties.h"

/* The pause after a failed message: otherwise NCCL retries it 100000 times a second. */
#define FAILED_PAUSE_NS 1000000

/*
 * The context of all callers whose ABI version has no context argument; NULL before the first
 * successful init. Those versions can only use a global variable.
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

enum nccl_result mesh_compat_init_v10(nccl_logger logger, nccl_profiler profiler)
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

enum nccl_result mesh_compat_init_v6(nccl_logger logger)
{
	return mesh_compat_init_v10(logger, NULL);
}

enum nccl_result mesh_compat_listen_v6(int dev, void *handle, void **listen_comm)
{
	return mesh_plugin_listen(shared_context_get(), dev, handle, listen_comm);
}

enum nccl_result mesh_compat_connect_v7(int dev, void *handle, void **send_comm,
					struct nccl_device_handle **send_device)
{
	return mesh_plugin_connect(shared_context_get(), dev, handle, send_comm, send_device);
}

enum nccl_result mesh_compat_connect_v6(int dev, void *handle, void **send_comm)
{
	return mesh_compat_connect_v7(dev, handle, send_comm, NULL);
}

enum nccl_result mesh_compat_connect_v10(int dev, struct nccl_comm_config *config, void *handle,
					 void **send_comm, struct nccl_device_handle **send_device)
{
	(void)config;
	return mesh_compat_connect_v7(dev, handle, send_comm, send_device);
}

enum nccl_result mesh_compat_accept_v6(void *listen_comm, void **receive_comm)
{
	return mesh_plugin_accept(listen_comm, receive_comm, NULL);
}

/* Converts @size of NCCL to @wide. Returns false, after a WARN line, if it is negative. */
static bool size_widen(int size, size_t *wide)
{
	if (size < 0) {
		mesh_warn("NCCL passed a size of %d bytes: please report this", size);
		return false;
	}
	*wide = (size_t)size;
	return true;
}

enum nccl_result mesh_compat_reg_mr_v6(void *comm, void *data, int size, int type,
				       void **registration)
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

enum nccl_result mesh_compat_test_v6(void *request, int *done, int *sizes)
{
	return message_result(mesh_plugin_test(request, done, sizes));
}

enum nccl_result mesh_compat_isend_v10(void *send_comm, void *data, size_t size, int tag,
				       void *registration, void *profiler_handle, void **request)
{
	return message_result(mesh_plugin_isend(send_comm, data, size, tag, registration,
						profiler_handle, request));
}

enum nccl_result mesh_compat_irecv_v10(void *receive_comm, int n, void **data, size_t *sizes,
				       int *tags, void **registrations, void **profiler_handles,
				       void **request)
{
	return message_result(mesh_plugin_irecv(receive_comm, n, data, sizes, tags, registrations,
						profiler_handles, request));
}

enum nccl_result mesh_compat_isend_v9(void *send_comm, void *data, size_t size, int tag,
				      void *registration, void **request)
{
	return mesh_compat_isend_v10(send_comm, data, size, tag, registration, NULL, request);
}

enum nccl_result mesh_compat_isend_v6(void *send_comm, void *data, int size, int tag,
				      void *registration, void **request)
{
	size_t wide;

	*request = NULL;
	if (!size_widen(size, &wide))
		return NCCL_RESULT_INVALID_ARGUMENT;
	return mesh_compat_isend_v9(send_comm, data, wide, tag, registration, request);
}

enum nccl_result mesh_compat_irecv_v9(void *receive_comm, int n, void **data, size_t *sizes,
				      int *tags, void **registrations, void **request)
{
	return mesh_compat_irecv_v10(receive_comm, n, data, sizes, tags, registrations, NULL,
				     request);
}

enum nccl_result mesh_compat_irecv_v6(void *receive_comm, int n, void **data, int *sizes, int *tags,
				      void **registrations, void **request)
{
	size_t wide = 0;

	*request = NULL;
	/* mesh_plugin_irecv() refuses any other n before it reads a size. */
	if (n == 1 && !size_widen(sizes[0], &wide))
		return NCCL_RESULT_INVALID_ARGUMENT;
	return mesh_compat_irecv_v9(receive_comm, n, data, &wide, tags, registrations, request);
}

enum nccl_result mesh_compat_get_properties_v9(int dev, struct nccl_net_properties_v9 *properties)
{
	struct nccl_net_properties_newest newest;
	enum nccl_result result = mesh_plugin_get_properties(dev, &newest);

	if (!result)
		MESH_PROPERTIES_V9(properties, &newest);
	return result;
}
