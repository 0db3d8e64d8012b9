/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - opens and closes the plugin for NCCL; the process's one node lives here. */
#include <errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/random.h"
#include "base/version.h"
#include "fabric/provider.h"
#include "system/nic_await.h"
#include "system/nic_table.h"
#include "system/node_id.h"
#include "transport/connect.h"
#include "transport/listener.h"
#include "transport/node.h"
#include "transport/openings.h"
#include "wire/protocol.h"

/* Links that have a carrier get so long to become usable; the kernel takes up to 1 s. */
#define LINKS_MS 2000

/*
 * The one node of this process. Made by the first mesh_net_open() and never freed: NCCL may
 * unload and load the plugin, and its devices must stay the same.
 */
static pthread_mutex_t node_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_node *_Atomic the_node;

/* ---- which NICs ---------------------------------------------------------------------------- */

/* Leaves the NICs that libfabric offers nothing for; the table's log says why. */
static int providers_check(struct mesh_node *node)
{
	struct mesh_provider_verdict *verdicts;
	int dev, ret;

	verdicts = calloc((size_t)node->table.num_taken + 1, sizeof(*verdicts));
	if (!verdicts)
		return -ENOMEM;
	ret = mesh_providers_assign(node->config.provider, &node->table, verdicts);
	for (dev = 0; dev < node->table.num_taken && !ret; dev++) {
		if (dev < MESH_NICS_MAX)
			node->providers[dev] = verdicts[dev].id;
		if (verdicts[dev].note[0])
			mesh_warn("%s uses %s: %s", node->table.nics[dev].netdev,
				  mesh_provider_id_text(verdicts[dev].id), verdicts[dev].note);
	}
	free(verdicts);
	return ret;
}

static int nics_find(struct mesh_node *node)
{
	int dev, ret;

	ret = mesh_nic_table_load_running("/sys", &node->config, LINKS_MS, &node->table);
	if (ret)
		return ret;
	ret = providers_check(node);
	mesh_nic_table_log(&node->table);
	if (ret)
		return ret;
	node->num_nics = node->table.num_taken;
	if (node->num_nics > MESH_NICS_MAX) {
		mesh_warn("%d NICs are more than the %d that can be used; NCCL_MESH_NICS chooses",
			  node->num_nics, MESH_NICS_MAX);
		node->num_nics = MESH_NICS_MAX;
	}
	for (dev = 0; dev < node->num_nics; dev++)
		node->nics[dev] = &node->table.nics[dev];
	node->num_devs = node->num_nics;
	return node->num_nics ? 0 : -ENODEV;
}

static int node_make(struct mesh_node **made)
{
	struct mesh_node *node = calloc(1, sizeof(*node));
	char libfabric[MESH_LIBFABRIC_VERSION_MAX];
	int ret;

	if (!node)
		return -ENOMEM;
	mesh_info("nccl-net-mesh %s, protocol %d, libfabric %s", mesh_version(),
		  MESH_PROTOCOL_VERSION, mesh_libfabric_version(libfabric));
	ret = mesh_config_load(NULL, NULL, &node->config);
	if (ret == -E2BIG)
		goto free_node; /* of the others the default is used */
	mesh_config_log(&node->config);
	mesh_node_name(node->config.node_name, node->name, sizeof(node->name));
	node->node_id = mesh_node_id();
	ret = mesh_random(&node->process_id, sizeof(node->process_id));
	if (ret)
		goto free_node;
	ret = nics_find(node);
	if (ret)
		goto free_table;
	mesh_lock_init(&node->lock);
	node->counters = &node->own_counters;
	LIST_INIT(&node->peers);
	LIST_INIT(&node->listeners);
	LIST_INIT(&node->connects);
	LIST_INIT(&node->comms);
	*made = node;
	return 0;
free_table:
	mesh_nic_table_free(&node->table);
free_node:
	free(node);
	return ret;
}

/* ---- NCCL's calls -------------------------------------------------------------------------- */

int mesh_net_open(struct mesh_net **net)
{
	struct mesh_net *opened = calloc(1, sizeof(*opened));
	struct mesh_node *node;
	int ret = 0;

	if (!opened)
		return -ENOMEM;
	pthread_mutex_lock(&node_mutex);
	node = atomic_load(&the_node);
	if (!node) {
		ret = node_make(&node);
		if (ret)
			goto unlock;
		atomic_store(&the_node, node);
	}
	node->users++;
	opened->node = node;
	/* Most processes connect soon; those that only ask for devices pay little. */
	mesh_lock_take(&node->lock);
	mesh_openings_start(node, true);
	mesh_lock_release(&node->lock);
unlock:
	pthread_mutex_unlock(&node_mutex);
	if (ret)
		free(opened);
	else
		*net = opened;
	return ret;
}

/* What NCCL left behind: it closes nothing that it did not get to see. */
static void leftovers_close(struct mesh_net *net)
{
	struct mesh_node *node = net->node;
	struct mesh_listener *listener;
	struct mesh_connect *connect;
	struct mesh_comm *comm;

	for (;;) {
		mesh_lock_take(&node->lock);
		LIST_FOREACH(listener, &node->listeners, entry) {
			if (listener->net == net)
				break;
		}
		LIST_FOREACH(connect, &node->connects, entry) {
			if (connect->net == net)
				break;
		}
		LIST_FOREACH(comm, &node->comms, entry) {
			if (comm->net == net)
				break;
		}
		if (connect)
			mesh_connect_free(connect);
		mesh_lock_release(&node->lock);
		/* A listener and a connect own comms of theirs: those go with them. */
		if (listener)
			mesh_listener_close(listener);
		else if (!connect && comm)
			mesh_comm_close(comm);
		else if (!connect)
			return;
	}
}

void mesh_net_close(struct mesh_net *net)
{
	struct mesh_node *node;

	if (!net)
		return;
	node = net->node;
	leftovers_close(net);
	pthread_mutex_lock(&node_mutex);
	if (--node->users == 0)
		mesh_node_stop(node);
	pthread_mutex_unlock(&node_mutex);
	free(net);
}

int mesh_net_num_nics(void)
{
	const struct mesh_node *node = atomic_load(&the_node);

	return node ? node->num_nics : 0;
}

const struct mesh_nic *mesh_net_nic(int dev)
{
	const struct mesh_node *node = atomic_load(&the_node);

	if (!node || dev < 0 || dev >= node->num_nics)
		return NULL;
	return &node->table.nics[dev];
}
