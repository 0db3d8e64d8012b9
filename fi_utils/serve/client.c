/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - answers one checking node. Its frames are not trusted: see peer/wire.c. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "fabric/domain_open.h"
#include "fabric/poll.h"
#include "fabric/remote.h"
#include "fabric/sink.h"

#include "common/output.h"
#include "peer/fabric.h"
#include "peer/self.h"
#include "peer/stream.h"
#include "peer/udp.h"
#include "peer/wire.h"
#include "serve/client.h"

/* Frames handled in one call, so that one client does not block the others. */
#define FRAMES_MAX 64

/* ---- opening and closing ------------------------------------------------------------------ */

void serve_client_open(struct serve *serve, int fd, const struct mesh_addr *local,
		       const struct mesh_addr *remote)
{
	struct serve_client *client = serve->clients;

	while (client->stream.fd >= 0)
		client++; /* the caller accepts only while a slot is free */
	memset(client, 0, sizeof(*client));
	client->udp_fd = -1;
	client->local = *local;
	client->remote = *remote;
	client->noise = true;
	client->idle_until_ms = mesh_clock_ms() + SERVE_HELLO_MS;
	client->until_ms = mesh_clock_ms() + SERVE_CLIENT_MS;
	if (peer_stream_open(&client->stream, fd))
		fprintf(stderr, "fi_mesh serve: no memory for a connection\n");
}

static void fabric_close(struct serve_client *client)
{
	peer_fabric_close(client->fabric);
	client->fabric = NULL;
	client->running = false;
}

void serve_client_close(struct serve *serve, struct serve_client *client)
{
	if (client->noise)
		serve->strangers++;
	else
		serve->served++;
	fabric_close(client);
	if (client->udp_fd >= 0)
		close(client->udp_fd);
	client->udp_fd = -1;
	peer_stream_close(&client->stream);
}

/* ---- answers ------------------------------------------------------------------------------ */

static int hello_answer(struct serve *serve, struct serve_client *client,
			const struct mesh_check_frame *asked)
{
	const struct mesh_nic *nic;
	struct mesh_check_frame frame;
	char text[MESH_ADDR_TEXT_MAX];

	if (client->noise) {
		memcpy(client->node, asked->hello.node, sizeof(client->node));
		output_clean(client->node);
		peer_self_refresh(
			&serve->self); /* the NICs may have changed since the last check */
		nic = peer_self_nic(&serve->self, &client->local);
		/* A check connects more than once. */
		if (!mesh_addr_equal(&serve->announced, &client->remote)) {
			printf("node %s (%s) checks %s\n", client->node,
			       mesh_addr_text(&client->remote, text),
			       nic ? nic->netdev : "this node");
			fflush(stdout);
		}
		serve->announced = client->remote;
	}
	client->noise = false;
	memset(&frame, 0, sizeof(frame));
	peer_self_hello(&serve->self, &frame.hello);
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_HELLO, asked->header.number);
}

static int facing_answer(struct serve *serve, struct serve_client *client, uint32_t number)
{
	struct mesh_check_frame frame;
	struct mesh_check_facing *facing = &frame.facing;
	int i, k;

	memset(&frame, 0, sizeof(frame));
	for (i = 0; i < serve->num_who; i++)
		for (k = 0; k < serve->facing[i].num_heard; k++)
			if (facing->num_cables < MESH_NICS_MAX)
				facing->cables[facing->num_cables++] = serve->facing[i].heard[k];
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_FACING, number);
}

/* ---- datagrams ---------------------------------------------------------------------------- */

static int udp_open(struct serve_client *client, const struct mesh_check_frame *asked)
{
	struct mesh_check_frame frame;
	uint16_t port = 0;
	int ret;

	if (client->udp_fd >= 0)
		close(client->udp_fd);
	client->udp_fd = -1;
	ret = peer_udp_open(&client->local, &port);
	if (ret < 0)
		return peer_stream_send_error(&client->stream, asked->header.number, ret, "");
	client->udp_fd = ret;
	client->token = asked->udp.token;
	memset(&frame, 0, sizeof(frame));
	frame.udp.port = port;
	frame.udp.token = client->token;
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_UDP_READY,
				asked->header.number);
}

/* Sends only to the address of this connection, so that a checker cannot attack a third node. */
static int udp_send(struct serve_client *client, const struct mesh_check_frame *asked)
{
	struct mesh_check_frame frame;
	struct mesh_addr to = client->remote;
	int ret = -ENOTCONN;

	if (client->udp_fd >= 0 && asked->udp.size <= PEER_UDP_MAX)
		ret = peer_udp_send(client->udp_fd, &to, asked->udp.port, client->token,
				    asked->udp.id, asked->udp.size);
	memset(&frame, 0, sizeof(frame));
	frame.udp = asked->udp;
	frame.udp.error = (uint32_t)-ret;
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_UDP_SENT, asked->header.number);
}

static int udp_report(struct serve_client *client)
{
	struct mesh_check_frame frame;
	uint32_t id, size;

	if (client->udp_fd < 0 ||
	    peer_udp_receive(client->udp_fd, &client->remote, client->token, &id, &size))
		return 0;
	memset(&frame, 0, sizeof(frame));
	frame.udp.id = id;
	frame.udp.size = size;
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_UDP_GOT, id);
}

/* ---- bandwidth of TCP --------------------------------------------------------------------- */

static int bulk_end_send(struct serve_client *client, uint32_t number)
{
	struct mesh_check_frame frame;
	int ret;

	memset(&frame, 0, sizeof(frame));
	frame.bulk.bytes = client->bulk_bytes;
	frame.bulk.ns = mesh_clock_ns() - client->bulk_started_ns;
	ret = peer_stream_send(&client->stream, &frame, MESH_CHECK_BULK_END, number);
	client->bulk_bytes = client->bulk_until_ns = 0;
	return ret;
}

static void bulk_take(struct serve_client *client, uint32_t length)
{
	if (!client->bulk_bytes)
		client->bulk_started_ns = mesh_clock_ns();
	client->bulk_bytes += length;
}

static int bulk_begin(struct serve_client *client, const struct mesh_check_frame *asked)
{
	client->bulk_bytes = 0;
	client->bulk_started_ns = mesh_clock_ns();
	client->bulk_until_ns = client->bulk_started_ns + asked->bulk.ms * 1000000ull;
	client->bulk_number = asked->header.number;
	return 0;
}

/* As much as the socket takes. */
static int bulk_push(struct serve_client *client)
{
	static const uint8_t zeros[MESH_CHECK_PAYLOAD_MAX];
	int ret = 0;

	while (!ret && client->bulk_until_ns && !client->stream.out_size) {
		if (mesh_clock_ns() >= client->bulk_until_ns)
			return bulk_end_send(client, client->bulk_number);
		ret = peer_stream_send_opaque(&client->stream, MESH_CHECK_BULK, client->bulk_number,
					      zeros, sizeof(zeros));
		client->bulk_bytes += sizeof(zeros);
	}
	return ret;
}

/* ---- the child that measures over relays ------------------------------------------------- */

bool serve_relayed_runs(struct serve *serve)
{
	if (serve->relayed_pid > 0 && waitpid(serve->relayed_pid, NULL, WNOHANG))
		serve->relayed_pid = 0;
	return serve->relayed_pid > 0;
}

/* In the child: other threads held what locks they held, so only system calls are made. */
__attribute__((noreturn)) static void child_become(int fd, char *const *argv)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (!fcntl(fd, F_SETFD, 0))
		execv("/proc/self/exe", argv);
	_exit(127);
}

/*
 * The process joins the mesh as a guest for that, which one does once: a child takes the connection
 * over that has asked RELAYED_BEGIN, `fi_mesh serve-relayed`, and answers. Returns 0: the caller
 * closes its end. A negative errno: nothing has changed.
 */
static int child_begin(struct serve *serve, const struct serve_client *client,
		       const struct mesh_check_frame *asked)
{
	char fd[16], number[16], job[32], program[] = "fi_mesh", command[] = "serve-relayed";
	char *const argv[] = {program, command, fd, number, job, NULL};
	pid_t pid;

	/* What was read, or is to be written, is in this process. */
	if (client->stream.in_size != client->stream.in_taken || client->stream.out_size)
		return -EPROTO;
	snprintf(fd, sizeof(fd), "%d", client->stream.fd);
	snprintf(number, sizeof(number), "%" PRIu32, asked->header.number);
	snprintf(job, sizeof(job), "%" PRIu64, asked->relayed.job);
	pid = fork();
	if (!pid)
		child_become(client->stream.fd, argv);
	if (pid < 0)
		return -errno;
	serve->relayed_pid = pid;
	return 0;
}

/* ---- libfabric ---------------------------------------------------------------------------- */

static bool fabric_is_taken(struct serve *serve, const struct serve_client *client)
{
	int i;

	if (serve_relayed_runs(serve))
		return true;

	for (i = 0; i < SERVE_CLIENTS_MAX; i++)
		if (&serve->clients[i] != client && serve->clients[i].stream.fd >= 0 &&
		    serve->clients[i].fabric)
			return true;
	return false;
}

static int fabric_open(struct serve *serve, struct serve_client *client,
		       const struct mesh_check_frame *asked)
{
	const struct mesh_nic *nic = peer_self_nic(&serve->self, &client->local);
	char text[MESH_CHECK_TEXT_MAX] = "";
	uint32_t number = asked->header.number;
	struct mesh_check_frame frame;
	int ret;

	/* Two measurements at the same time would distort each other. */
	if (fabric_is_taken(serve, client))
		return peer_stream_send_error(&client->stream, number, -EBUSY,
					      "another node is measuring");
	if (!nic)
		return peer_stream_send_error(&client->stream, number, -ENODEV,
					      "that is not an address of a mesh NIC");
	fabric_close(client);
	ret = peer_fabric_open(nic, (enum mesh_provider_id)asked->fabric.provider, &client->fabric,
			       text);
	if (ret)
		return peer_stream_send_error(&client->stream, number, ret, text);
	ret = peer_fabric_meet(client->fabric, &client->remote, &asked->fabric);
	if (ret) {
		fabric_close(client);
		return peer_stream_send_error(&client->stream, number, ret,
					      "libfabric does not take your endpoint");
	}
	memset(&frame, 0, sizeof(frame));
	peer_fabric_offer(client->fabric, &frame.fabric);
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_FABRIC_READY, number);
}

static int fabric_run(struct serve_client *client, const struct mesh_check_frame *asked)
{
	if (!client->fabric || client->running)
		return peer_stream_send_error(&client->stream, asked->header.number, -ENOTCONN,
					      "no endpoint is open");
	peer_fabric_write(client->fabric, asked->fabric.ms);
	client->running = true;
	client->run_number = asked->header.number;
	return 0;
}

static int ran_send(struct serve_client *client, uint32_t number, uint64_t bytes, uint64_t ns)
{
	struct mesh_check_frame frame;

	memset(&frame, 0, sizeof(frame));
	if (client->fabric)
		frame.fabric.cpu_permille =
			(uint32_t)(1000 * peer_fabric_cpu_share(client->fabric));
	frame.fabric.bytes = bytes;
	frame.fabric.ns = ns;
	return peer_stream_send(&client->stream, &frame, MESH_CHECK_FABRIC_RAN, number);
}

static int fabric_advance(struct serve_client *client)
{
	uint64_t bytes, ns;
	int ret;

	if (!client->fabric)
		return 0;
	if (!client->running) {
		mesh_domain_poll(peer_fabric_domain(client->fabric));
		return 0;
	}
	ret = peer_fabric_step(client->fabric, &bytes, &ns);
	if (ret == -EAGAIN)
		return 0;
	client->running = false;
	return ret ? peer_stream_send_error(&client->stream, client->run_number, ret, "")
		   : ran_send(client, client->run_number, bytes, ns);
}

/* ---- over relays ------------------------------------------------------------------------- */

/* A child takes the connection: then it is closed here, which -ECONNRESET does. */
static int relayed_begin(struct serve *serve, struct serve_client *client,
			 const struct mesh_check_frame *asked)
{
	uint32_t number = asked->header.number;
	int ret;

	if (fabric_is_taken(serve, client) || client->fabric)
		return peer_stream_send_error(&client->stream, number, -EBUSY,
					      "another node is measuring");
	ret = child_begin(serve, client, asked);
	return ret ? peer_stream_send_error(&client->stream, number, ret, "") : -ECONNRESET;
}

/* ---- frames ------------------------------------------------------------------------------- */

static int frame_answer(struct serve *serve, struct serve_client *client,
			const struct mesh_check_frame *asked)
{
	uint32_t number = asked->header.number;

	if (client->noise && asked->header.type != MESH_CHECK_HELLO)
		return -EPROTO;
	switch (asked->header.type) {
	case MESH_CHECK_HELLO:
		return hello_answer(serve, client, asked);
	case MESH_CHECK_FACING:
		return facing_answer(serve, client, number);
	case MESH_CHECK_ECHO:
		return peer_stream_send_opaque(&client->stream, MESH_CHECK_ECHO, number,
					       asked->opaque, asked->header.length);
	case MESH_CHECK_UDP_OPEN:
		return udp_open(client, asked);
	case MESH_CHECK_UDP_SEND:
		return udp_send(client, asked);
	case MESH_CHECK_BULK:
		bulk_take(client, asked->header.length);
		return 0;
	case MESH_CHECK_BULK_END:
		return bulk_end_send(client, number);
	case MESH_CHECK_BULK_ASK:
		return bulk_begin(client, asked);
	case MESH_CHECK_FABRIC_OPEN:
		return fabric_open(serve, client, asked);
	case MESH_CHECK_FABRIC_RUN:
		return fabric_run(client, asked);
	case MESH_CHECK_FABRIC_CLOSE:
		fabric_close(client);
		return ran_send(client, number, 0, 0);
	case MESH_CHECK_RELAYED_BEGIN:
		return relayed_begin(serve, client, asked);
	default:
		return -EPROTO;
	}
}

/* Returns 0 once no more frames are there, or a negative errno: the connection must be closed. */
static int frames_answer(struct serve *serve, struct serve_client *client)
{
	struct mesh_check_frame frame;
	int i, ret;

	for (i = 0; i < FRAMES_MAX; i++) {
		ret = peer_stream_next(&client->stream, &frame);
		if (ret == -EPROTONOSUPPORT)
			peer_stream_refuse_version(&client->stream);
		if (ret)
			return ret == -EAGAIN ? 0 : ret;
		client->idle_until_ms = mesh_clock_ms() + SERVE_IDLE_MS;
		ret = frame_answer(serve, client, &frame);
		if (ret)
			return ret;
	}
	return 0;
}

void serve_client_advance(struct serve *serve, struct serve_client *client)
{
	int ret = peer_stream_flush(&client->stream);

	if (!ret)
		ret = frames_answer(serve, client);
	if (!ret)
		ret = udp_report(client);
	if (!ret)
		ret = bulk_push(client);
	if (!ret)
		ret = fabric_advance(client);
	if (ret)
		serve_client_close(serve, client);
}

bool serve_client_is_busy(const struct serve_client *client)
{
	return client->stream.fd >= 0 && client->fabric;
}

void serve_client_tick(struct serve *serve, struct serve_client *client, uint64_t now_ms)
{
	if (client->stream.fd < 0)
		return;
	if (now_ms >= client->idle_until_ms || now_ms >= client->until_ms)
		serve_client_close(serve, client);
}
