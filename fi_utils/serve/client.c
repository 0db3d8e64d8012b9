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

#include "common/output.h"
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

void serve_client_close(struct serve *serve, struct serve_client *client)
{
	if (client->noise)
		serve->strangers++;
	else
		serve->served++;
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

/* ---- the child that measures -------------------------------------------------------------- */

bool serve_child_runs(struct serve *serve)
{
	if (serve->child_pid > 0 && waitpid(serve->child_pid, NULL, WNOHANG))
		serve->child_pid = 0;
	return serve->child_pid > 0;
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
 * over that has asked MEASURE_BEGIN, `fi_mesh serve-measure`, and answers.
 *
 * @nic: whose link is measured; NULL: over relays
 *
 * Returns 0: the caller closes its end. A negative errno: nothing has changed.
 */
static int child_begin(struct serve *serve, const struct serve_client *client,
		       const struct mesh_check_frame *asked, const struct mesh_nic *nic)
{
	char fd[16], number[16], job[32], program[] = "fi_mesh", command[] = "serve-measure";
	char netdev[MESH_CHECK_NETDEV_MAX];
	char *const argv[] = {program, command, fd, number, job, nic ? netdev : NULL, NULL};
	pid_t pid;

	/* What was read, or is to be written, is in this process. */
	if (client->stream.in_size != client->stream.in_taken || client->stream.out_size)
		return -EPROTO;
	snprintf(fd, sizeof(fd), "%d", client->stream.fd);
	snprintf(number, sizeof(number), "%" PRIu32, asked->header.number);
	snprintf(job, sizeof(job), "%" PRIu64, asked->measure.job);
	if (nic)
		snprintf(netdev, sizeof(netdev), "%s", nic->netdev);
	pid = fork();
	if (!pid)
		child_become(client->stream.fd, argv);
	if (pid < 0)
		return -errno;
	serve->child_pid = pid;
	return 0;
}

/* A child takes the connection: then it is closed here, which -ECONNRESET does. */
static int measure_begin(struct serve *serve, struct serve_client *client,
			 const struct mesh_check_frame *asked)
{
	const struct mesh_nic *nic = peer_self_nic(&serve->self, &client->local);
	uint32_t number = asked->header.number;
	int ret;

	/* Two measurements at the same time would distort each other. */
	if (serve_child_runs(serve))
		return peer_stream_send_error(&client->stream, number, -EBUSY,
					      "another node is measuring");
	if (asked->measure.over_relays)
		nic = NULL;
	else if (!nic)
		return peer_stream_send_error(&client->stream, number, -ENODEV,
					      "that is not an address of a mesh NIC");
	ret = child_begin(serve, client, asked, nic);
	return ret ? peer_stream_send_error(&client->stream, number, ret, "") : -ECONNRESET;
}

/* ---- frames ------------------------------------------------------------------------------- */

static int frame_answer(struct serve *serve, struct serve_client *client,
			const struct mesh_check_frame *asked)
{
	if (client->noise && asked->header.type != MESH_CHECK_HELLO)
		return -EPROTO;
	switch (asked->header.type) {
	case MESH_CHECK_HELLO:
		return hello_answer(serve, client, asked);
	case MESH_CHECK_UDP_OPEN:
		return udp_open(client, asked);
	case MESH_CHECK_UDP_SEND:
		return udp_send(client, asked);
	case MESH_CHECK_MEASURE_BEGIN:
		return measure_begin(serve, client, asked);
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
	if (ret)
		serve_client_close(serve, client);
}

void serve_client_tick(struct serve *serve, struct serve_client *client, uint64_t now_ms)
{
	if (client->stream.fd < 0)
		return;
	if (now_ms >= client->idle_until_ms || now_ms >= client->until_ms)
		serve_client_close(serve, client);
}
