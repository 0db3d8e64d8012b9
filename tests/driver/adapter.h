/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapter.h - one set of functions, shaped like the newest net ABI, over whichever ABI the plugin
 * exports. It fills in for older ABIs what NCCL's own compat code does.
 */
#ifndef DRIVER_ADAPTER_H
#define DRIVER_ADAPTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <nccl/net_abi.h>

#include "activity.h"

/* Memory that NCCL hands over is not zeroed; ours is filled with this byte. */
#define ADAPTER_POISON 0xa5

#define ADAPTER_UNSET_MAX 400

struct adapter {
	int abi;
	const char *plugin_name;
	const void *table; /* the plugin's, of this ABI */
	void *context;	   /* what init gave, since v11 */
	struct activity *activity;
};

/* The range of ABIs. */
#define ADAPTER_ABI_OLDEST 6
#define ADAPTER_ABI_NEWEST 12

/** Name of the symbol of this ABI; NULL outside the range. */
const char *adapter_symbol(int abi);

/** Binds @adapter to a plugin's @table of this ABI. */
void adapter_bind(struct adapter *adapter, int abi, const void *table, struct activity *activity);

/** Name of the first function that the ABI demands and the table lacks, or NULL. */
const char *adapter_missing(const struct adapter *adapter);

enum nccl_result adapter_init(struct adapter *adapter, uint64_t comm_id, nccl_logger logger,
			      nccl_profiler profiler);
enum nccl_result adapter_devices(const struct adapter *adapter, int *num_devices);

/**
 * Asks with memory that is not zeroed.
 *
 * @unset: names the fields that the plugin did not write ("" if none), ADAPTER_UNSET_MAX bytes
 */
enum nccl_result adapter_properties(const struct adapter *adapter, int dev,
				    struct nccl_net_properties_newest *properties, char *unset);

enum nccl_result adapter_listen(const struct adapter *adapter, int dev, void *handle,
				void **listen_comm);
enum nccl_result adapter_connect(const struct adapter *adapter, int dev, void *handle,
				 void **send_comm);
enum nccl_result adapter_accept(const struct adapter *adapter, void *listen_comm,
				void **receive_comm);
enum nccl_result adapter_reg_mr(const struct adapter *adapter, void *comm, void *data, size_t size,
				int type, void **registration);
enum nccl_result adapter_dereg_mr(const struct adapter *adapter, void *comm, void *registration);
enum nccl_result adapter_isend(const struct adapter *adapter, void *send_comm, void *data,
			       size_t size, int tag, void *registration, void *profiler_handle,
			       void **request);

/** One buffer, as NCCL has with maxRecvs 1. */
enum nccl_result adapter_irecv(const struct adapter *adapter, void *receive_comm, void *data,
			       size_t size, int tag, void *registration, void *profiler_handle,
			       void **request);
enum nccl_result adapter_test(const struct adapter *adapter, void *request, int *done, int *sizes);

/** Reports a used receive to plugins that ask for it; others are not called. */
enum nccl_result adapter_consumed(const struct adapter *adapter, void *receive_comm, void *request);
enum nccl_result adapter_close_send(const struct adapter *adapter, void *comm);
enum nccl_result adapter_close_receive(const struct adapter *adapter, void *comm);
enum nccl_result adapter_close_listen(const struct adapter *adapter, void *comm);

/** Gives the hints that NCCL gives at connect and before operations; nothing before v11. */
enum nccl_result adapter_hint(const struct adapter *adapter, int num_peers, int num_flows);

/** Ends the context; nothing before v11. */
enum nccl_result adapter_finalize(const struct adapter *adapter);

/** The name of a result, for messages. */
const char *adapter_result_text(enum nccl_result result);

#endif
