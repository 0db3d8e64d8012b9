/* SPDX-License-Identifier: Apache-2.0 */
/* frame.h - frames on the control connection: they open it, and open and close its comms. */
#ifndef MESH_WIRE_FRAME_H
#define MESH_WIRE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/version.h"
#include "nic/addr.h"
#include "wire/handle.h"
#include "wire/message.h"
#include "wire/protocol.h"

enum mesh_frame_type {
	MESH_FRAME_HELLO = 1, /* first in each direction: the sender and its endpoint's name */
	MESH_FRAME_REFUSE,    /* HELLO or CONNECT is refused, with the reason */
	MESH_FRAME_CONNECT,   /* connector: open a comm, or a path of it; a path's next life */
	MESH_FRAME_ACCEPT,    /* listener: the path is accepted; carries the path's id */
	MESH_FRAME_CLOSE,     /* the sender's end of this comm closes, or is closed */
	MESH_FRAME_ASK,	      /* either end: this message has been pending for long */
	MESH_FRAME_PORT,      /* connector: the TCP port that its provider connected from */
	MESH_FRAME_WITHDRAW,  /* connector: it drops a comm that its NCCL never had, or gives up */
	MESH_FRAME_RESUME,    /* sending end: these lives are over; what do you have? */
	MESH_FRAME_HAVE,      /* receiving end: the answer */
	MESH_FRAME_OPEN,      /* towards the listener: open a circuit through this relay */
	MESH_FRAME_OPENED,    /* relay: the answer, once the listener has accepted */
	MESH_FRAME_CIRCUIT,   /* an end or a relay of a circuit: it has ended, or is broken */
	MESH_FRAME_NICS,      /* either end: other NICs than in its HELLO, or one is drained */
	MESH_FRAME_TYPES
};

enum mesh_refusal {
	MESH_REFUSAL_VERSION = 1,   /* another protocol version */
	MESH_REFUSAL_PROVIDER = 2,  /* another libfabric provider on this link */
	MESH_REFUSAL_COOKIE = 3,    /* no such listener, or not its cookie */
	MESH_REFUSAL_RESOURCES = 4, /* out of memory or comm ids, or its queue is full */
	MESH_REFUSAL_TUNER = 9,	    /* HELLO: another tuner setting or plan */
	MESH_REFUSAL_ROUTE = 12,    /* HELLO: the route back leaves by another NIC */
	/* About a connected peer: the sender of the frame has given it up. */
	MESH_REFUSAL_NO_ANSWER = 5, /* it has not answered for too long */
	MESH_REFUSAL_NO_DATA = 6,   /* large frames to it are lost */
	MESH_REFUSAL_NO_WRITES = 7, /* its NIC does not answer RDMA writes */
	MESH_REFUSAL_BROKEN = 8,    /* a connection on this link broke; the process lives */
	MESH_REFUSAL_ENDED = 11,    /* CONNECT: the comm has ended here */
	/* OPEN: the relay forwards nothing for this job; has no cable to the next node of the
	 * route; has no memory for another circuit; finds the route too long, or itself in it. */
	MESH_REFUSAL_RELAY_JOB = 13,
	MESH_REFUSAL_RELAY_LINK = 14,
	MESH_REFUSAL_RELAY_FULL = 15,
	MESH_REFUSAL_RELAY_ROUTE = 16,
};

/** The refusal in words. Never NULL. */
const char *mesh_refusal_text(enum mesh_refusal refusal);

#define MESH_FRAME_MAGIC 0x4c54434du /* "MCTL" */

/* The same in all protocol versions. */
struct mesh_frame_header {
	uint32_t magic;
	uint8_t version;
	uint8_t type;	 /* enum mesh_frame_type */
	uint16_t length; /* bytes behind this header */
};
_Static_assert(sizeof(struct mesh_frame_header) == 8, "wire format");

/* Unit of a NIC's speed on the wire, in Mbit/s: 16 bits reach beyond 6 Tbit/s. */
#define MESH_WIRE_SPEED_MBPS 100

/* One mesh NIC in a HELLO. */
struct mesh_wire_nic {
	uint8_t family; /* 4 or 6 */
	uint8_t prefix_len;
	uint8_t nic;
	uint8_t provider; /* enum mesh_provider_id, and the bits below */
	uint16_t port;
	uint16_t speed; /* in units of MESH_WIRE_SPEED_MBPS, rounded up; 0 where unknown */
	uint8_t addr[16];
};
_Static_assert(sizeof(struct mesh_wire_nic) == 24, "wire format");

/* In its provider: struct mesh_endpoint_addr's members of these names; and a user drains it. */
#define MESH_WIRE_NIC_RESERVE 0x80u
#define MESH_WIRE_NIC_ALSO_TCP 0x40u
#define MESH_WIRE_NIC_DRAINED 0x20u
#define MESH_WIRE_NIC_PROVIDER 0x1fu

/* In HELLO, of a process that only relays: it fits every digest. */
#define MESH_TUNER_ANY UINT64_MAX

/*
 * Each protocol version begins with the header above and, in a HELLO, with these two texts, so that
 * versions that share nothing else can still refuse each other by name. They end in a zero byte.
 * From MESH_DIALLED_VERSION_MIN on the cookie and the listener's id keep their places as well, so
 * that accept() learns that its connector is refused.
 */
struct mesh_frame_hello {
	char version[MESH_VERSION_MAX]; /* of the plugin: mesh_version() */
	char node_name[MESH_NODE_NAME_MAX];
	uint64_t node_id;
	uint64_t process_id; /* tells processes of a node apart; it follows from a cookie */
	/*
	 * Of the process that is dialled: its handles have it. 0 in the answer. For a relay, or a
	 * link that a receiving end has lost: its process_id.
	 */
	uint64_t cookie;
	uint32_t listen_id; /* for a lost link 0, for a relay MESH_LISTEN_RELAY */
	uint32_t peer_id;   /* a GREET to the sender carries these two */
	uint32_t peer_token;
	uint8_t provider; /* enum mesh_provider_id of this link */
	uint8_t nic;	  /* the sender's NIC on this link */
	uint8_t num_nics;
	uint8_t name_len;			       /* bytes used of endpoint_name */
	uint8_t endpoint_name[MESH_ENDPOINT_NAME_MAX]; /* what fi_getname returned */
	uint32_t eager_limit; /* bytes of the largest message that may come as DATA on this link */
	uint32_t mtu;	      /* of the sender's NIC on this link, in bytes; 0 where unknown */
	uint64_t tuner;	      /* digest of NCCL_MESH_TUNER and NCCL_MESH_PLAN; 0: no effect; _ANY */
	uint16_t control_port; /* TCP, of the sender, on each of its NICs */
	uint8_t routed;	       /* 1: this link is a routed path; 0: the two NICs share a subnet */
	uint8_t lane;	       /* on tcp: which of the endpoints of either NIC; 0: the first */
	uint8_t reserved[4];   /* 0 */
	char site[MESH_SITE_NAME_MAX]; /* of the sender's node; "" where none is set */
	/* From which cookie and process_id follow: proves that it has them. 0 in the answer. */
	uint64_t secret[2];
	struct mesh_wire_nic nics[MESH_NICS_MAX]; /* num_nics of them are sent */
};
#define MESH_HELLO_FROZEN_BYTES offsetof(struct mesh_frame_hello, node_id)
_Static_assert(offsetof(struct mesh_frame_hello, node_name) == 24, "frozen");
_Static_assert(MESH_HELLO_FROZEN_BYTES == 88, "frozen");
#define MESH_HELLO_LISTENER_BYTES offsetof(struct mesh_frame_hello, peer_id)
_Static_assert(offsetof(struct mesh_frame_hello, cookie) == 104, "frozen from version 11 on");
_Static_assert(offsetof(struct mesh_frame_hello, listen_id) == 112, "frozen from version 11 on");
_Static_assert(offsetof(struct mesh_frame_hello, provider) == 124, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, endpoint_name) == 128, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, eager_limit) == 192, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, tuner) == 200, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, control_port) == 208, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, routed) == 210, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, lane) == 211, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, site) == 216, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, secret) == 232, "wire format");
_Static_assert(offsetof(struct mesh_frame_hello, nics) == 248, "wire format");

struct mesh_frame_refuse {
	uint32_t refusal; /* enum mesh_refusal */
	uint32_t comm;	  /* the CONNECT's comm, or 0 for a HELLO */
	/* Version or provider id of the sender, or the link that it gave up (0: this link). */
	uint32_t detail;
	/* Of another link: the id in the sender's HELLO there; a link that is back has another. */
	uint32_t peer_id;
};
_Static_assert(offsetof(struct mesh_frame_refuse, peer_id) == 12, "wire format");
_Static_assert(sizeof(struct mesh_frame_refuse) == 16, "wire format");

/* A link between two processes, by their NICs' numbers and its lane; never 0. */
static inline uint32_t mesh_link_name(uint8_t refusers_nic, uint8_t other_nic, uint8_t lane)
{
	return 1u << 24 | (uint32_t)lane << 16 | (uint32_t)refusers_nic << 8 | other_nic;
}

/*
 * CONNECT: one for each path that the comm begins with, over that path's control connection, in
 * order. Later one for each further life of a path, over the control connection of that life.
 */
struct mesh_frame_connect {
	uint64_t cookie;      /* of the listener; 0: it @asks */
	uint64_t comm_key;    /* random, the same on all paths of the comm */
	uint32_t listen_id;   /* of the same listener; 0: as above */
	uint32_t comm;	      /* the sender's comm id on this path */
	uint32_t token;	      /* the sender's token: each message to this comm carries it */
	uint8_t path;	      /* index of this path, from 0 */
	uint8_t num_paths;    /* the comm is whole when so many have connected */
	uint8_t asks;	      /* 1: a receiving end only asks whether the comm lives; else 0 */
	uint8_t reserved_too; /* 0 */
	uint32_t epoch;	      /* as in OPEN */
	uint32_t reserved;    /* 0 */
	/* The connecting node; of a relay: the relays, else "". */
	char origin[MESH_NODE_NAME_MAX];
	char via[MESH_VIA_MAX];
};
_Static_assert(offsetof(struct mesh_frame_connect, path) == 28, "wire format");
_Static_assert(offsetof(struct mesh_frame_connect, asks) == 30, "wire format");
_Static_assert(offsetof(struct mesh_frame_connect, epoch) == 32, "wire format");
_Static_assert(offsetof(struct mesh_frame_connect, via) == 104, "wire format");
_Static_assert(sizeof(struct mesh_frame_connect) == 232, "wire format");

/*
 * WITHDRAW differs from CLOSE: the connector's NCCL never received this comm, so the listener's
 * NCCL must not receive it. It travels on the comm's first path, after its CONNECT.
 */
struct mesh_frame_withdraw {
	uint64_t cookie;    /* of the listener */
	uint64_t comm_key;  /* of the comm; 0 if there is none yet */
	uint32_t listen_id; /* of the same listener */
	uint32_t final;	    /* 1: the connector has given up; 0: it tries again */
};
_Static_assert(offsetof(struct mesh_frame_withdraw, listen_id) == 16, "wire format");
_Static_assert(sizeof(struct mesh_frame_withdraw) == 24, "wire format");

/*
 * The frames for a comm may travel over any of its paths, except ACCEPT, which travels over the
 * path that it is about. Each begins with the id that the receiver of the frame has given to that
 * path.
 */
struct mesh_frame_accept {
	uint32_t to_comm; /* the id that CONNECT carried */
	uint32_t comm;	  /* the sender's comm id on this path */
	uint32_t token;	  /* the sender's token: each message to this comm carries it */
	uint32_t lives;	  /* of paths that the sender has accepted, behind the first ones */
};
_Static_assert(sizeof(struct mesh_frame_accept) == 16, "wire format");

/*
 * While an end is not closed yet the other one starts nothing new, and polls. The counts are those
 * of a sending comm. A receiving comm sends in their place how many messages are complete, from the
 * first on, and zeros.
 */
struct mesh_frame_close {
	uint32_t to_comm;
	uint32_t closed;  /* 1: it has nothing in flight; 0: it may have, and the rest is 0 */
	uint32_t sent;	  /* messages */
	uint32_t writes;  /* RMA writes that were started */
	uint32_t unclean; /* 1: some writes may still arrive; else 0 */
	uint32_t unacked; /* 1: some writes may be on their way, and arrive; else 0 */
};
_Static_assert(offsetof(struct mesh_frame_close, sent) == 8, "wire format");
_Static_assert(sizeof(struct mesh_frame_close) == 24, "wire format");

struct mesh_frame_ask {
	uint32_t to_comm;
	uint32_t seq;	/* of the message */
	uint32_t lacks; /* 1: the sender waits for something of the other end; else 0 */
};
_Static_assert(sizeof(struct mesh_frame_ask) == 12, "wire format");

/* PORT: for the peer, not for a comm. */
struct mesh_frame_port {
	uint16_t port; /* TCP port of the sender's provider; 0 is ignored */
	uint16_t reserved[3];
};
_Static_assert(sizeof(struct mesh_frame_port) == 8, "wire format");

/*
 * RESUME: the sending end has stopped its paths in @dead, has nothing in flight there, and asks for
 * HAVE about @count messages. It travels over another path.
 */
struct mesh_frame_resume {
	uint32_t to_comm;
	uint32_t seq;	/* of the first message */
	uint32_t round; /* counts the sender's lost paths; HAVE repeats it */
	uint16_t dead;	/* bits: paths, by their index */
	uint16_t count;
	uint32_t epochs[MESH_PATHS_MAX]; /* of those paths: the lives up to this one are over */
};
_Static_assert(offsetof(struct mesh_frame_resume, epochs) == 16, "wire format");
_Static_assert(sizeof(struct mesh_frame_resume) == 48, "wire format");

/* HAVE: nothing more arrives over the dead paths, and this has arrived. */
struct mesh_frame_have {
	uint32_t to_comm;
	uint32_t seq;
	uint32_t round;
	uint32_t complete;			  /* 1: all of the message; then no bit counts */
	uint64_t arrived[MESH_SEGMENTS_MAX / 64]; /* one bit a segment */
};
_Static_assert(offsetof(struct mesh_frame_have, arrived) == 16, "wire format");
_Static_assert(sizeof(struct mesh_frame_have) == 144, "wire format");

/*
 * OPEN: the sender is a node that connects, or a relay that forwards. The addressed relay goes on
 * to the next node of the route, the last one to the listener, with CONNECT. REFUSE, with the
 * sender's id, or OPENED answers.
 */
struct mesh_frame_open {
	uint8_t handle[MESH_HANDLE_BYTES]; /* the listener's, as NCCL has brought it */
	uint64_t comm_key;		   /* as in CONNECT, and so are the next four */
	uint32_t comm;
	uint32_t token;
	uint8_t path;
	uint8_t num_paths;
	uint8_t at;	     /* index in route of the addressed relay */
	uint8_t num_relays;  /* in route */
	uint8_t reserved[4]; /* 0 */
	/* Counts the lives of paths that the connector has asked for; 0: the path's first one. */
	uint32_t epoch;
	uint32_t reserved_too;		 /* 0 */
	uint64_t job;			 /* mesh_job_key() of the origin */
	uint64_t route[MESH_RELAYS_MAX]; /* node ids of the relays, none twice; the rest is 0 */
	char origin[MESH_NODE_NAME_MAX]; /* the connecting node's name */
	char via[MESH_VIA_MAX];		 /* names of the relays before this one: "b,c" */
};
_Static_assert(offsetof(struct mesh_frame_open, comm_key) == 128, "wire format");
_Static_assert(offsetof(struct mesh_frame_open, epoch) == 152, "wire format");
_Static_assert(offsetof(struct mesh_frame_open, job) == 160, "wire format");
_Static_assert(offsetof(struct mesh_frame_open, route) == 168, "wire format");
_Static_assert(offsetof(struct mesh_frame_open, origin) == 288, "wire format");
_Static_assert(sizeof(struct mesh_frame_open) == 480, "wire format");

/* OPENED: the circuit leads to the listener; the memory of the relay that answers. */
struct mesh_frame_opened {
	uint32_t to_comm;     /* the id that OPEN carried */
	uint32_t comm;	      /* the relay's id for this circuit */
	uint32_t token;	      /* each message to the circuit carries it */
	uint32_t eager_limit; /* bytes: the smallest of the relays behind and the listener */
	uint64_t address;     /* of the relay's memory, for fi_write; MESH_GRANULES granules */
	uint64_t key;
	uint32_t granule;	/* bytes */
	uint32_t lives;		/* as in ACCEPT */
	char via[MESH_VIA_MAX]; /* names of this relay and those behind it */
};
_Static_assert(offsetof(struct mesh_frame_opened, via) == 40, "wire format");
_Static_assert(sizeof(struct mesh_frame_opened) == 168, "wire format");

/** What OPENED says as ACCEPT does, for the connecting end. */
static inline struct mesh_frame_accept
mesh_frame_opened_accept(const struct mesh_frame_opened *opened)
{
	return (struct mesh_frame_accept){
		.to_comm = opened->to_comm,
		.comm = opened->comm,
		.token = opened->token,
		.lives = opened->lives,
	};
}

enum mesh_circuit_event {
	MESH_CIRCUIT_SHUT = 1,	/* from the connecting end: it has closed its end */
	MESH_CIRCUIT_WITHDRAWN, /* the same, and its NCCL never had the comm */
	MESH_CIRCUIT_LOST,	/* to both ends: the circuit is broken at the named node */
	MESH_CIRCUIT_DRAINED,	/* to the receiving end, after LOST: nothing more arrives */
	MESH_CIRCUIT_ASK,	/* to the next relay in either direction: does its process run? */
	MESH_CIRCUIT_ANSWER,	/* it does */
	MESH_CIRCUIT_EVENTS
};

struct mesh_frame_circuit {
	uint32_t to_comm;
	uint32_t event;	 /* enum mesh_circuit_event */
	uint32_t writes; /* SHUT, WITHDRAWN: into the addressee's memory, ever */
	/*
	 * DRAINED: 1: a write has failed, and may arrive. LOST: 1: not a link is lost, but the
	 * process at the other end of the comm has ended. Else 0.
	 */
	uint32_t unclean;
	/*
	 * LOST: the node that is lost, or to which an operation has failed; "": the comm has a
	 * better path.
	 */
	char lost[MESH_NODE_NAME_MAX];
	char by[MESH_NODE_NAME_MAX]; /* its neighbour, which reports it */
	uint64_t lost_node, by_node; /* their node ids; 0 where unknown */
	uint64_t reserved;	     /* 0 */
};
_Static_assert(offsetof(struct mesh_frame_circuit, lost) == 16, "wire format");
_Static_assert(offsetof(struct mesh_frame_circuit, lost_node) == 144, "wire format");
_Static_assert(sizeof(struct mesh_frame_circuit) == 168, "wire format");

/* NICS: for the peer's process. All NICs of the sender, as in HELLO. */
struct mesh_frame_nics {
	uint8_t num_nics;
	uint8_t reserved[7];			  /* 0 */
	struct mesh_wire_nic nics[MESH_NICS_MAX]; /* those behind num_nics are 0 */
};
_Static_assert(offsetof(struct mesh_frame_nics, nics) == 8, "wire format");
_Static_assert(sizeof(struct mesh_frame_nics) == 392, "wire format");

/* A whole frame, as large as one can be. */
struct mesh_frame {
	struct mesh_frame_header header;
	union {
		struct mesh_frame_hello hello;
		struct mesh_frame_refuse refuse;
		struct mesh_frame_connect connect;
		struct mesh_frame_withdraw withdraw;
		struct mesh_frame_port port;
		struct mesh_frame_nics nics;
		uint32_t to_comm; /* of those below, which are for a comm */
		struct mesh_frame_accept accept;
		struct mesh_frame_close close;
		struct mesh_frame_ask ask;
		struct mesh_frame_resume resume;
		struct mesh_frame_have have;
		struct mesh_frame_open open;
		struct mesh_frame_opened opened;
		struct mesh_frame_circuit circuit;
	};
};
_Static_assert(offsetof(struct mesh_frame_accept, to_comm) == 0, "mesh_frame.to_comm");
_Static_assert(offsetof(struct mesh_frame_close, to_comm) == 0, "mesh_frame.to_comm");
_Static_assert(offsetof(struct mesh_frame_ask, to_comm) == 0, "mesh_frame.to_comm");
_Static_assert(offsetof(struct mesh_frame_resume, to_comm) == 0, "mesh_frame.to_comm");
_Static_assert(offsetof(struct mesh_frame_have, to_comm) == 0, "mesh_frame.to_comm");
_Static_assert(offsetof(struct mesh_frame_opened, to_comm) == 0, "mesh_frame.to_comm");
_Static_assert(offsetof(struct mesh_frame_circuit, to_comm) == 0, "mesh_frame.to_comm");

/** Bytes of a HELLO with this many NICs, without the header. */
static inline size_t mesh_frame_hello_size(int num_nics)
{
	return offsetof(struct mesh_frame_hello, nics) +
	       (size_t)num_nics * sizeof(struct mesh_wire_nic);
}

/**
 * Looks for one whole frame at the start of @size untrusted bytes and checks it: type, length,
 * counts, text ends. Frames of another version are recognised by their header only. Unprintable
 * characters of a node's name become '?'.
 *
 * @frame: written on success; unused parts are zero. For another version only the header and the
 *	   first bytes of a HELLO, which all versions share, are written
 *
 * Returns the bytes consumed; 0 if more are needed; -EPROTONOSUPPORT for another version; -EPROTO
 * if this is not a frame.
 */
int mesh_frame_decode(const void *bytes, size_t size, struct mesh_frame *frame);

/** Fills in the header; returns the bytes of the frame to send. */
size_t mesh_frame_finish(struct mesh_frame *frame, enum mesh_frame_type type);

/** Copies an endpoint address into its wire form and back (-EPROTO if it is not valid). */
void mesh_wire_nic_encode(const struct mesh_endpoint_addr *endpoint, struct mesh_wire_nic *wire);
int mesh_wire_nic_decode(const struct mesh_wire_nic *wire, struct mesh_endpoint_addr *endpoint);

#endif
