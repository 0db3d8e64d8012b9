/* SPDX-License-Identifier: Apache-2.0 */
/* comm_stage.c - a comm over a provider whose results the test sets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/peer.h"
#include "setup/setup.h"
#include "transport/comm_life.h"
#include "transport/data.h"
#include "wire/stats.h"

#include "check.h"
#include "comm_stage.h"
#include "log_capture.h"

#define SEGMENT_BYTES ((size_t)4 << 20)

struct comm_fixture fixture;
char fixture_memory[FIXTURE_MEMORY];
static struct mesh_stats_page page; /* where each path counts */

void fixture_setup(void)
{
	struct mesh_process *process = &fixture.setup.process;

	fake_reset();
	memset(&fixture, 0, sizeof(fixture));
	mesh_lock_init(&process->lock);
	process->config.dead_peer_timeout_s = 1;
	process->config.segment_bytes = SEGMENT_BYTES;
	process->config.eager_limit_bytes = FIXTURE_EAGER_LIMIT;
	process->counters = &process->own_counters;
	memset(&page, 0, sizeof(page));
	process->stats.page = &page;
	process->engine.wake_fd = process->engine.epoll_fd = -1;
	process->events = &mesh_setup_events;
	fixture.net.setup = &fixture.setup;
	fixture.net.process = process;
	fixture.frames = -1;
	log_capture_start();
}

static void nothing(struct mesh_timer *timer, uint64_t now_ms)
{
}

static void peer_open(int i)
{
	struct mesh_peer *peer = &fixture.peers[i];
	struct sockaddr_storage name;
	size_t len;

	peer->process = &fixture.setup.process;
	peer->domain = fixture.domains[i];
	peer->watch.fd = -1;
	peer->timer.expired = nothing;
	peer->state = MESH_PEER_UP;
	peer->eager_limit = FIXTURE_EAGER_LIMIT;
	strcpy(peer->name, "b");
	mesh_addr_parse("10.7.0.2", &peer->address.addr);
	len = mesh_addr_to_sockaddr(&peer->address.addr, (uint16_t)(4321 + i), &name);
	check_equal(mesh_remote_open(peer->domain, &name, len, &peer->remote), 0);
	peer->remote->flow->connected = true;
}

void fixture_paths_open(enum mesh_provider_id provider, int num_paths)
{
	int i, ends[2];

	for (i = 0; i < num_paths; i++) {
		fixture.domains[i] = fake_domain_open(provider);
		fixture.setup.process.domains[i] = fixture.domains[i];
		fixture.setup.process.nics[i] = fixture.domains[i]->nic;
		peer_open(i);
	}
	fixture.num_paths = num_paths;
	check_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	fixture.peers[0].watch.fd = ends[0];
	fixture.frames = ends[1];
}

void fixture_peer_enter(struct mesh_peer *peer, uint64_t process_id, uint16_t control_port)
{
	peer->timer.expired = nothing;
	peer->incoming = !control_port;
	peer->control_port = control_port;
	LIST_INSERT_HEAD(&peer->process->peers, peer, entry);
	mesh_peer_process_set(peer, process_id);
}

void fixture_teardown(void)
{
	struct mesh_comm *comm;

	while ((comm = LIST_FIRST(&fixture.setup.process.comms)))
		fixture_comm_close(comm);
	log_capture_stop();
	for (int i = 0; i < fixture.num_paths; i++) {
		mesh_remote_close(fixture.domains[i], fixture.peers[i].remote);
		mesh_domain_close(fixture.domains[i]);
		free(fixture.peers[i].out);
	}
	if (fixture.frames >= 0) {
		close(fixture.peers[0].watch.fd);
		close(fixture.frames);
	}
	mesh_lock_destroy(&fixture.setup.process.lock);
	fake_teardown();
}

MESH_HOLDS(process)
void fixture_accept(struct mesh_path *path, uint32_t id, uint32_t token)
{
	const struct mesh_frame_accept accept = {
		.comm = id,
		.token = token,
		.lives = fixture.lives,
	};

	mesh_path_accepted(path, &accept);
}

MESH_NOT_ANALYSED
void fixture_live_again(struct mesh_path *path, uint32_t id, uint32_t token)
{
	mesh_lock_take(&fixture.setup.process.lock);
	mesh_comm_lock(path->comm);
	mesh_path_state_set(path, MESH_PATH_SUSPECT);
	mesh_path_state_set(path, MESH_PATH_DOWN);
	mesh_path_state_set(path, MESH_PATH_JOINING);
	mesh_comm_unlock(path->comm);
	fixture_accept(path, id, token);
	mesh_lock_release(&fixture.setup.process.lock);
}

const struct mesh_handle fixture_handle;

struct mesh_comm *fixture_comm_open(bool sending)
{
	const struct mesh_comm_wish wish = {
		.num_paths = fixture.num_paths,
		.key = 1,
		.handle = sending ? &fixture_handle : NULL,
	};
	struct mesh_comm *comm = NULL;

	mesh_lock_take(&fixture.setup.process.lock);
	check_equal(mesh_comm_open(&fixture.net, &fixture.peers[0], &wish, &comm), 0);
	for (int i = 1; i < fixture.num_paths; i++)
		check_equal(mesh_comm_path_add(comm, &fixture.peers[i], false), 0);
	for (int i = 0; i < fixture.num_paths; i++)
		fixture_accept(&comm->paths[i], FIXTURE_REMOTE_ID + (uint32_t)i,
			       FIXTURE_REMOTE_TOKEN + (uint32_t)i);
	mesh_lock_release(&fixture.setup.process.lock);
	fixture_register(comm, fixture_memory, FIXTURE_MEMORY);
	return comm;
}

struct mesh_comm *fixture_open(enum mesh_provider_id provider, int num_paths, bool sending)
{
	fixture_paths_open(provider, num_paths);
	if (!sending)
		memset(fixture_memory, 0, FIXTURE_MEMORY);
	return fixture_comm_open(sending);
}

struct mesh_registration *fixture_registration(struct mesh_comm *comm)
{
	struct mesh_registration *registration;

	LIST_FOREACH(registration, &comm->registrations, entry) {
		if (registration->data == fixture_memory && registration->size == FIXTURE_MEMORY)
			break;
	}
	check(registration);
	return registration;
}

struct mesh_request *fixture_post(struct mesh_comm *comm, size_t size)
{
	struct mesh_registration *registration = fixture_registration(comm);
	struct mesh_request *request = NULL;

	if (comm->sending)
		check_equal(mesh_comm_send(comm, fixture_memory, size, registration, &request), 0);
	else
		check_equal(mesh_comm_receive(comm, fixture_memory, size, registration, &request),
			    0);
	check(request);
	return request;
}

int64_t fixture_test(struct mesh_request *request)
{
	int64_t size = mesh_request_test(request);

	check(size >= 0 || size == MESH_REQUEST_PENDING);
	return size >= 0 ? size : -1;
}

void fixture_left_free(struct mesh_comm *comm)
{
	mesh_comm_memory_free(comm);
}

void fixture_peers_lose(void)
{
	mesh_lock_take(&fixture.setup.process.lock);
	for (int i = 0; i < fixture.num_paths; i++)
		fixture.peers[i].state = MESH_PEER_LOST;
	mesh_lock_release(&fixture.setup.process.lock);
}

void fixture_comm_close(struct mesh_comm *comm)
{
	fixture_sends_complete();
	fixture_peers_lose();
	mesh_comm_lock(comm);
	/* Otherwise it may wait for a path: no process comes back here. */
	mesh_comm_fail(comm, -ECONNRESET, true, NULL);
	mesh_comm_unlock(comm);
	mesh_comm_close(comm);
}

void fixture_poll(void)
{
	int i, turn, idle = 0;

	/* On tcp a poll in which much has completed leaves what then has room to the next one. */
	for (turn = 0; turn < 2000 && idle < 2; turn++) {
		idle = fake.read < fake.completed ? 0 : idle + 1;
		for (i = 0; i < fixture.num_paths; i++)
			mesh_domain_poll(fixture.domains[i]);
	}
	check_equal(fake.read, fake.completed);
}

void fixture_sends_complete(void)
{
	do {
		while (fixture.sends_completed < fake.sends.num)
			fake_complete(&fake.sends.posts[fixture.sends_completed++]);
		fixture_poll(); /* which may send more */
	} while (fixture.sends_completed < fake.sends.num);
}

void fixture_writes_complete(int count)
{
	while (count--) {
		check(fixture.writes_completed < fake.writes.num);
		fake_complete(&fake.writes.posts[fixture.writes_completed++]);
	}
	fixture_poll();
}

void fixture_fail(struct mesh_comm *comm, int error)
{
	mesh_lock_take(&comm->lock);
	mesh_comm_fail(comm, error, true, NULL);
	mesh_lock_release(&comm->lock);
}

void assert_failed(struct mesh_comm *comm, int error, const char *why)
{
	check_equal(*comm_inside(comm).error, error);
	check(log_captured(MESH_LOG_WARN, why));
}

void fixture_request_fails(struct mesh_request *request, int error)
{
	check(request);
	check_equal(mesh_request_test(request), error);
}

static void message_deliver(struct mesh_comm *comm, int path,
			    const struct mesh_message_header *header, const void *payload)
{
	struct mesh_domain *domain = fixture.domains[path];

	mesh_lock_take(&domain->lock);
	comm->paths[path].sink.message(&comm->paths[path].sink, header, payload);
	mesh_lock_release(&domain->lock);
}

void fixture_message(struct mesh_comm *comm, int path, enum mesh_message_type type, uint32_t seq,
		     const void *payload, size_t length)
{
	const struct mesh_message_header header = {
		.type = (uint8_t)type,
		.acked = type == MESH_MESSAGE_POSTED ? fixture.acked : 0,
		.seq = seq,
		.length = (uint32_t)length,
	};

	message_deliver(comm, path, &header, payload);
}

void fixture_announce(struct mesh_comm *comm, int path, uint32_t seq, uint32_t size,
		      const struct mesh_message_written *written)
{
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_WRITTEN,
		.seq = seq,
		.size = size,
		.length = sizeof(*written),
	};

	message_deliver(comm, path, &header, written);
}

void fixture_data(struct mesh_comm *comm, uint32_t seq, size_t size)
{
	check(size <= sizeof(fixture.payload));
	fixture_message(comm, 0, MESH_MESSAGE_DATA, seq, fixture.payload, size);
}

void fixture_written(struct mesh_comm *comm, int path, struct mesh_immediate immediate)
{
	struct mesh_domain *domain = fixture.domains[path];

	immediate.seq &= 0x3f; /* what an immediate has of it */
	mesh_lock_take(&domain->lock);
	comm->paths[path].sink.written(&comm->paths[path].sink, &immediate);
	mesh_lock_release(&domain->lock);
}

void fixture_grant(struct mesh_comm *comm, uint32_t seq, int count, uint64_t size)
{
	uint8_t payload[MESH_GRANTS_PER_MESSAGE * sizeof(struct mesh_grant)];
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_GRANT,
		.count = (uint8_t)count,
		.paths = (uint8_t)fixture.num_paths,
		.acked = fixture.acked,
		.seq = seq,
		.lives = fixture.lives,
	};
	struct mesh_grant grant = {.size = size};

	for (int i = 0; i < fixture.num_paths; i++) {
		grant.targets[i].address = FIXTURE_ADDRESS((unsigned int)i);
		grant.targets[i].key = FIXTURE_KEY((unsigned int)i);
	}
	for (int i = 0; i < count; i++)
		memcpy(payload + (size_t)i * mesh_grant_size(fixture.num_paths), &grant,
		       mesh_grant_size(fixture.num_paths));
	message_deliver(comm, 0, &header, payload);
}

struct mesh_registration *fixture_register(struct mesh_comm *comm, void *data, size_t size)
{
	struct mesh_registration *registration = NULL;

	check_equal(mesh_registration_open(comm, data, size, &registration), 0);
	return registration;
}

/* The last message of this type among those that took a buffer, or NULL. */
static const struct fake_post *sent_find(enum mesh_message_type type, int *count)
{
	const struct fake_post *found = NULL;

	*count = 0;
	for (int i = 0; i < fake.sends.num; i++) {
		if (fake.sends.posts[i].bytes[0] != type)
			continue;
		found = &fake.sends.posts[i];
		(*count)++;
	}
	return found;
}

int fixture_sent(enum mesh_message_type type)
{
	int count;

	sent_find(type, &count);
	return count;
}

struct mesh_message_header fixture_last_sent(enum mesh_message_type type, const void **payload)
{
	struct mesh_message_header header;
	const struct fake_post *post;
	int count;

	post = sent_find(type, &count);
	check(post);
	memcpy(&header, post->bytes, sizeof(header));
	check_equal(post->size, sizeof(header) + header.length);
	if (payload)
		*payload = post->buffer + sizeof(header);
	return header;
}

bool fixture_next_frame(struct mesh_frame *frame)
{
	uint8_t bytes[sizeof(*frame)];
	ssize_t n = recv(fixture.frames, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	int size;

	if (n <= 0)
		return false;
	size = mesh_frame_decode(bytes, (size_t)n, frame);
	check(size > 0);
	check_equal(recv(fixture.frames, bytes, (size_t)size, 0), size);
	return true;
}

struct mesh_frame fixture_frame(enum mesh_frame_type type)
{
	struct mesh_frame frame;

	check(fixture_next_frame(&frame));
	check_equal(frame.header.type, type);
	return frame;
}
