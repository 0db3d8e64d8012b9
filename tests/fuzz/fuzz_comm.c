/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_comm.c - a peer that sends whatever it likes to comms that live: frames over each control
 * connection, messages and immediates over each path, in any order, while requests are posted,
 * operations end in any way, links are lost and come back, and comms close.
 *
 * What must hold, besides what asserts and the sanitizers check: nothing is written outside of a
 * posted receive, nor into one that is done; a grant names the memory of a posted receive and no
 * more; a write reads from a posted send, and goes where a grant for that message allows; a request
 * is done once, with a size that fits; no lock stays held; closing ends.
 *
 * Input: one byte of options, then steps. Each step is one byte, and what it takes from the rest.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/random.h"
#include "control/link.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "setup/setup.h"
#include "transport/comm_life.h"
#include "transport/data.h"

#include "comm_run.h"

#define STEPS 256
#define PORT 999
/* Of the fake's room for operations: then those that are in flight end. */
#define POSTS_MANY (FAKE_POSTS_MAX / 3)

/* ---- steps: this end ----------------------------------------------------------------------- */

static const size_t sizes[] = {
	0, 1, 64, 1000, FIXTURE_EAGER_LIMIT, FIXTURE_EAGER_LIMIT + 1, 5000, STRIDE / 2};

static void step_post(void)
{
	struct mesh_registration *registration;
	struct mesh_request *request = NULL;
	struct mesh_comm *comm;
	struct slot *slot;
	int i, ret;

	comm = take_comm(&i);
	for (slot = run.slots; slot < run.slots + SLOTS && slot->request; slot++)
		continue;
	if (!comm || slot == run.slots + SLOTS)
		return;
	slot->comm = i;
	slot->size = sizes[take(1) % (sizeof(sizes) / sizeof(sizes[0]))];
	slot->used = true;
	slot->over = false;
	if (!run.sending)
		memset(slot_data(slot) - GUARD, FILL, NEAR);
	mesh_lock_take(&comm->lock);
	slot->seq = comm->next_seq;
	mesh_lock_release(&comm->lock);
	registration = fixture_registration(comm);
	if (run.sending)
		ret = mesh_comm_send(comm, slot_data(slot), slot->size, registration, &request);
	else
		ret = mesh_comm_receive(comm, slot_data(slot), slot->size, registration, &request);
	check(!ret || *comm_inside(comm).error);
	slot->request = request;
}

/* Its bytes change no more. */
static void slot_end(struct slot *slot)
{
	slot->request = NULL;
	slot->over = true;
	memcpy(slot->after, slot_data(slot) - GUARD, NEAR);
}

static void slot_test(struct slot *slot)
{
	int64_t size = mesh_request_test(slot->request);

	learn(); /* it polls, and the request is posted until now */
	if (size == MESH_REQUEST_PENDING)
		return;
	if (size < 0) {
		check(*comm_inside(run.comms[slot->comm]).error == size);
		return; /* NCCL closes the comm next */
	}
	check(run.sending ? (size_t)size == slot->size : (size_t)size <= slot->size);
	if (!run.sending)
		slot_bounds_check(slot, (size_t)size);
	slot_end(slot);
}

static void step_test(void)
{
	for (int i = 0; i < SLOTS; i++) {
		if (run.slots[i].request)
			slot_test(&run.slots[i]);
	}
}

/* One of the operations in flight ends, or all of a kind. */
static void step_end(void)
{
	uint32_t way = take(1);
	struct fake_posts *posts = way & 1 ? &fake.writes : &fake.sends;

	if (way & 2)
		posts_end(posts, way & 4);
	else if (posts->num)
		post_end(&posts->posts[way / 8 % (uint32_t)posts->num], way & 4);
	if (way & 128)
		fixture_poll();
}

/* The provider has no room for a while, or fails. */
static void step_provider(void)
{
	static const int errors[] = {-FI_EAGAIN, -FI_EAGAIN, -FI_EAGAIN, -FI_ECONNRESET};
	uint32_t way = take(1);

	fake_fail(way & 1 ? FAKE_WRITE : FAKE_SEND, way / 2 % 4, way / 8 % 8,
		  errors[way / 64 % (sizeof(errors) / sizeof(errors[0]))]);
}

/* Time passes, and the engine has its turn. */
static void step_engine(void)
{
	static const uint64_t times_ms[] = {0, 1, 20, 250, 600, 3100, 11000};
	struct mesh_process *process = &fixture.setup.process;
	uint32_t way = take(1);
	uint64_t now_ms;

	machine.now_ns += times_ms[way % (sizeof(times_ms) / sizeof(times_ms[0]))] * 1000000;
	now_ms = mesh_clock_ms();
	mesh_lock_take(&process->lock);
	mesh_comms_recover(process);
	for (int i = 0; i < COMMS; i++) {
		if (run.comms[i])
			mesh_stall_tick(run.comms[i], now_ms);
	}
	mesh_seekers_tick(process);
	mesh_timers_run(&process->engine.timers, mesh_clock_ms());
	mesh_lock_release(&process->lock);
}

static void ids_remember(const struct mesh_peer *peer)
{
	for (int i = 0; i < COMMS; i++)
		for (int k = 0; run.comms[i] && k < run.comms[i]->num_paths; k++)
			if (run.comms[i]->paths[k].peer == peer)
				run.old_ids[run.num_old_ids++ % OLD_IDS] =
					run.comms[i]->paths[k].sink.id;
}

static void step_lose(void)
{
	struct mesh_peer *peer = take_peer();
	uint32_t way = take(1);

	ids_remember(peer);
	mesh_lock_take(&fixture.setup.process.lock);
	if (peer->state != MESH_PEER_LOST && way % 4 == 0)
		mesh_peer_lose(peer, "the test says so"); /* its process has ended */
	else if (peer->state == MESH_PEER_UP)
		mesh_link_lose(peer, "the test says so", way % 2 ? MESH_REFUSAL_BROKEN : 0);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The process of our comms' other end. */
static uint64_t remote_process(void)
{
	return mesh_process_id_of(fixture_handle.cookie);
}

/* A peer that is up. It is used by the fuzzer, and so never freed. */
static void peer_enter(struct mesh_peer *peer)
{
	struct mesh_process *process = &fixture.setup.process;

	peer->timer.expired = mesh_peer_tick;
	peer->incoming = !run.sending;
	peer->control_port = run.sending ? PORT : 0;
	peer->users++;
	mesh_lock_take(&process->lock);
	LIST_INSERT_HEAD(&process->peers, peer, entry);
	mesh_peer_process_set(peer, remote_process());
	mesh_link_join(peer);
	mesh_lock_release(&process->lock);
}

/* As a HELLO does: false if something of the lost link is in flight yet. */
static bool link_is_settled(const struct mesh_peer *before, struct mesh_peer *peer)
{
	bool settled;

	peer->process = before->process;
	peer->domain = before->domain;
	peer->address = before->address;
	peer->incoming = before->incoming;
	peer->state = MESH_PEER_HELLO;
	mesh_peer_process_set(peer, remote_process());
	settled = mesh_link_settle(peer);
	mesh_peer_process_set(peer, 0);
	return settled;
}

/* A link works again: a new peer is up there. */
static void step_return(void)
{
	struct mesh_peer *before = take_peer(), *peer = &run.lives[run.num_lives % LIVES];
	struct mesh_process *process = &fixture.setup.process;
	int ends[2], ret;
	bool quiet;

	if (run.num_lives == LIVES || before->state != MESH_PEER_LOST || !before->remote)
		return;
	mesh_lock_take(&process->lock);
	mesh_peer_bury(before);
	quiet = link_is_settled(before, peer);
	mesh_lock_release(&process->lock);
	if (!quiet)
		return;
	check_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	peer->eager_limit = before->eager_limit;
	peer->state = MESH_PEER_UP;
	peer->watch.fd = ends[0];
	run.reads[FIXTURE_PATHS + run.num_lives++] = ends[1];
	mesh_lock_take(&process->lock);
	ret = mesh_remote_open(peer->domain, before->remote->flow->name, peer->domain->name_len,
			       &peer->remote);
	check_equal(ret, 0);
	mesh_lock_release(&process->lock);
	peer_enter(peer);
}

/* The peer's NIC is drained, or used again. */
static void step_drain(void)
{
	struct mesh_peer *peer = take_peer();
	struct mesh_wire_nic nic = {.nic = peer->address.nic};

	nic.provider = take(1) % 2 ? MESH_WIRE_NIC_DRAINED : 0;
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_peer_drained_learn(peer, &nic, 1);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* The comms may get a path over the last link. */
static void step_grow(void)
{
	const int last = fixture.num_paths - 1;
	const struct mesh_way way = {
		.index = last,
		.address = fixture.peers[last].address,
		.control_port = PORT,
		.cookie = remote_process(),
	};

	mesh_lock_take(&fixture.setup.process.lock);
	if (run.sending)
		mesh_rejoin_new(&fixture.setup.process, remote_process(), &way, NULL);
	mesh_lock_release(&fixture.setup.process.lock);
}

/* NCCL ends its memory first, in use or not, or the comm at once. */
static void comm_close(int i)
{
	struct mesh_comm *comm = run.comms[i];
	struct slot *slot;

	all_end(take(1) % 2);
	closing_begin(take(1) % 2);
	if (take(1) % 2)
		mesh_registration_close(comm, fixture_registration(comm));
	mesh_comm_close(comm);
	closing_end();
	run.comms[i] = NULL;
	for (slot = run.slots; slot < run.slots + SLOTS; slot++) {
		if (slot->request && slot->comm == i) {
			slot->request = NULL;
			slot->used = slot->over = false;
		}
	}
	all_end(false); /* of the other comm */
}

static void step_close(void)
{
	int i;

	if (take_comm(&i) && take(1) % 8 == 0)
		comm_close(i);
}

static void step(void)
{
	static void (*const steps[])(void) = {
		step_frame,   step_message, step_immediate, step_post,	   step_test,  step_end,
		step_engine,  step_lose,    step_return,    step_provider, step_close, step_frame,
		step_message, fixture_poll, step_drain,	    step_grow,
	};

	steps[take(1) % (sizeof(steps) / sizeof(steps[0]))]();
	connect_again();
	learn();
	slots_check();
	forget();
	if (fake.sends.num > POSTS_MANY || fake.writes.num > POSTS_MANY ||
	    fake.completed > POSTS_MANY)
		all_end(false);
}

/* ---- a run --------------------------------------------------------------------------------- */

static struct mesh_comm *comm_open(int key, int num_paths)
{
	struct mesh_process *process = &fixture.setup.process;
	const struct mesh_comm_wish wish = {
		.num_paths = num_paths,
		.key = (uint64_t)key,
		.handle = run.sending ? &fixture_handle : NULL,
	};
	struct mesh_comm *comm = NULL;

	mesh_lock_take(&process->lock);
	check_equal(mesh_comm_open(&fixture.net, &fixture.peers[0], &wish, &comm), 0);
	for (int i = 1; i < num_paths; i++)
		check_equal(mesh_comm_path_add(comm, &fixture.peers[i], false), 0);
	for (int i = 0; i < num_paths; i++)
		fixture_accept(&comm->paths[i], FIXTURE_REMOTE_ID + (uint32_t)i,
			       FIXTURE_REMOTE_TOKEN);
	mesh_lock_release(&process->lock);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
	return comm;
}

static void begin(uint32_t options)
{
	static const enum mesh_provider_id providers[] = {MESH_PROVIDER_TCP, MESH_PROVIDER_TCP_RXM};
	struct mesh_process *process = &fixture.setup.process;
	int i, num_paths, ends[2];

	run.sending = options & 1;
	fixture_setup();
	mesh_log_sink_set(lines_read);
	fake.rx_size = 16;
	fake.payload_max = MACHINE_PAYLOAD;
	fake.cq_data_size = options >> 4 & 1 ? 4 : 8;
	fake.before = polled;
	process->config.max_paths = MESH_PATHS_MAX;
	process->config.connect_timeout_s = 10;
	process->config.recovery_timeout_s = 30;
	process->config.segment_bytes = 4096;
	process->process_id = OWN_ID;
	fixture_paths_open(providers[options >> 2 & 1], 1 + (int)(options >> 5 & 3));
	/* The last link may be one that joins late. */
	num_paths = fixture.num_paths - (fixture.num_paths > 1 && options >> 7 & 1);
	run.reads[0] = fixture.frames;
	for (i = 0; i < fixture.num_paths; i++) {
		if (i) {
			check_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
			fixture.peers[i].watch.fd = ends[0];
			run.reads[i] = ends[1];
		}
		fixture.peers[i].address.addr.bytes[2] = (uint8_t)i;
		peer_enter(&fixture.peers[i]);
	}
	for (i = 0; i < COMMS; i++)
		run.opened[i] = run.comms[i] = comm_open(i + 1, num_paths);
}

static void peer_leave(struct mesh_peer *peer, int read_end)
{
	struct mesh_process *process = &fixture.setup.process;

	mesh_lock_take(&process->lock);
	mesh_peer_lose(peer, "the end");
	mesh_peer_bury(peer);
	mesh_engine_timer_cancel(&process->engine, &peer->timer);
	mesh_peer_process_set(peer, 0);
	LIST_REMOVE(peer, entry);
	mesh_lock_release(&process->lock);
	if (read_end != fixture.frames)
		close(read_end);
	free(peer->nics);
}

static void end(void)
{
	struct mesh_process *process = &fixture.setup.process;
	struct mesh_peer *peer;

	for (int i = 0; i < COMMS; i++) {
		if (run.comms[i])
			comm_close(i);
	}
	check(LIST_EMPTY(&process->comms) && LIST_EMPTY(&process->lingering));
	mesh_lock_take(&process->lock);
	mesh_rejoins_close(process);
	mesh_lock_release(&process->lock);
	for (int i = 0; i < fixture.num_paths; i++)
		peer_leave(&fixture.peers[i], run.reads[i]);
	for (int i = 0; i < run.num_lives; i++) {
		peer_leave(&run.lives[i], run.reads[FIXTURE_PATHS + i]);
		mesh_remote_close(run.lives[i].domain, run.lives[i].remote);
		free(run.lives[i].out);
	}
	mesh_lock_take(&process->lock);
	while ((peer = LIST_FIRST(&process->peers)))
		mesh_peer_free(peer);
	mesh_lock_release(&process->lock);
	fake.before = NULL;
	check(!process->engine.timers.first);
	fixture_teardown();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	run_begin(data + 1, size - 1);
	begin(data[0]);
	for (int i = 0; i < STEPS && machine.left; i++)
		step();
	end();
	return 0;
}
