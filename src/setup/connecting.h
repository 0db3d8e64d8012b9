/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connecting.h - a connection attempt, which the engine advances. All with process->lock held.
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
	LIST_ENTRY(mesh_connect) entry; /* setup->connects; all under process->lock */
	struct mesh_timer timer;	/* when the engine, and nobody else, advances it */
	int over_looks;			/* of the engine, since it is DONE or FAILED */
	struct mesh_net *net;
	int dev;     /* NCCL's on this side */
	uint64_t id; /* NCCL's handle buffer carries it between calls */
	enum mesh_connect_state state;
	struct mesh_handle handle;
	struct mesh_path_choice choice;
	/* The current try: candidates whose NICs are all different, which may become paths. */
	struct mesh_path_candidate pairs[MESH_PATHS_MAX];
	struct mesh_dial dials[MESH_PATHS_MAX];
	int num_dials;		      /* 0: no candidate can begin now */
	struct mesh_relay_try *relay; /* tried beside them; owned, or NULL */
	int lanes;		      /* of each pair of this try; 0: not chosen yet */
	int lanes_begun;	      /* of these, beside the first one */
	uint64_t try_ms;	      /* since when these are tried */
	uint64_t up_ms;		      /* since when one of them is up; 0: none is */

	struct mesh_comm *comm; /* from SENT on */
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

/* ---- NCCL's calls (connect.c), and the engine (connect_advance.c) -------------------------- */

/** Ends a connection attempt, and frees it with everything it holds. */
MESH_HOLDS(process)
void mesh_connect_free(struct mesh_connect *connect);

/** Advances it as far as possible now. */
MESH_HOLDS(process)
void mesh_connect_advance(struct mesh_connect *connect, uint64_t now_ms);

/** Gives it up, unless NCCL has its result, and frees what it holds. */
MESH_HOLDS(process)
void mesh_connect_end(struct mesh_connect *connect);

/* ---- what is dialled together (connect_try.c) ---------------------------------------------- */

enum mesh_verdict {
	MESH_VERDICT_WAIT,    /* one may still come up */
	MESH_VERDICT_READY,   /* one is up, and those that may follow had time to */
	MESH_VERDICT_REFUSED, /* each one refuses, and more time will not change it */
	MESH_VERDICT_NEXT,    /* none of this try will be up soon: the next candidates */
};

/**
 * Looks at the dials of the current try, of which there is one, and judges it. Once those are up,
 * adds the lanes of the pairs that need some, and is READY again when they are up, or had time for
 * that. Then the try has only what is up and not much slower than the fastest.
 */
MESH_HOLDS(process)
enum mesh_verdict mesh_connect_judge(struct mesh_connect *connect, uint64_t now_ms);

/** True if relays are to be looked for: nothing is up, and the candidates had their time. */
MESH_HOLDS(process)
bool mesh_connect_relays_are_due(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * Dials the first candidates. Those whose NIC has no carrier wait for it, also if it is open, and
 * those whose domain cannot be opened are tried again.
 *
 * Returns 0; -ENOLINK where each has to wait so: no try has begun; -ENODEV if no candidate is left;
 * -ENOMEM or -ENOSPC.
 */
MESH_HOLDS(process)
int mesh_connect_try_start(struct mesh_connect *connect, uint64_t now_ms);

/** Ends the dials. */
MESH_HOLDS(process)
void mesh_connect_try_end(struct mesh_connect *connect);

/** Tries the next candidates, or the same again if there are no others. The same errors. */
MESH_HOLDS(process)
int mesh_connect_try_next(struct mesh_connect *connect, uint64_t now_ms);

/**
 * The peer that explains best why there is no connection yet: it refused, failed or is silent.
 * NULL: no domain of the try is open.
 */
MESH_HOLDS(process)
const struct mesh_peer *mesh_connect_try_informative(const struct mesh_connect *connect);

/* ---- messages to the user about it (connect_log.c) ------------------------------------------ */

/** Logs that there is no candidate, with every address on both sides. */
MESH_HOLDS(process)
void mesh_connect_log_no_path(const struct mesh_connect *connect);

/** Logs that the connection was given up, and the most informative reason. */
MESH_HOLDS(process)
void mesh_connect_log_timeout(const struct mesh_connect *connect, uint64_t now_ms);

/**
 * Logs once that the connection takes long, with the reason so far, and asks the neighbours: the
 * error names them.
 */
MESH_HOLDS(process)
void mesh_connect_log_slow(struct mesh_connect *connect, uint64_t now_ms);

/** Logs that the candidates have let nothing through, and relays lead there. */
MESH_HOLDS(process)
void mesh_connect_log_relays(const struct mesh_connect *connect, uint64_t now_ms);

/** Logs that there is no room for a connection here: @error, a negative errno. Limited. */
MESH_HOLDS(process)
void mesh_connect_log_full(const struct mesh_connect *connect, int error);

/** Logs that the peer refused a connection. Limited where it has no room. */
MESH_HOLDS(process)
void mesh_connect_log_refused(const struct mesh_peer *peer, enum mesh_refusal refusal);

#endif
