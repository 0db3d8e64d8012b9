/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - opens and closes the plugin for NCCL; the one struct mesh_setup lives here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/threads.h"
#include "base/version.h"
#include "fabric/provider.h"
#include "nic/user_lists.h"
#include "setup/connecting.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/nics.h"
#include "setup/setup.h"
#include "system/nic_table.h"
#include "system/node.h"
#include "system/tuner_plan.h"
#include "transport/comm_life.h"
#include "wire/frame.h"
#include "wire/protocol.h"

/* The time for links with a carrier to become usable; the kernel takes up to 1 s. */
#define LINKS_MS 2000
/* Nobody waits longer for the end of the plugin's threads: libfabric may keep one for minutes. */
#define STOP_MS 5000

/*
 * The one of this process. Made by the first mesh_net_open() and never freed: NCCL may
 * unload and load the plugin, and its devices must stay the same.
 */
static pthread_mutex_t setup_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct mesh_setup *_Atomic the_setup;
/* What ends the last use of the plugin, while it does; under setup_mutex. */
static pthread_t stop_thread;
static bool stopping;

/* ---- which NICs ---------------------------------------------------------------------------- */

/* Skips the NICs for which libfabric has no provider; the table's log has the reasons. */
static int providers_check(struct mesh_process *process)
{
	struct mesh_provider_verdict *verdicts;
	int dev, ret;

	verdicts = calloc((size_t)process->table.num_taken + 1, sizeof(*verdicts));
	if (!verdicts)
		return -ENOMEM;
	ret = mesh_providers_assign(process->config.provider, &process->table, verdicts);
	for (dev = 0; dev < process->table.num_taken && !ret; dev++) {
		if (dev < MESH_NICS_MAX)
			mesh_process_provider_set(process, dev, verdicts[dev].id);
		if (verdicts[dev].note[0])
			mesh_warn("%s uses %s: %s", process->table.nics[dev].netdev,
				  mesh_provider_id_text(verdicts[dev].id), verdicts[dev].note);
	}
	free(verdicts);
	return ret;
}

static void spare_add(struct mesh_process *process, const struct mesh_nic *spare)
{
	enum mesh_provider_id wanted = mesh_provider_id_parse(process->config.provider);
	struct mesh_nic *nic = malloc(sizeof(*nic));
	struct mesh_nic_table alone = {.nics = nic, .num_nics = 1, .num_taken = 1};
	struct mesh_provider_verdict verdict;
	int dev = process->num_devs;

	if (!nic)
		return;
	*nic = *spare;
	nic->source = spare->spare_source;
	if (mesh_provider_assign(wanted, &alone, 0, &verdict)) {
		mesh_info("%s cannot stand in for other NICs: %s", nic->netdev, verdict.note);
		free(nic);
		return;
	}
	mesh_info("NIC %d: %s, %s, for nodes that nothing else connects", dev, nic->netdev,
		  nic->verdict == MESH_NIC_SPARE ? "of the management network" : "without RDMA");
	process->nics[dev] = nic;
	mesh_process_provider_set(process, dev, verdict.id);
	process->dev_reserves[dev] = true;
	process->num_devs = dev + 1;
}

/*
 * Adds NICs behind NCCL's devices, as reserves, that carry data only between nodes that no other
 * NICs connect: those without RDMA beside others that have it, and, if NCCL_MESH_ROUTED says so,
 * those of the management network. Their memory is never freed, as that of the table.
 */
static void spares_add(struct mesh_process *process)
{
	const struct mesh_nic_table *table = &process->table;
	bool management = !strcmp(process->config.routed, "management");
	int i;

	for (i = 0; i < table->num_nics && process->num_devs < MESH_NICS_MAX; i++)
		if (table->nics[i].verdict == MESH_NIC_SPARE_NO_RDMA ||
		    (table->nics[i].verdict == MESH_NIC_SPARE && management))
			spare_add(process, &table->nics[i]);
}

static int nics_find(struct mesh_process *process)
{
	int dev, ret;

	ret = mesh_nic_table_load_running("/sys", &process->config, LINKS_MS, &process->table);
	if (ret)
		return ret;
	ret = providers_check(process);
	mesh_nic_table_log(&process->table);
	if (ret)
		return ret;
	process->num_nics = process->table.num_taken;
	if (process->num_nics > MESH_NICS_MAX) {
		mesh_warn("%d NICs, of which only %d can be used: choose them with NCCL_MESH_NICS",
			  process->num_nics, MESH_NICS_MAX);
		process->num_nics = MESH_NICS_MAX;
	}
	for (dev = 0; dev < process->num_nics; dev++)
		process->nics[dev] = &process->table.nics[dev];
	process->num_devs = process->num_nics;
	spares_add(process);
	process->num_lasting = process->num_devs;
	return process->num_nics ? 0 : -ENODEV;
}

/* Returns 0 or -ENOMEM. */
static int tuner_digest_make(struct mesh_process *process)
{
	struct mesh_tuner_plan *plan;

	if (process->role != MESH_PROCESS_RANK) {
		process->tuner_digest = MESH_TUNER_ANY;
		return 0;
	}
	plan = malloc(sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	mesh_tuner_plan_load(&process->config, plan);
	process->tuner_digest = plan->digest;
	free(plan);
	return 0;
}

/* The link of one NIC is measured: nothing may lead around it. */
static void probe_config(struct mesh_config *config, const char *nic)
{
	snprintf(config->nics, sizeof(config->nics), "=%s", nic);
	snprintf(config->relay, sizeof(config->relay), "off");
	if (!strcmp(config->routed, "management"))
		snprintf(config->routed, sizeof(config->routed), "auto");
}

/* A service without a job relays for all, and a guest asks all. */
static int relays_check(struct mesh_process *process)
{
	struct mesh_config *config = &process->config;

	if (process->role != MESH_PROCESS_SERVICE && process->role != MESH_PROCESS_GUEST)
		return 0;
	if (!strcmp(config->relay, "off") || !config->neighbours)
		return -EPERM;
	if (!mesh_setup_of(process)->job)
		snprintf(config->relay, sizeof(config->relay), "any");
	return 0;
}

/* What the caller wants of this process. */
struct opening {
	enum mesh_process_role role;
	const char *nic;    /* of a probe */
	uint64_t job;	    /* of a guest */
	uint32_t connect_s; /* 0: as NCCL_MESH_CONNECT_TIMEOUT says */
};

/* Here, because no other thread may read the environment while NCCL's program changes it. */
static void job_learn(struct mesh_setup *setup, const struct opening *opening)
{
	setup->job = opening->job;
	if (opening->role == MESH_PROCESS_RANK || opening->role == MESH_PROCESS_SERVICE)
		setup->job = mesh_job_key();
	mesh_job_rank(&setup->rank);
}

MESH_NOT_ANALYSED
static int setup_make(const struct opening *opening, struct mesh_setup **made)
{
	struct mesh_setup *setup = calloc(1, sizeof(*setup));
	struct mesh_process *process;
	char libfabric[MESH_LIBFABRIC_VERSION_MAX];
	int ret;

	if (!setup)
		return -ENOMEM;
	process = &setup->process;
	process->role = opening->role;
	job_learn(setup, opening);
	mesh_nic_watch_open(process, false); /* before the table is read: misses nothing */
	mesh_info("nccl-net-mesh %s, protocol %d, libfabric %s", mesh_version(),
		  MESH_PROTOCOL_VERSION, mesh_libfabric_version(libfabric));
	ret = mesh_config_load(NULL, NULL, &process->config);
	if (ret == -E2BIG)
		goto free_node; /* after other errors the default is used */
	if (opening->nic)
		probe_config(&process->config, opening->nic);
	ret = relays_check(process);
	if (ret)
		goto free_node;
	if (opening->connect_s)
		process->config.connect_timeout_s = opening->connect_s;
	mesh_config_log(&process->config);
	mesh_node_name(process->config.node_name, process->name, sizeof(process->name));
	process->node_id = mesh_node_id();
	ret = mesh_random(process->secret, sizeof(process->secret));
	process->cookie = mesh_one_way(process->secret);
	process->process_id = mesh_process_id_of(process->cookie);
	if (!ret)
		ret = mesh_rails_parse(process->config.rails, &process->rails);
	if (!ret)
		ret = tuner_digest_make(process);
	if (ret)
		goto free_node;
	ret = nics_find(process);
	if (ret)
		goto free_table;
	mesh_lock_init(&process->lock);
	process->counters = &process->own_counters;
	process->events = &mesh_setup_events;
	setup->pid = getpid();
	LIST_INIT(&process->peers);
	LIST_INIT(&setup->listeners);
	LIST_INIT(&setup->connects);
	LIST_INIT(&process->comms);
	*made = setup;
	return 0;
free_table:
	mesh_nic_table_free(&process->table);
free_node:
	mesh_nic_watch_close(process);
	free(setup);
	return ret;
}

/*
 * Other nodes of the job may need this one before its NCCL listens or connects. If it does not
 * start, the first of these calls reports why. A process without NCCL has no such calls.
 */
static int start_early(struct mesh_process *process)
{
	const struct mesh_config *config = &process->config;
	bool serves = !strcmp(config->relay, "any") || mesh_setup_of(process)->job;
	bool is_rank = process->role == MESH_PROCESS_RANK;
	int ret = 0;

	mesh_process_lock(process);
	if (!is_rank || (serves && strcmp(config->relay, "off") != 0 && config->neighbours))
		ret = mesh_setup_start(process);
	if (is_rank)
		mesh_openings_early(process);
	mesh_process_unlock(process);
	return is_rank ? 0 : ret;
}

/* ---- the end of it ------------------------------------------------------------------------- */

static void *stop_main(void *process)
{
	mesh_setup_stop(process);
	return NULL;
}

/* Waits for the end of the last use, @limit_ms at most. Returns whether that has come. */
static bool stop_await(uint64_t limit_ms)
{
	const struct timespec pause = {.tv_nsec = 500000};
	uint64_t until_ms = mesh_clock_ms() + limit_ms;

	while (stopping) {
		stopping = pthread_tryjoin_np(stop_thread, NULL);
		if (stopping && mesh_clock_ms() >= until_ms)
			return false;
		if (stopping)
			nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * In a thread: it waits for the others, and then closes what they use, however long a call of
 * libfabric keeps one of them.
 */
static void setup_end(struct mesh_process *process)
{
	stopping = !mesh_thread_create(&stop_thread, "nccl-mesh-stop", stop_main, process);
	if (!stopping)
		mesh_setup_stop(process);
	if (!stop_await(STOP_MS))
		mesh_warn("a thread of the plugin has not ended within %d s: libfabric opens or "
			  "closes a NIC, or registers memory, or the machine is very busy; what it "
			  "uses stays open until then",
			  STOP_MS / 1000);
}

/* ---- NCCL's calls -------------------------------------------------------------------------- */

static int net_open(const struct opening *opening, struct mesh_net **net)
{
	struct mesh_net *opened = calloc(1, sizeof(*opened));
	struct mesh_setup *setup;
	int ret = 0;

	if (!opened)
		return -ENOMEM;
	pthread_mutex_lock(&setup_mutex);
	setup = atomic_load(&the_setup);
	if (setup && !stop_await(setup->process.config.connect_timeout_s * 1000)) {
		mesh_warn("a thread of the plugin's last use still has not ended");
		ret = -EBUSY;
		goto unlock;
	}
	if (!setup) {
		ret = setup_make(opening, &setup);
		if (ret)
			goto unlock;
		atomic_store(&the_setup, setup);
	} else if (opening->role != MESH_PROCESS_RANK) {
		ret = -EBUSY;
		goto unlock;
	} else if (!setup->users) {
		mesh_nic_watch_open(&setup->process, true);
	}
	setup->users++;
	opened->setup = setup;
	opened->process = &setup->process;
unlock:
	pthread_mutex_unlock(&setup_mutex);
	if (ret) {
		free(opened);
		return ret;
	}
	ret = start_early(opened->process);
	if (ret)
		mesh_net_close(opened);
	else
		*net = opened;
	return ret;
}

int mesh_net_open(struct mesh_net **net)
{
	const struct opening opening = {.role = MESH_PROCESS_RANK};

	return net_open(&opening, net);
}

int mesh_net_relay_open(struct mesh_net **net)
{
	const struct opening opening = {.role = MESH_PROCESS_SERVICE};

	return net_open(&opening, net);
}

int mesh_net_guest_open(const char *nic, uint64_t job, uint32_t connect_s, struct mesh_net **net)
{
	const struct opening opening = {
		.role = nic ? MESH_PROCESS_PROBE : MESH_PROCESS_GUEST,
		.nic = nic,
		.job = job,
		.connect_s = connect_s,
	};

	return net_open(&opening, net);
}

bool mesh_net_relays_all(const struct mesh_net *net)
{
	return !strcmp(net->process->config.relay, "any");
}

/* Closes what NCCL left open: it closes nothing that it never received. */
static void leftovers_close(struct mesh_net *net)
{
	struct mesh_process *process = net->process;
	struct mesh_listener *listener;
	struct mesh_connect *connect;
	struct mesh_comm *comm;

	for (;;) {
		mesh_process_lock(process);
		LIST_FOREACH(listener, &net->setup->listeners, entry) {
			if (listener->net == net)
				break;
		}
		LIST_FOREACH(connect, &net->setup->connects, entry) {
			if (connect->net == net)
				break;
		}
		LIST_FOREACH(comm, &process->comms, entry) {
			if (comm->owner == net)
				break;
		}
		if (connect)
			mesh_connect_free(connect);
		mesh_process_unlock(process);
		/* A listener and a connect own comms, which end with them. */
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
	if (!net)
		return;
	leftovers_close(net);
	mesh_comms_linger_await(net->process);
	mesh_abort_forget(net->process, net);
	pthread_mutex_lock(&setup_mutex);
	if (--net->setup->users == 0)
		setup_end(net->process);
	pthread_mutex_unlock(&setup_mutex);
	free(net);
}

/*
 * At exit() NCCL may have closed comms and left others open. The engine runs until the process
 * ends; a forked child has no engine, and no comms of its own.
 */
__attribute__((destructor)) static void lingering_end(void)
{
	struct mesh_setup *setup = atomic_load(&the_setup);

	if (setup && setup->pid == getpid() && atomic_load(&setup->process.started))
		mesh_comms_linger_await(&setup->process);
	/* Before libfabric's own destructor frees what the thread closes. */
	if (setup && setup->pid == getpid() && stopping)
		pthread_join(stop_thread, NULL);
}

int mesh_net_num_nics(void)
{
	const struct mesh_setup *setup = atomic_load(&the_setup);

	return setup ? setup->process.num_nics : 0;
}

const struct mesh_nic *mesh_net_nic(int dev)
{
	const struct mesh_setup *setup = atomic_load(&the_setup);

	if (!setup || dev < 0 || dev >= setup->process.num_nics)
		return NULL;
	return &setup->process.table.nics[dev];
}
