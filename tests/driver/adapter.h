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
	void *context; /* what init gave, since v11 */
	struct activity *activity;

	/* The plugin's functions; in each line the one that its ABI has is set. */
	nccl_init_v6 *init_v6;
	nccl_init_v10 *init_v10;
	nccl_init_v11 *init_v11;
	nccl_devices_v6 *devices;
	enum nccl_result (*properties_v6)(int dev, struct nccl_net_properties_v6 *properties);
	enum nccl_result (*properties_v7)(int dev, struct nccl_net_properties_v7 *properties);
	enum nccl_result (*properties_v8)(int dev, struct nccl_net_properties_v8 *properties);
	enum nccl_result (*properties_v9)(int dev, struct nccl_net_properties_v9 *properties);
	enum nccl_result (*properties_v11)(int dev, struct nccl_net_properties_v11 *properties);
	enum nccl_result (*properties_v12)(int dev, struct nccl_net_properties_v12 *properties);
	nccl_listen_v6 *listen_v6;
	nccl_listen_v11 *listen_v11;
	nccl_connect_v6 *connect_v6;
	nccl_connect_v7 *connect_v7;
	nccl_connect_v10 *connect_v10;
	nccl_connect_v11 *connect_v11;
	nccl_accept_v6 *accept_v6;
	nccl_accept_v7 *accept_v7;
	nccl_register_v6 *reg_mr_v6;
	nccl_register_v8 *reg_mr_v8;
	nccl_deregister_v6 *dereg_mr;
	nccl_isend_v6 *isend_v6;
	nccl_isend_v9 *isend_v9;
	nccl_isend_v10 *isend_v10;
	nccl_irecv_v6 *irecv_v6;
	nccl_irecv_v9 *irecv_v9;
	nccl_irecv_v10 *irecv_v10;
	nccl_test_v6 *test;
	nccl_close_v6 *close_send, *close_receive, *close_listen;
	nccl_irecv_consumed_v7 *irecv_consumed; /* NULL in most plugins */
	nccl_finalize_v11 *finalize;		/* NULL before v11 */
	nccl_set_attributes_v11 *set_attributes;
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
