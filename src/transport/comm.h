/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - one NCCL connection: a set of paths to the peer, and the requests on it.
 *
 * Lock: comm->lock covers all that is not marked otherwise. Order: process, domain, comm, transmit.
 * The poller calls in with domain->lock held; NCCL's threads call in with nothing held.
 */
#ifndef MESH_TRANSPORT_COMM_H
#define MESH_TRANSPORT_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "transport/path.h"
#include "wire/frame.h"
#include "wire/message.h"

/* Requests that one comm can have outstanding: NCCL_NET_MAX_REQUESTS (nccl_net.h). */
#define MESH_COMM_REQUESTS 32
/* Largest message in bytes: NCCL_MAX_NET_SIZE (collectives.h), 2^30. */
#define MESH_MESSAGE_MAX ((size_t)1 << 30)

/*
 * RMA writes of one comm that may be in flight; more wait for a completion. Memory for them is
 * allocated for so many at a time.
 */
#define MESH_COMM_WRITES 64
#define MESH_WRITES_BLOCK 8
/*
 * Small messages that may arrive before their receive is posted. At least NCCL_STEPS (8,
 * device.h), so that a receiver that is one round late stalls no sender.
 */
#define MESH_EAGER_WINDOW 16
/* Paths that join late, at most: each costs 320 bytes of each comm, and more of one that sends. */
#define MESH_LATE_PATHS 2

struct mesh_buffer;
struct mesh_handle;

enum mesh_request_state {
	MESH_REQUEST_FREE,
	MESH_REQUEST_WAITING, /* nothing of it is posted, or has arrived, yet */
	MESH_REQUEST_MOVING,  /* some of it is posted, or has arrived */
	MESH_REQUEST_DONE,    /* test() reports it */
	MESH_REQUEST_STATES
};

/* What only a request of a sending comm has. */
struct mesh_request_send {
	uint32_t next_segment;	/* to post */
	uint32_t unfinished;	/* operations posted and not complete */
	uint32_t num_segments;	/* with segment_bytes */
	uint32_t segment_bytes; /* of each segment but the last; fixed when the first is cut */
	uint32_t num_lost;	/* segments in doubt: they may not have arrived */
	bool posted : 1;	/* everything is posted */
	bool settled : 1; /* HAVE has come: they have not arrived, and are to be posted again */
	bool announce_again : 1; /* once it is complete: a path was lost meanwhile */
	bool kept : 1;		 /* what announces its writes (mesh_announcements_keep()) */
	bool unacked : 1;	 /* its only write waits for the receiver's word (resend.h) */
	bool flagged : 1;	 /* its lines have a flag that a GPU polls (data.h) */
};

/* Which segments of a message may not have arrived. */
struct mesh_lost {
	uint64_t bits[MESH_SEGMENTS_MAX / 64];
};

/* Which segments of a message have arrived. A message with only one needs no marks. */
struct mesh_marks {
	uint64_t arrived[MESH_SEGMENTS_MAX / 64]; /* one bit a segment: none counts twice */
	uint64_t flag;				  /* that WRITTEN named; or 0 */
	uint32_t arrived_on[MESH_PATHS_MAX];	  /* how many, by path: only counted */
};

enum mesh_grant_state {
	MESH_GRANT_NONE,
	MESH_GRANT_AGAIN, /* sent, but the peer may lack it: it goes again */
	MESH_GRANT_SENT,  /* the peer has it, as far as we know, and may write */
};

/* What only a request of a receiving comm has. */
struct mesh_request_receive {
	uint8_t grant;	       /* enum mesh_grant_state */
	uint32_t num_segments; /* 0 until known */
	uint32_t num_arrived;
	struct mesh_marks *marks; /* while MOVING */
};

struct mesh_request {
	struct mesh_comm *comm; /* set when the request is taken */
	/* Set under comm->lock, except from DONE to FREE: only test() does that, without a lock. */
	_Atomic(enum mesh_request_state) state;
	uint32_t seq; /* position on the comm, from 0 */
	char *data;
	size_t size; /* send: bytes to send; receive: room, then (MOVING) bytes of the message */
	struct mesh_registration *registration;
	union { /* by comm->sending */
		struct mesh_request_send send;
		struct mesh_request_receive receive;
	};
};
_Static_assert(sizeof(struct mesh_request) <= 64,
	       "each comm has MESH_COMM_REQUESTS of them, idle ones too");

struct mesh_registration {
	LIST_ENTRY(mesh_registration) entry; /* comm->registrations; comm->lock */
	void *data;
	size_t size; /* bytes */
	/*
	 * One for each path's domain, or NULL. NCCL's thread makes those of the first paths. Of one
	 * that is down it may be for a NIC that the path did not move to; then comm->lock.
	 */
	struct mesh_mr *mrs[MESH_PATHS_MAX];
};

/* The grant of one receive, as the sender keeps it. */
struct mesh_held_grant {
	uint32_t valid : 1;
	uint32_t lives : 31; /* of paths that have their target in it: mesh_frame_accept */
	uint32_t seq;
	struct mesh_grant grant;
};

/* One RMA write on its way. */
struct mesh_segment {
	struct mesh_op op;
	struct mesh_request *request;
	struct mesh_path *path;
	struct mesh_buffer *behind; /* still to be sent when the write has completed; or NULL */
	struct mesh_buffer *copy;   /* what it writes, without flags; NULL: the message itself */
	uint32_t index;		    /* in its message */
	bool delivery;		    /* its completion means that the peer has it */
	size_t size;		    /* bytes that count as in flight on the path; 0: no longer */
	uint64_t posted_ns;	    /* when */
	struct mesh_segment *next_free;
};

/* A small message that arrived before its receive was posted. */
struct mesh_early {
	uint32_t seq;
	uint32_t size; /* bytes */
	uint8_t *data; /* in receive.early_data; NULL: there is none */
};

/*
 * Small messages that a sender keeps a copy of. A message counts as sent
 * when a socket has it, and may be lost with that. Of those before peer_posted -
 * MESH_COMM_REQUESTS the receiver had all before it could post so many; and none is sent from
 * peer_posted + MESH_EAGER_WINDOW on. The same holds for the announcements (WRITTEN) of a large
 * message, whose writes have arrived.
 */
#define MESH_COPIES (2 * MESH_COMM_REQUESTS)
_Static_assert(MESH_COPIES >= MESH_COMM_REQUESTS + MESH_EAGER_WINDOW, "each has a slot");

/* Bytes of a message that lie beside what is kept of it: 256 with that. */
#define MESH_COPY_NEAR 247

enum mesh_copy_kind {
	MESH_COPY_NONE, /* no message had this place yet */
	MESH_COPY_DATA,
	MESH_COPY_WRITTEN, /* near: struct mesh_message_written of the last segment */
};

struct mesh_copy {
	uint32_t seq;
	uint32_t size; /* bytes of the message */
	uint8_t kind;  /* enum mesh_copy_kind */
	uint8_t near[MESH_COPY_NEAR];
};
_Static_assert(sizeof(struct mesh_copy) == 256, "whole lines of the processor's cache");

/* What only a sending comm has. */
struct mesh_send_side {
	uint32_t peer_posted;	/* receives that the peer has reported as posted */
	uint32_t first_pending; /* the oldest request that is not fully posted */
	uint32_t eager_run;	/* small messages sent since the last WANT */
	uint32_t writes;	/* started so far */
	uint32_t acked;		/* messages from the first that the receiver has, as it said */
	uint32_t num_unacked;	/* requests that wait for it to say so */
	/* mesh_comm_held_grant() finds one; allocated for the first that comes; owned. */
	void *grants;
	uint32_t lives; /* that the receiver has: a grant of fewer is ignored, and sent again */
	struct mesh_segment *blocks[MESH_COMM_WRITES / MESH_WRITES_BLOCK]; /* owned */
	int num_blocks;
	struct mesh_segment *free_segments;
	uint32_t round;	  /* paths lost so far; then the provider acknowledges all writes */
	uint32_t resumed; /* the round of the last RESUME */
	/* MESH_COPIES, mesh_copy_of() finds one; allocated for the first message; owned. */
	struct mesh_copy *copies;
	/* Places of eager_limit bytes for what is not near; allocated for the first; owned. */
	uint8_t *far_copies;
	bool resending; /* copies are being sent again: from resend_next on */
	uint32_t resend_next;
	uint32_t resend_segment; /* of that message: the announcement to be sent next */
	/* Of each request one bit a segment: num_lost are set; from the first large one; owned. */
	struct mesh_lost *lost;
	/* The listener to which NCCL has connected; constant. */
	uint32_t listen_id;
	uint8_t handle[MESH_HANDLE_BYTES];
};

/*
 * While a request waits, the peer's engine is asked (ASK) this often. It is normal: NCCL posts some
 * requests minutes early, and to ask is cheap.
 */
#define MESH_ASK_MS 3000
/* A process that has not done for longer what it does several times a second did not run. */
#define MESH_AWAY_MS 1000

/* The oldest request that is not complete, and what the peer asks for (stall.c). */
struct mesh_stall {
	uint32_t seq;
	uint64_t since_ms; /* since when it is the oldest; 0: none is watched */
	uint64_t asked_ms; /* when ASK was last sent; at first since_ms */
	/* The message that the peer's last ASK named, and when the first ASK about it arrived; 0:
	 * none. */
	uint32_t peer_asked_seq;
	uint64_t peer_asked_ms;
	uint64_t peer_has_ms; /* since when its kernel has all of that message; 0: it has not */
	uint64_t lacked_ms;   /* sending: when it asked last for what counts as sent; 0: never */
};

/* The latest RESUME, whose answer waits until nothing arrives over its paths (questions.c). */
struct mesh_question {
	struct mesh_timer timer;
	const struct mesh_path *over; /* it came over this path; NULL: none waits */
	struct mesh_frame_resume resume;
};

/* What only a receiving comm has. */
struct mesh_receive_side {
	uint32_t reported;   /* posted receives that were reported to the peer */
	uint32_t next_grant; /* the oldest request that may still need a grant */
	uint32_t wanted;     /* the peer waits for the grants of all receives before this one */
	uint32_t writes;     /* that have arrived so far */
	uint32_t granted;    /* receives that are granted and not complete */
	uint32_t lives;	     /* of paths that were accepted, behind the first ones */
	uint32_t acked;	     /* messages, from the first, that are complete, as we have said */
	uint32_t ack_wanted; /* the sender waits until so many are; acked: for nothing */
	uint64_t ack_ns;     /* since when there is more to say; 0: there is not */
	size_t last_size;    /* of the last message that was written, bytes */
	uint32_t eager_run;  /* small messages since the last large one */
	struct mesh_early early[MESH_EAGER_WINDOW];
	struct mesh_marks
		*marks;	     /* of each request; allocated for the first message that needs them */
	uint8_t *early_data; /* allocated when the first one comes; owned */
	struct mesh_question question MESH_GUARDED_BY(process);
};

/*
 * One end of a comm, ours or the peer's, as far as the other end knows.
 *
 *	OPEN ---- CLOSE ----> CLOSING ---- CLOSED ----> CLOSED
 *	OPEN ------------------------------ CLOSED ----> CLOSED	  nothing was in flight
 *
 * A CLOSED that reports unclean writes leads to UNCLEAN, and so does the loss of the peer, from
 * each state. No step leads back, whatever a peer sends.
 */
enum mesh_end {
	MESH_END_OPEN,	  /* it may start operations */
	MESH_END_CLOSING, /* it starts nothing new; the engines poll for what is in flight */
	/*
	 * Nothing of it is in flight. A sender has reported how much it sent; a receiver has
	 * received all of that, or no longer needs it.
	 */
	MESH_END_CLOSED,
	MESH_END_UNCLEAN, /* it has ended, but its writes may still arrive */
	MESH_END_STATES
};

/* Whether NCCL has a comm. */
enum mesh_comm_use {
	MESH_COMM_USED,	     /* it does */
	MESH_COMM_OPENING,   /* sending: it has an opener, and the peer's NCCL cannot have it */
	MESH_COMM_ACCEPTED,  /* the same with all its paths accepted: the peer's NCCL may have it */
	MESH_COMM_WAITS,     /* receiving: for accept() */
	MESH_COMM_ABANDONED, /* the same, but the peer has ended it while no path led there */
};

/* What the peer has said of its end, before that was over for us. */
enum mesh_said {
	MESH_SAID_NOTHING,
	MESH_SAID_CLOSE,
	MESH_SAID_CLOSED,	  /* with its counts */
	MESH_SAID_CLOSED_UNACKED, /* the same of a sender whose writes are to be counted */
};

struct mesh_comm {
	LIST_ENTRY(mesh_comm) entry; /* process->comms, or lingering; process->lock */
	struct mesh_timer timer;     /* while its peer waits for our end, or it lingers (close.c) */
	uint64_t closed_ms MESH_GUARDED_BY(process); /* since when it lingers; else 0 */
	struct mesh_lock lock;
	struct mesh_process *process;
	const void *owner;		       /* the mesh_net that closes it; constant */
	void *opener MESH_GUARDED_BY(process); /* the mesh_connect that makes it; else NULL */
	/* Where src/setup/seeker.c points to the comm: NULL is put there when it is freed. */
	struct mesh_comm **seeker MESH_GUARDED_BY(process);
	enum mesh_comm_use use MESH_GUARDED_BY(process);
	bool sending; /* constant: isend, or else irecv */
	/* Of each message: mesh_message_sent(); constant. */
	void (*message_sent)(struct mesh_buffer *buffer, int error);
	/*
	 * Messages may be written over a path that does not keep the order of a write, also if none
	 * that is up is one: it was made with such a path, or over relays. Then constant.
	 */
	bool reorders;
	bool may_rdma; /* sending: NICs of both nodes have RDMA; constant */
	/* A further life of a path was asked for: NCCL has the sending end. */
	bool rerouted MESH_GUARDED_BY(process);
	char peer_name[MESH_NODE_NAME_MAX]; /* constant */
	/* Bytes, of one that sends: the smallest of both ends of the paths that it is made with. */
	size_t eager_limit;
	uint64_t key; /* the same at both ends; constant */
	/*
	 * Room for max_paths, behind the comm in memory. Their number only grows, under
	 * process->lock and comm->lock; behind wanted_paths by those that join late.
	 */
	struct mesh_path *paths;
	_Atomic(int) num_paths;
	uint32_t rotation; /* counts choices: equally good paths take turns */
	/* Those of them that are up, and their paces; comm->lock. */
	struct mesh_path *up[MESH_PATHS_MAX];
	const struct mesh_pace *paces[MESH_PATHS_MAX];
	int num_up;
	size_t segment_bytes; /* of a usual large write, with these paths */
	size_t segment_max;   /* bytes of the largest write that each of them takes; whole lines */
	int wanted_paths;     /* the comm is complete with this many */
	int max_paths;	      /* constant */
	uint64_t cookie MESH_GUARDED_BY(process); /* of the listener at the receiving end */
	/* Since when accept() doubts whether its connector had it; 0: it does not. */
	uint64_t doubted_ms MESH_GUARDED_BY(process);
	/* Since when no path leads to the peer, or its process has answered; 0: one does. */
	uint64_t routeless_ms MESH_GUARDED_BY(process);
	/* What paths without an entry in the process's page count. */
	struct mesh_counters unlisted MESH_GUARDED_BY(comm);
	uint32_t epoch MESH_GUARDED_BY(process);   /* sending: of the latest life asked for */
	uint32_t unfinished MESH_GUARDED_BY(comm); /* our messages and writes in flight */
	_Atomic(int) error;			   /* negative errno; sticky; set under the lock */
	/* Why the peer has ended it, until a WARN reports that; NULL: none is due. A constant. */
	const char *unreported MESH_GUARDED_BY(comm);
	bool closing
		MESH_GUARDED_BY(comm); /* we start nothing new: mesh_comm_quiesce() was called */
	enum mesh_end own_end, peer_end MESH_GUARDED_BY(comm);
	/* A path was lost, and the frame about own_end may have been lost with it. */
	bool end_in_doubt MESH_GUARDED_BY(comm);
	uint64_t peer_end_ms MESH_GUARDED_BY(comm); /* since when peer_end is what it is */
	enum mesh_said peer_said MESH_GUARDED_BY(comm);
	/* Messages that the peer has sent, or received. */
	uint32_t peer_sent MESH_GUARDED_BY(comm);
	uint32_t peer_writes
		MESH_GUARDED_BY(comm); /* receive: writes that it has started, as its CLOSED said */
	uint32_t next_seq MESH_GUARDED_BY(comm); /* of the next request */
	/* No request was open when stall.c looked last, and none came since. Set under the lock. */
	_Atomic(bool) quiet;
	struct mesh_request requests[MESH_COMM_REQUESTS]; /* by seq */
	struct mesh_stall stall MESH_GUARDED_BY(comm);
	LIST_HEAD(, mesh_registration)
	registrations MESH_GUARDED_BY(comm); /* those that NCCL has not ended yet */
	struct mesh_registration *busy MESH_GUARDED_BY(comm); /* an MR of it is being made */
	/* -EINPROGRESS: registration.c has a thread for them; else what it ended with. */
	int move_error MESH_GUARDED_BY(comm);
	/* The NIC that it was for, the path, and when: until that path has moved; NULL: none. */
	const struct mesh_domain *moved MESH_GUARDED_BY(comm);
	uint64_t moved_ms MESH_GUARDED_BY(comm);
	int moved_path MESH_GUARDED_BY(comm);
	union {
		struct mesh_send_side send;
		struct mesh_receive_side receive;
	};
};

MESH_LOCK_FUNCTIONS(comm, mesh_comm, lock)

/** True if the peer of one of its paths is lost. process->lock held. */
MESH_HOLDS(process)
bool mesh_comm_has_lost_path(const struct mesh_comm *comm);

/** True if the path's frames reach the peer now. process->lock held. */
MESH_HOLDS(process)
bool mesh_path_lives(const struct mesh_path *path);

/** True if the comm is not complete: the peer's NCCL cannot have it. process->lock held. */
MESH_HOLDS(process)
static inline bool mesh_comm_is_opening(const struct mesh_comm *comm)
{
	return comm->use == MESH_COMM_OPENING;
}

/** True if no path of the comm leads to its other end now. process->lock held. */
MESH_HOLDS(process)
bool mesh_comm_is_cut(const struct mesh_comm *comm);

/**
 * True for a comm that was closed without an error, although the other end may lack something: a
 * message that counts as sent and may be lost with a link, or the word that all has arrived. It
 * goes on like one in use until the peer has answered. comm->lock held.
 */
MESH_HOLDS(comm)
static inline bool mesh_comm_delivers(const struct mesh_comm *comm)
{
	return comm->closing && !comm->error;
}

/**
 * Iterates over the comms of a process, those that linger included. process->lock held.
 *
 * @previous: what the last call returned; NULL: begins
 *
 * Returns NULL after the last one.
 */
MESH_HOLDS(process)
struct mesh_comm *mesh_comm_next(const struct mesh_process *process,
				 const struct mesh_comm *previous);

/**
 * Ends the comm with @error: every request that is not done fails from now on. Only the first call
 * has an effect. It logs @why unless that is NULL: at WARN, or at INFO if @quiet. comm->lock held.
 */
MESH_HOLDS(comm)
MESH_COLD
void mesh_comm_fail(struct mesh_comm *comm, int error, bool quiet, const char *why);

/**
 * Logs comm->unreported, because NCCL still uses the comm: at WARN, or at INFO if that was done for
 * another comm with this peer a moment ago. Takes domain->lock and comm->lock.
 */
MESH_COLD
void mesh_comm_end_report(struct mesh_comm *comm);

/**
 * The path whose control connection carries the comm's frames now: the first one of the lowest tier
 * that both ends know and whose peer is up. Without one the first, on which nothing is sent.
 * process->lock held.
 */
MESH_HOLDS(process)
const struct mesh_path *mesh_comm_frame_path(const struct mesh_comm *comm);

/**
 * Sends a frame for a comm (wire/frame.h) to the comm's peer, if it has a path. process->lock held.
 *
 * @frame: its header and to_comm are written
 */
MESH_HOLDS(process)
void mesh_comm_frame_send(const struct mesh_comm *comm, struct mesh_frame *frame,
			  enum mesh_frame_type type);

static inline bool mesh_end_is_over(enum mesh_end end)
{
	return end >= MESH_END_CLOSED;
}

/** True if the peer's end has ended: the peer reported it, or is lost. comm->lock held. */
MESH_HOLDS(comm)
static inline bool mesh_comm_peer_is_over(const struct mesh_comm *comm)
{
	return mesh_end_is_over(comm->peer_end);
}

/** True if the peer is closing, and waits until our end is closed. comm->lock held. */
MESH_HOLDS(comm)
static inline bool mesh_comm_peer_asks(const struct mesh_comm *comm)
{
	return comm->peer_end != MESH_END_OPEN && !mesh_end_is_over(comm->own_end);
}

/** Logs one line for the path, or for each path of the comm, in the format that tools read. */
void mesh_path_log(const struct mesh_path *path);
void mesh_comm_paths_log(struct mesh_comm *comm);

static inline struct mesh_request *mesh_comm_request(struct mesh_comm *comm, uint32_t seq)
{
	return &comm->requests[seq % MESH_COMM_REQUESTS];
}

/* Bytes of one grant that a sender holds. Only the targets of so many paths are there. */
static inline size_t mesh_held_grant_bytes(int num_paths)
{
	return offsetof(struct mesh_held_grant, grant) + mesh_grant_size(num_paths);
}

/** The place for the grant of message @seq; NULL: none has come yet. comm->lock held. */
static inline struct mesh_held_grant *mesh_comm_held_grant(struct mesh_comm *comm, uint32_t seq)
{
	size_t offset = seq % MESH_COMM_REQUESTS * mesh_held_grant_bytes(comm->max_paths);

	return comm->send.grants ? (void *)((char *)comm->send.grants + offset) : NULL;
}

/** True from isend or irecv until it is done: its memory is in use. comm->lock held. */
static inline bool mesh_request_is_open(const struct mesh_request *request)
{
	return request->state == MESH_REQUEST_WAITING || request->state == MESH_REQUEST_MOVING;
}

/** True for a and b if a comes before b: sequence numbers wrap. */
static inline bool mesh_seq_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

#endif
