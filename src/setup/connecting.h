/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connecting.h - a connection attempt, which the engine advances (connect_advance.h).
 */
#ifndef MESH_SETUP_CONNECTING_H
#define MESH_SETUP_CONNECTING_H

#include <stdint.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "control/peer_life.h"
#include "nic/path_choice.h"
#include "setup/setup.h"
#include "transport/comm.h"
#include "wire/handle.h"

/*
 * Once a path is up, the others have this time to follow. Before, it is what an address gets that
 * does not answer: then the next candidates are tried, and relays beside them.
 */
#define MESH_SETTLE_MS 500
/* An attempt that takes longer is reported; one without prospects ends. */
#define MESH_CONNECT_SLOW_MS 5000

enum mesh_connect_state {
	MESH_CONNECT_NEW,    /* the engine has not seen it yet */
	MESH_CONNECT_ASKING, /* waiting for neighbours to say which link leads to the node */
	MESH_CONNECT_PEERS,  /* waiting until the dials of this try, or relays, are up */
	MESH_CONNECT_SENT,   /* CONNECT is sent for the latest path, waiting for its ACCEPT */
	/* OPEN is sent for the latest path to a relay, waiting for OPENED; candidates go first. */
	MESH_CONNECT_OPEN_SENT,
	MESH_CONNECT_DONE, /* the comm is ready for NCCL */
	MESH_CONNECT_FAILED,
	MESH_CONNECT_STATES
};

struct mesh_relay_try;

struct mesh_connect {
	LIST_ENTRY(mesh_connect) entry;	   /* setup->connects; all under process->lock */
	LIST_ENTRY(mesh_connect) id_entry; /* setup->connects_by_id */
	struct mesh_timer timer;	   /* when the engine, and nobody else, advances it */
	int over_looks;			   /* of the engine, since it is DONE or FAILED */
	struct mesh_net *net;
	int dev;     /* NCCL's on this side */
	uint64_t id; /* NCCL's handle buffer carries it between calls */
	enum mesh_connect_state state;
	struct mesh_handle handle;
	struct mesh_path_choice choice;
	bool route_asked; /* there is no path: which nodes are between is looked for */
	/* The current try: candidates whose NICs are all different, which may become paths. */
	int first_candidate; /* index into choice */
	int next_candidate;  /* the first one that this try leaves out */
	struct mesh_path_candidate pairs[MESH_PATHS_MAX];
	struct mesh_dial dials[MESH_PATHS_MAX];
	int num_dials;		      /* 0: no candidate can begin now */
	struct mesh_relay_try *relay; /* tried beside them; owned, or NULL */
	uint64_t open_ms;	      /* when the latest OPEN was sent; 0: none was */
	int unopened;	 /* 1 + the NIC of the last candidate that cannot be opened, or 0 */
	int lanes;	 /* of each pair of this try; 0: not chosen yet */
	int lanes_begun; /* of these, beside the first one */
	uint64_t try_ms; /* since when these are tried */
	uint64_t up_ms;	 /* since when one of them is up; 0: none is */

	struct mesh_comm *comm; /* from SENT on */
	int num_accepted;	/* of its paths */
	uint64_t started_ms, deadline_ms;
	uint64_t refused_ms; /* since when every candidate is refused; 0 if one is not */
	bool slow_warned;    /* a WARN reported that it takes long */
	int error;	     /* FAILED: negative errno */
};

/** The engine looks at it in this turn. */
MESH_HOLDS(process)
static inline void mesh_connect_hasten(struct mesh_connect *connect)
{
	mesh_engine_timer_set(&connect->net->process->engine, &connect->timer, mesh_clock_ms());
}

/** Something has happened that attempts may wait for. */
MESH_HOLDS(process)
static inline void mesh_connects_hasten(struct mesh_process *process)
{
	struct mesh_connect *connect;

	mesh_process_assert_locked(process);
	LIST_FOREACH(connect, &mesh_setup_of(process)->connects, entry) {
		if (connect->state < MESH_CONNECT_DONE)
			mesh_connect_hasten(connect);
	}
}

#endif
