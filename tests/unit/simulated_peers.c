/* SPDX-License-Identifier: Apache-2.0 */
/* simulated_peers.c - many processes for one node to talk to. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/random.h"
#include "fabric/domain.h"
#include "fabric/poll.h"
#include "fabric/remote.h"
#include "fabric/buffer.h"
#include "wire/frame.h"

#include "simulated_peers.h"

#define FIRST_SECRET 1000
#define WAIT_MS 1
#define EVENTS 64

/* One control connection of a simulated process. */
struct simulated {
	int fd;	      /* -1: none */
	int listener; /* of a process that is connected to; else -1 */
	bool dials;   /* it connects to the node that is tested */
	int number;
	struct mesh_sink sink; /* for GREET and its reply */
	uint32_t peer_id, peer_token;
	uint64_t cookie; /* of the tested node's listener */
	uint32_t listen_id;
	int num_comms;
	uint32_t remote_comms[SIMULATED_COMMS_MAX]; /* the other end of each comm */
	uint8_t in[2 * sizeof(struct mesh_frame)];
	size_t in_size;
};

static struct {
	struct mesh_process *process;
	struct mesh_domain *domain;
	struct mesh_remote *remote; /* the tested node's endpoint */
	struct simulated incoming[SIMULATED_PEERS_MAX], outgoing[SIMULATED_PEERS_MAX];
	int num;
	int epoll_fd;
	pthread_t thread;
	pthread_mutex_t mutex; /* all of this, between the thread and the test */
	atomic_bool stop;
	int hold; /* ends that are not answered before so many have come */
	int num_held;
	struct {
		struct simulated *peer;
		uint32_t comm;
	} held[SIMULATED_PEERS_MAX];
} sim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* ---- sending ------------------------------------------------------------------------------- */

static void frame_send(const struct simulated *peer, struct mesh_frame *frame,
		       enum mesh_frame_type type)
{
	size_t size = mesh_frame_finish(frame, type);

	/* Frames are small; a node that has closed the connection meanwhile gets none. */
	if (peer->fd >= 0)
		(void)!send(peer->fd, frame, size, MSG_NOSIGNAL);
}

static void hello_send(const struct simulated *peer)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.hello.node_id = 1;
	frame.hello.secret[0] = FIRST_SECRET + (uint64_t)peer->number;
	frame.hello.process_id = mesh_process_id_of(mesh_one_way(frame.hello.secret));
	frame.hello.cookie = peer->dials ? peer->cookie : 0;
	frame.hello.listen_id = peer->dials ? peer->listen_id : 0;
	frame.hello.peer_id = peer->sink.id;
	frame.hello.peer_token = peer->sink.token;
	frame.hello.provider = (uint8_t)sim.domain->provider;
	frame.hello.name_len = (uint8_t)sim.domain->name_len;
	memcpy(frame.hello.endpoint_name, sim.domain->name, sim.domain->name_len);
	strcpy(frame.hello.node_name, "simulated");
	frame.hello.eager_limit = 1024;
	frame_send(peer, &frame, MESH_FRAME_HELLO);
}

static void sent(struct mesh_buffer *buffer, int error)
{
}

static void greeting_send(const struct simulated *peer)
{
	const struct mesh_message_header header = {
		.type = MESH_MESSAGE_GREET, .comm = peer->peer_id, .token = peer->peer_token};
	struct mesh_buffer *buffer;

	while (!(buffer = mesh_remote_buffer_get(sim.domain, sim.remote)))
		mesh_domain_poll(sim.domain);
	memcpy(buffer->bytes, &header, sizeof(header));
	buffer->size = sizeof(header);
	buffer->sent = sent;
	mesh_remote_send(buffer);
}

static void comms_request(const struct simulated *peer)
{
	struct mesh_frame frame;

	for (int i = 0; i < peer->num_comms; i++) {
		memset(&frame, 0, sizeof(frame));
		frame.connect.cookie = peer->cookie;
		frame.connect.listen_id = peer->listen_id;
		frame.connect.comm_key = (uint64_t)(peer->number * SIMULATED_COMMS_MAX + i + 1);
		frame.connect.comm = (uint32_t)i;
		frame.connect.num_paths = 1;
		frame_send(peer, &frame, MESH_FRAME_CONNECT);
	}
}

/* ---- what arrives -------------------------------------------------------------------------- */

static void greeting_arrived(struct mesh_sink *sink, const struct mesh_message_header *header,
			     const void *payload)
{
	struct simulated *peer = mesh_container_of(sink, struct simulated, sink);

	if (header->type == MESH_MESSAGE_GREET && peer->dials)
		comms_request(peer);
	else if (header->type == MESH_MESSAGE_GREET)
		greeting_send(peer);
}

static void hello_came(struct simulated *peer, const struct mesh_frame_hello *hello)
{
	peer->peer_id = hello->peer_id;
	peer->peer_token = hello->peer_token;
	if (!sim.remote &&
	    mesh_remote_open(sim.domain, hello->endpoint_name, hello->name_len, &sim.remote))
		abort();
	if (peer->dials)
		greeting_send(peer);
	else
		hello_send(peer);
}

static void connect_came(struct simulated *peer, const struct mesh_frame_connect *request)
{
	struct mesh_frame frame;

	if (peer->num_comms == SIMULATED_COMMS_MAX)
		abort();
	peer->remote_comms[peer->num_comms] = request->comm;
	memset(&frame, 0, sizeof(frame));
	frame.accept.to_comm = request->comm;
	frame.accept.comm = (uint32_t)peer->num_comms++;
	frame_send(peer, &frame, MESH_FRAME_ACCEPT);
}

/* Our end has nothing in flight and wants nothing. */
static void closed_answer(const struct simulated *peer, uint32_t comm)
{
	struct mesh_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.close.to_comm = peer->remote_comms[comm];
	frame.close.closed = 1;
	frame_send(peer, &frame, MESH_FRAME_CLOSE);
}

static void closed_came(struct simulated *peer, uint32_t comm)
{
	if (comm >= SIMULATED_COMMS_MAX || sim.num_held == SIMULATED_PEERS_MAX)
		abort();
	sim.held[sim.num_held].peer = peer;
	sim.held[sim.num_held++].comm = comm;
	if (sim.num_held < sim.hold)
		return;
	while (sim.num_held--)
		closed_answer(sim.held[sim.num_held].peer, sim.held[sim.num_held].comm);
	sim.num_held = 0;
}

static void frame_came(struct simulated *peer, const struct mesh_frame *frame)
{
	switch ((enum mesh_frame_type)frame->header.type) {
	case MESH_FRAME_HELLO:
		hello_came(peer, &frame->hello);
		break;
	case MESH_FRAME_CONNECT:
		connect_came(peer, &frame->connect);
		break;
	case MESH_FRAME_ACCEPT:
		peer->remote_comms[frame->to_comm % SIMULATED_COMMS_MAX] = frame->accept.comm;
		break;
	case MESH_FRAME_CLOSE:
		if (frame->close.closed)
			closed_came(peer, frame->to_comm);
		break;
	default:
		break;
	}
}

static void peer_hang_up(struct simulated *peer)
{
	if (peer->fd >= 0)
		close(peer->fd);
	peer->fd = -1;
}

static void peer_read(struct simulated *peer)
{
	struct mesh_frame frame;
	int taken;
	ssize_t n;

	n = recv(peer->fd, peer->in + peer->in_size, sizeof(peer->in) - peer->in_size,
		 MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		peer_hang_up(peer);
		return;
	}
	peer->in_size += (size_t)n;
	while ((taken = mesh_frame_decode(peer->in, peer->in_size, &frame)) > 0) {
		peer->in_size -= (size_t)taken;
		memmove(peer->in, peer->in + taken, peer->in_size);
		frame_came(peer, &frame);
	}
	if (taken < 0)
		abort();
}

static void peer_watch(struct simulated *peer, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};

	if (fd < 0 || epoll_ctl(sim.epoll_fd, EPOLL_CTL_ADD, fd, &event))
		abort();
}

static void peer_ready(struct simulated *peer)
{
	if (peer->fd >= 0) {
		peer_read(peer);
		return;
	}
	peer->fd = accept(peer->listener, NULL, NULL);
	if (peer->fd >= 0)
		peer_watch(peer, peer->fd);
}

static void *sim_main(void *arg)
{
	struct epoll_event events[EVENTS];
	int i, n;

	while (!atomic_load(&sim.stop)) {
		n = epoll_wait(sim.epoll_fd, events, EVENTS, WAIT_MS);
		pthread_mutex_lock(&sim.mutex);
		for (i = 0; i < n; i++)
			peer_ready(events[i].data.ptr);
		mesh_domain_poll(sim.domain);
		pthread_mutex_unlock(&sim.mutex);
	}
	return NULL;
}

/* ---- the test's side ----------------------------------------------------------------------- */

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

static void peer_init(struct simulated *peer, int number, bool dials)
{
	memset(peer, 0, sizeof(*peer));
	peer->fd = peer->listener = -1;
	peer->dials = dials;
	peer->number = number;
	peer->sink.message = greeting_arrived;
	peer->sink.token = 7;
	assert_int_equal(mesh_sink_add(sim.domain, &peer->sink), 0);
}

static void peer_listen(struct simulated *peer)
{
	const struct sockaddr_in any_port = loopback(0);

	peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(peer->listener >= 0);
	assert_int_equal(bind(peer->listener, (const struct sockaddr *)&any_port, sizeof(any_port)),
			 0);
	assert_int_equal(listen(peer->listener, 8), 0);
	peer_watch(peer, peer->listener);
}

void simulated_peers_start(struct mesh_process *process, int num)
{
	const struct mesh_domain_options options = {
		.nic = process->nics[0], .provider = process->providers[0], .payload_max = 8192};

	assert_true(num <= SIMULATED_PEERS_MAX);
	sim.process = process;
	sim.num = num;
	sim.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(mesh_domain_open(&options, &sim.domain), 0);
	for (int i = 0; i < num; i++) {
		peer_init(&sim.incoming[i], i, false);
		peer_listen(&sim.incoming[i]);
		peer_init(&sim.outgoing[i], i, true);
	}
	atomic_store(&sim.stop, false);
	assert_int_equal(pthread_create(&sim.thread, NULL, sim_main, NULL), 0);
}

void simulated_peers_stop(void)
{
	atomic_store(&sim.stop, true);
	pthread_join(sim.thread, NULL);
	for (int i = 0; i < sim.num; i++) {
		peer_hang_up(&sim.incoming[i]);
		peer_hang_up(&sim.outgoing[i]);
		close(sim.incoming[i].listener);
	}
	close(sim.epoll_fd);
	mesh_remote_close(sim.domain, sim.remote);
	mesh_domain_close(sim.domain);
	sim.remote = NULL;
}

void simulated_answers_hold(int num)
{
	pthread_mutex_lock(&sim.mutex);
	sim.hold = num;
	pthread_mutex_unlock(&sim.mutex);
}

void simulated_handle(int peer, uint8_t bytes[MESH_HANDLE_BYTES])
{
	struct mesh_handle handle;
	struct sockaddr_in name;
	socklen_t len = sizeof(name);

	memset(&handle, 0, sizeof(handle));
	assert_int_equal(getsockname(sim.incoming[peer].listener, (struct sockaddr *)&name, &len),
			 0);
	handle.node_id = sim.process->node_id; /* else a loopback address is no path */
	handle.cookie = mesh_one_way((const uint64_t[2]){FIRST_SECRET + (uint64_t)peer, 0});
	handle.control_port = ntohs(name.sin_port);
	handle.num_endpoints = handle.total_nics = 1;
	handle.endpoints[0].addr = sim.process->nics[0]->source;
	handle.endpoints[0].port = sim.domain->port;
	handle.endpoints[0].provider = sim.domain->provider;
	assert_int_equal(mesh_handle_encode(&handle, bytes), 1);
}

void simulated_dial(int peer, const struct mesh_handle *handle, int num_comms)
{
	const struct sockaddr_in to = loopback(handle->control_port);
	struct simulated *dialling = &sim.outgoing[peer];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	pthread_mutex_lock(&sim.mutex);
	dialling->fd = fd;
	dialling->cookie = handle->cookie;
	dialling->listen_id = handle->listen_id;
	dialling->num_comms = num_comms;
	peer_watch(dialling, fd);
	hello_send(dialling);
	pthread_mutex_unlock(&sim.mutex);
}
