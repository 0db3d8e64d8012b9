/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm_stage.h - a comm over a provider whose results the test sets, with one path or several; the
 * test plays its peer. As with fake_fabric.h, a test that uses it has ldflags.
 *
 * Unit tests include it as comm_fixture.h. Fuzz targets, which have no cmocka, use it as it is.
 */
#ifndef MESH_TESTS_COMM_STAGE_H
#define MESH_TESTS_COMM_STAGE_H

#include <stddef.h>
#include <stdint.h>

#include "transport/comm.h"
#include "setup/setup.h"
#include "transport/data.h"

#include "comm_inside.h"
#include "fake_fabric.h"

#define FIXTURE_PATHS 4
#define FIXTURE_EAGER_LIMIT 1024
/* Bytes that each comm of the fixture has registered. */
#define FIXTURE_MEMORY ((size_t)8 << 20)
/* What the peer's end of each path is called. */
#define FIXTURE_REMOTE_ID 0x4d2
#define FIXTURE_REMOTE_TOKEN 0xfeed

/* All of it belongs to the test that runs. */
struct comm_fixture {
	struct mesh_setup setup;
	struct mesh_net net;
	struct mesh_domain *domains[FIXTURE_PATHS];
	struct mesh_peer peers[FIXTURE_PATHS];
	int frames; /* the peer's end of the first control connection; -1: not read */
	int num_paths;
	uint8_t acked;			       /* in grants and POSTED */
	uint32_t lives;			       /* in grants, and when a path is accepted */
	int sends_completed, writes_completed; /* of fake.sends, fake.writes */
	char payload[FIXTURE_EAGER_LIMIT];     /* what the peer's small messages contain */
};

extern struct comm_fixture fixture;
extern char fixture_memory[FIXTURE_MEMORY];

/**
 * A test's setup: a node without paths; and teardown, which closes the comms that the test has left
 * open. Log lines are captured meanwhile.
 */
void fixture_setup(void);
void fixture_teardown(void);

/** Opens domains and peers for so many paths. Set what @fake offers before. */
void fixture_paths_open(enum mesh_provider_id provider, int num_paths);

/**
 * The process at the other end becomes known, and @peer is found by it; the caller holds
 * process->lock. @control_port: where it listens; 0: it has connected to us.
 */
void fixture_peer_enter(struct mesh_peer *peer, uint64_t process_id, uint16_t control_port);

/** A comm over all of them, with fixture_memory registered. */
struct mesh_comm *fixture_comm_open(bool sending);

/** The other end has accepted the path, and knows it by @id. process->lock held. */
void fixture_accept(struct mesh_path *path, uint32_t id, uint32_t token);

/** A path that is up is lost, and has another life. */
void fixture_live_again(struct mesh_path *path, uint32_t id, uint32_t token);

/** Both; a receiver's memory is zero. */
struct mesh_comm *fixture_open(enum mesh_provider_id provider, int num_paths, bool sending);

/* To what the comms are connected that send. */
extern const struct mesh_handle fixture_handle;

/** What fixture_comm_open() registered; constant while the comm lives. */
struct mesh_registration *fixture_registration(struct mesh_comm *comm);

/** isend or irecv of the first @size bytes of fixture_memory; fails the test without a request. */
struct mesh_request *fixture_post(struct mesh_comm *comm, size_t size);

/** What test reports: the size in bytes, or -1 while the request is not done. */
int64_t fixture_test(struct mesh_request *request);
static inline bool fixture_is_done(struct mesh_request *request)
{
	return fixture_test(request) >= 0;
}

/** The peer is lost, so that closing does not wait; then closes. */
void fixture_comm_close(struct mesh_comm *comm);

/** Frees a comm that closing left, because a provider might still use it; ours will not. */
void fixture_left_free(struct mesh_comm *comm);

/** The control connections have ended. */
void fixture_peers_lose(void);

/** Polls every domain until what the fake has completed is taken. */
void fixture_poll(void);

/** Completes all messages, or @count more writes, that were posted. */
void fixture_sends_complete(void);
void fixture_writes_complete(int count);

/** Fails the test unless the comm has failed so, and a WARN line has @why. */
void assert_failed(struct mesh_comm *comm, int error, const char *why);

/** Fails the test unless @request is there, and test reports @error for it. */
void fixture_request_fails(struct mesh_request *request, int error);

/** Ends the comm with @error, without a line in the log. */
void fixture_fail(struct mesh_comm *comm, int error);

/**
 * From the peer, on path @path: a message, or a write's immediate, whose seq may be a whole one.
 * fixture_data: a small message of @size bytes of fixture.payload, on the first path.
 */
void fixture_message(struct mesh_comm *comm, int path, enum mesh_message_type type, uint32_t seq,
		     const void *payload, size_t length);
void fixture_written(struct mesh_comm *comm, int path, struct mesh_immediate immediate);
void fixture_data(struct mesh_comm *comm, uint32_t seq, size_t size);
/** The same for a WRITTEN of a message of @size bytes. */
void fixture_announce(struct mesh_comm *comm, int path, uint32_t seq, uint32_t size,
		      const struct mesh_message_written *written);

/** From the peer of a sending comm: grants for the receives from @seq on, of @size bytes each. */
void fixture_grant(struct mesh_comm *comm, uint32_t seq, int count, uint64_t size);

/* The target of a granted receive on each path. */
#define FIXTURE_ADDRESS(path) (0x10000000u * ((path) + 1u))
#define FIXTURE_KEY(path) (0xc0ffee00u + (path))

/** Other memory of the test, registered with @comm. */
struct mesh_registration *fixture_register(struct mesh_comm *comm, void *data, size_t size);

/** Messages of this type that went out, also injected ones; the last one's header and payload. */
int fixture_sent(enum mesh_message_type type);
struct mesh_message_header fixture_last_sent(enum mesh_message_type type, const void **payload);

/** The next frame that the peer's end reads; fails the test if there is none of this type. */
struct mesh_frame fixture_frame(enum mesh_frame_type type);
/** The same, of any type; false if there is none. */
bool fixture_next_frame(struct mesh_frame *frame);

#endif
