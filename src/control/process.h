/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - what this process is in the mesh: settings, ids, NICs, domains, peers, counters.
 *
 * Lock: process->lock covers everything here, in struct mesh_peer and struct mesh_link, and what
 * src/setup keeps, unless noted otherwise. It is the outermost lock; the data path never takes it.
 */
#ifndef MESH_CONTROL_PROCESS_H
#define MESH_CONTROL_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/config.h"
#include "base/lock.h"
#include "base/log.h"
#include "control/engine.h"
#include "fabric/domain.h"
#include "fabric/provider_sockets.h"
#include "nic/addr.h"
#include "nic/nic.h"
#include "nic/user_lists.h"
#include "system/stats_file.h"
#include "wire/protocol.h"
#include "wire/stats.h"

struct mesh_comm;
struct mesh_link;
struct mesh_peer;
struct mesh_peer_events;
struct mesh_rejoin;
struct mesh_relay;

/* What a process does in the mesh. */
enum mesh_process_role {
	MESH_PROCESS_RANK,    /* it runs NCCL */
	MESH_PROCESS_SERVICE, /* `fi_mesh serve --relay`: it only relays */
	/* `fi_mesh check --peer`: it connects over relays only, and relays for none. */
	MESH_PROCESS_GUEST,
	MESH_PROCESS_PROBE, /* the same over one NIC, and over no relay */
};

/* One NIC's control listener. */
struct mesh_control {
	struct mesh_watch watch;
	struct mesh_process *process;
	int dev;
	struct mesh_timer pause; /* ends it, after accept() ran out of file descriptors */
};

/* More than the peers of a large job on one node, so that a bucket has few of them. */
#define MESH_PEER_BUCKETS 1024u

LIST_HEAD(mesh_peer_bucket, mesh_peer);

/* The state of a NIC's domain. */
enum mesh_dev_state {
	MESH_DEV_CLOSED,  /* no connection has needed it yet */
	MESH_DEV_OPENING, /* a thread of openings.c opens it */
	MESH_DEV_OPEN,
	MESH_DEV_FAILED, /* the reason is logged */
};

/*
 * Domains have an index: the first one of a NIC, with its best provider, that of the NIC. A NIC
 * with RDMA has a second one with tcp, for peers that lack RDMA. Behind these main domains come the
 * lanes from 1 on: further ones with tcp, for long lines (src/setup/connect_try.c). Lane 0 is
 * the NIC's main domain with tcp. An index modulo MESH_NICS_MAX is the NIC's.
 */
#define MESH_MAIN_DOMAINS (2 * MESH_NICS_MAX)
#define MESH_DOMAINS_MAX (MESH_MAIN_DOMAINS + (MESH_LANES_MAX - 1) * MESH_NICS_MAX)

static inline int mesh_second_domain(int dev)
{
	return MESH_NICS_MAX + dev;
}

/* The lane of a domain. */
static inline int mesh_domain_lane(int index)
{
	return index < MESH_MAIN_DOMAINS ? 0 : 1 + (index - MESH_MAIN_DOMAINS) / MESH_NICS_MAX;
}

struct mesh_process {
	struct mesh_lock lock;
	/* Set once, then constant for the life of the process. */
	struct mesh_config config;
	struct mesh_rails rails;
	struct mesh_nic_table table;
	int num_nics;	 /* NCCL's devices: table.nics[0 .. num_nics - 1], the first devs below */
	int num_lasting; /* with the management network's, of src/setup/net.c */
	uint64_t node_id;
	uint64_t secret[2];  /* only HELLO carries it */
	uint64_t cookie;     /* mesh_one_way() of it, in our handles */
	uint64_t process_id; /* follows from the cookie; anybody may know it */
	char name[MESH_NODE_NAME_MAX];
	uint64_t tuner_digest; /* struct mesh_tuner_plan; MESH_TUNER_ANY where NCCL does not run */
	enum mesh_process_role role;

	/* From the first listen or connect until the last mesh_net closes. */
	_Atomic(bool) started; /* set last; then any thread may poll without the lock */
	struct mesh_engine engine;
	const struct mesh_peer_events *events; /* constant */
	/*
	 * By dev; those from num_lasting on have joined since (src/setup/nic_watch.c). Domains may
	 * be read without the lock; NULL: not open.
	 */
	_Atomic(int) num_devs;
	const struct mesh_nic *nics[MESH_NICS_MAX];
	enum mesh_provider_id providers[MESH_NICS_MAX]; /* the best one of each */
	bool also_tcp[MESH_NICS_MAX]; /* its second domain, with tcp, opens when it is needed */
	enum mesh_dev_state dev_states[MESH_DOMAINS_MAX];
	/* Another NIC or address would be chosen now: used if no other has a path to the peer. */
	bool dev_reserves[MESH_NICS_MAX];
	/* Set-up's; NULL: no NIC can be drained. */
	const struct mesh_drain_marks *drain_marks MESH_GUARDED_BY(process);
	struct mesh_domain *_Atomic domains[MESH_DOMAINS_MAX];
	uint32_t generations[MESH_DOMAINS_MAX]; /* of their endpoints, as last seen */
	/* Since when it is being opened, is open or has failed. */
	uint64_t opening_ms[MESH_DOMAINS_MAX] MESH_GUARDED_BY(process);
	/* Why each could not be opened last; the thread that opens it has it without the lock. */
	struct mesh_log_last failures[MESH_DOMAINS_MAX];
	/* The NIC had no carrier before or after the domain failed to open last. */
	bool dev_away[MESH_DOMAINS_MAX] MESH_GUARDED_BY(process);
	/* Bit mask of devs: no carrier when mesh_process_carrier_look() was called last. */
	uint32_t nics_away MESH_GUARDED_BY(process);
	/* By dev, without ports; only grows while started. */
	struct mesh_endpoint_addr endpoints[MESH_NICS_MAX];
	int num_endpoints MESH_GUARDED_BY(process);
	struct mesh_control controls[MESH_NICS_MAX]; /* by dev */
	uint16_t control_port MESH_GUARDED_BY(process);

	/* Limits of messages that strangers or a lack of descriptors can cause without end. */
	struct {
		struct mesh_log_limit accept_fails;
		struct mesh_log_limit strangers; /* ended before NCCL had a comm with them */
		struct mesh_log_limit mtu;
		struct mesh_log_limit full;	  /* no memory or no id for a connection */
		struct mesh_log_limit abandoned;  /* ended by the peer while no path led here */
		struct mesh_log_limit dead_links; /* and their connections go over relays */
		struct mesh_log_limit circuits;	  /* broken behind a relay */
		struct mesh_log_limit relayed;	  /* broken in this relay */
		struct mesh_log_limit rerouted;	  /* they have another route */
		struct mesh_log_limit routeless;  /* they have waited for one in vain */
	} limits;

	LIST_HEAD(, mesh_peer) peers MESH_GUARDED_BY(process);
	/* Those whose process is known. */
	struct mesh_peer_bucket peers_by_process[MESH_PEER_BUCKETS] MESH_GUARDED_BY(process);
	struct mesh_socket_table sockets MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_link) links MESH_GUARDED_BY(process); /* of the peers that are up */
	LIST_HEAD(, mesh_comm) comms MESH_GUARDED_BY(process); /* all that src/transport has open */
	LIST_HEAD(, mesh_comm) lingering MESH_GUARDED_BY(process); /* NCCL has closed them */
	_Atomic(bool) lingers; /* that list may not be empty: set and reset with lock held */
	/* Whose comms NCCL aborts, and since when; 0: of nobody's (src/transport/close.c). */
	const void *abort_owner MESH_GUARDED_BY(process);
	uint64_t abort_ms MESH_GUARDED_BY(process);
	LIST_HEAD(, mesh_rejoin) rejoins MESH_GUARDED_BY(process); /* src/transport/rejoin.c */
	struct mesh_relay *relay MESH_GUARDED_BY(process); /* src/relay; NULL: not started */
	_Atomic(bool) late_nics; /* comms may get paths over NICs that have joined */
	_Atomic(bool) routeless; /* a comm has lost a route: src/setup/seeker.c */
	_Atomic(bool) recover;	 /* a comm has lost something: src/transport/recovery.c */
	/* For `fi_mesh watch`; counters is never NULL, and points into the page or to our own. */
	struct mesh_stats_file stats;
	struct mesh_process_counters *counters;
	struct mesh_process_counters own_counters;
};

MESH_LOCK_FUNCTIONS(process, mesh_process, lock)

/**
 * Lists our NICs for handles and HELLO: those that listen for peers. They have port 0 as long as
 * their domain is not open. process->lock held.
 *
 * @endpoints: room for MESH_NICS_MAX
 *
 * Returns how many.
 */
int mesh_process_offers(const struct mesh_process *process, struct mesh_endpoint_addr *endpoints);

/** Polls each domain that no other thread is polling. No lock held, or process->lock. */
void mesh_process_poll(struct mesh_process *process);

/** Sets a NIC's best provider, and whether tcp may serve it as well. */
void mesh_process_provider_set(struct mesh_process *process, int dev, enum mesh_provider_id id);

/** The index of the domain of a NIC with this provider; -1 if the NIC has no such domain. */
int mesh_process_domain_index(const struct mesh_process *process, int dev,
			      enum mesh_provider_id provider);

/**
 * The same for one of its lanes, below MESH_LANES_MAX: -1 also if it is not 0 and @provider is not
 * tcp.
 */
int mesh_process_lane_index(const struct mesh_process *process, int dev,
			    enum mesh_provider_id provider, int lane);

/** The index of a domain of the process, which is open. */
int mesh_process_index_of(const struct mesh_process *process, const struct mesh_domain *domain);

/**
 * Looks whether NIC @dev has a carrier, and keeps the answer in process->nics_away. This asks the
 * kernel, and waits for nothing. process->lock held.
 */
MESH_HOLDS(process)
bool mesh_process_carrier_look(struct mesh_process *process, int dev);

/**
 * True if a user drains this NIC (`fi_mesh drain`): new paths and circuits use it only if there is
 * no other way. process->lock held.
 */
MESH_HOLDS(process)
bool mesh_process_is_drained(const struct mesh_process *process, int dev);

/**
 * Bytes of the largest message that may come as DATA over a domain with this provider, whichever
 * others there are: a NIC may join with another provider than those before it.
 */
size_t mesh_process_eager_limit(const struct mesh_process *process, enum mesh_provider_id provider);

/** Opens and closes the control listeners of all NICs: controls.c. process->lock held. */
MESH_HOLDS(process)
int mesh_controls_open(struct mesh_process *process);
void mesh_controls_close(struct mesh_process *process);

/**
 * Opens the control listener of one more NIC, on the same port as the others; its domain need not
 * be open. process->lock held.
 *
 * Returns 0 or a negative errno: -EADDRINUSE if another process has the port on that address.
 */
MESH_HOLDS(process)
int mesh_control_open(struct mesh_process *process, int dev);

/** Writes "10.1.0.1/24 (ab0), ..." of endpoints into @text of @size bytes; returns @text. */
const char *mesh_endpoints_text(const struct mesh_endpoint_addr *endpoints, int num_endpoints,
				const struct mesh_process *process, char *text, size_t size);

#endif
