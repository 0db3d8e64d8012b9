/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - `fi_mesh serve`: answers `fi_mesh check --peer` of other nodes, and the questions of
 * neighbours, until Ctrl-C.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "setup/net.h"
#include "wire/neighbour.h"

#include "commands.h"
#include "common/interrupt.h"
#include "common/options.h"
#include "common/output.h"
#include "peer/self.h"
#include "peer/stream.h"
#include "peer/wire.h"
#include "serve/client.h"
#include "serve/http.h"
#include "serve/neighbours.h"

static const char *reason_text(int error)
{
	if (error == -EPERM)
		return "NCCL_MESH_RELAY=off or NCCL_MESH_NEIGHBOURS=off is set";
	if (error == -ENODEV)
		return "no NIC of this node can carry the mesh; `fi_mesh nics` says why";
	return strerror(-error);
}

/*
 * Begins to relay, in threads of the plugin's own, and says for whom.
 *
 * Returns 0; then mesh_net_close() ends it, within 2 s. A negative errno (reported).
 */
static int serve_relay_open(struct mesh_net **relay)
{
	int ret = mesh_net_relay_open(relay);

	if (ret)
		fprintf(stderr, "fi_mesh serve: cannot relay: %s\n", reason_text(ret));
	else
		printf("relaying for %s\n",
		       mesh_net_relays_all(*relay)
			       ? "all jobs"
			       : "the job that the environment names, and for no other");
	return ret;
}

static const char who[] = "fi_mesh serve";

static const char usage_text[] =
	"usage: fi_mesh serve [--relay] [--listen ADDR]... [--port PORT]\n"
	"                     [--http ADDR [--http-port PORT]]\n"
	"\n"
	"Answers `fi_mesh check --peer` of other nodes, and the questions of `fi_mesh\n"
	"neighbours` and of jobs which node is here, until Ctrl-C. Listens on the\n"
	"addresses of the NICs that carry the mesh, and on no others.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 ended by a signal; 1 it cannot listen or relay; 2 usage error.\n";

/* Of the page; not assigned by IANA. The two before it are `fi_mesh serve`'s own. */
#define HTTP_PORT 18622
/* Deadlines are checked at this interval. */
#define TICK_MS 500
#define POLLFDS_MAX (2 + SERVE_SOCKETS_MAX + 2 * SERVE_CLIENTS_MAX)

struct options {
	struct mesh_addr listen[SERVE_LISTEN_MAX];
	int num_listen;
	uint16_t port;
	struct mesh_addr http; /* family NONE: no page */
	uint16_t http_port;
	bool relay;
};

/* ---- options ------------------------------------------------------------------------------ */

static int listen_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	if (options->num_listen == SERVE_LISTEN_MAX)
		return arguments_misuse(who, "too many addresses: %s", text);
	if (mesh_addr_parse(text, &options->listen[options->num_listen]))
		return arguments_misuse(who, "not an IP address: %s", text);
	options->num_listen++;
	return -1;
}

static int http_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	if (mesh_addr_parse(text, &options->http))
		return arguments_misuse(who, "--http: not an IP address: %s", text);
	return -1;
}

static const struct option_row option_rows[] = {
	{"relay", 0, NULL,
	 "relay between other nodes as a rank does, although none runs\n"
	 "here: for the job of this environment's launcher variables,\n"
	 "such as MASTER_ADDR and MASTER_PORT; without these, or with\n"
	 "NCCL_MESH_RELAY=any, for all",
	 OPTION_FLAG(struct options, relay)},
	{"listen", 0, "ADDR",
	 "listen on this address of the node, too: of its management\n"
	 "network, so that it can be asked while no cable works",
	 OPTION_HANDLER(listen_take)},
	{"port", 0, "PORT", "TCP port (default 18620); the same for `check`",
	 OPTION_NUMBER(struct options, port, 1, UINT16_MAX)},
	{"http", 0, "ADDR",
	 "show the mesh, its rates, paths and checks in a browser,\n"
	 "read-only, on this address of the management network (off)",
	 OPTION_HANDLER(http_take)},
	{"http-port", 0, "PORT", "TCP port of the page (default 18622)",
	 OPTION_NUMBER(struct options, http_port, 1, UINT16_MAX)},
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/* Returns an exit status, or -1 to go on. */
static int options_parse(int argc, char **argv, struct options *options)
{
	memset(options, 0, sizeof(*options));
	options->port = MESH_CHECK_PORT;
	options->http_port = HTTP_PORT;
	return option_table_parse(&option_table, argc, argv, options, NULL);
}

/* ---- listening ---------------------------------------------------------------------------- */

static bool listens_on(const struct serve *serve, const struct mesh_addr *addr)
{
	int i;

	for (i = 0; i < serve->num_sockets; i++)
		if (mesh_addr_equal(&serve->sockets[i].addr, addr))
			return true;
	return false;
}

/* The remedy for @error, or "". */
static const char *listen_hint(int error)
{
	if (error == -EADDRINUSE)
		return "; is another `fi_mesh serve` running?";
	if (error == -EADDRNOTAVAIL)
		return "; no interface of this node has it (ip address)";
	return "";
}

static int listen_on(struct serve *serve, const struct mesh_addr *addr, const char *netdev)
{
	char text[MESH_ADDR_TEXT_MAX];
	int fd = -ENOSPC;

	if (listens_on(serve, addr)) /* --listen may name a NIC's own address */
		return 0;
	if (serve->num_sockets < SERVE_SOCKETS_MAX)
		fd = peer_socket_listen(addr, serve->port);
	mesh_addr_text(addr, text);
	if (fd < 0) {
		fprintf(stderr, "%s: cannot listen on %s, port %u%s%s: %s%s\n", who, text,
			serve->port, netdev ? ", " : "", netdev ? netdev : "", strerror(-fd),
			listen_hint(fd));
		return fd;
	}
	printf("listening on %s%s%s%s, port %u\n", text, netdev ? " (" : "", netdev ? netdev : "",
	       netdev ? ")" : "", serve->port);
	serve->sockets[serve->num_sockets++] = (struct serve_socket){.fd = fd, .addr = *addr};
	return 0;
}

/*
 * Listens on the source address, which links are checked with, and on the NIC's other addresses,
 * which may be named as well.
 */
static int listen_on_nic(struct serve *serve, const struct mesh_nic *nic)
{
	int i, ret = listen_on(serve, &nic->source, nic->netdev);

	for (i = 0; !ret && i < nic->num_addrs; i++)
		if (!mesh_addr_equal(&nic->addrs[i], &nic->source))
			listen_on(serve, &nic->addrs[i], nic->netdev);
	return ret;
}

/* On those that it does not listen on yet: a new address is tentative for a while. */
static int nics_listen(struct serve *serve)
{
	int i, ret = 0;

	for (i = 0; !ret && i < serve->self.num_nics; i++)
		ret = listen_on_nic(serve, &serve->self.table.nics[i]);
	return ret;
}

static int serve_open(struct serve *serve, const struct options *options)
{
	int i, ret;

	memset(serve, 0, sizeof(*serve));
	for (i = 0; i < SERVE_CLIENTS_MAX; i++)
		serve->clients[i].stream.fd = -1;
	serve->port = options->port;
	ret = peer_self_open(&serve->self);
	if (ret)
		return ret;
	for (i = 0; !ret && i < options->num_listen; i++)
		ret = listen_on(serve, &options->listen[i], NULL);
	if (!ret)
		ret = nics_listen(serve);
	if (ret)
		return ret; /* half a server would mislead */
	if (!serve->num_sockets) {
		fprintf(stderr,
			"%s: no NIC of this node can carry the mesh; `fi_mesh nics` says why, "
			"--listen names another address\n",
			who);
		return -ENODEV;
	}
	serve->neighbours = serve_neighbours_open(&serve->self);
	/* What has changed before its watch was open is in no event: the NICs are read again. */
	serve->nics_changed = true;
	if (serve->neighbours)
		printf("answering neighbours, UDP port %d\n", MESH_NEIGHBOUR_PORT);
	if (options->relay)
		ret = serve_relay_open(&serve->relay);
	if (!ret && options->http.family != MESH_FAMILY_NONE) {
		serve->http = serve_http_open(&options->http, options->http_port, &serve->self);
		ret = serve->http ? 0 : -ENOTSUP;
	}
	fflush(stdout);
	return ret;
}

static void serve_close(struct serve *serve)
{
	int i;

	for (i = 0; i < SERVE_CLIENTS_MAX; i++)
		if (serve->clients[i].stream.fd >= 0)
			serve_client_close(serve, &serve->clients[i]);
	for (i = 0; i < serve->num_sockets; i++)
		close(serve->sockets[i].fd);
	serve_http_close(serve->http);
	mesh_net_close(serve->relay);
	serve_neighbours_close(serve->neighbours);
	peer_self_close(&serve->self);
}

/* ---- the loop ----------------------------------------------------------------------------- */

/* Connections without a free slot wait in the kernel. */
static bool may_accept(const struct serve *serve)
{
	int i;

	if (serve->paused)
		return false;
	for (i = 0; i < SERVE_CLIENTS_MAX; i++)
		if (serve->clients[i].stream.fd < 0)
			return true;
	return false;
}

/* The socket stays readable: without a pause, the loop would only try again. */
static void accept_failed(struct serve *serve, int error)
{
	if (error == EAGAIN || error == EINTR)
		return;
	serve->paused = true;
	if (!serve->pause_warned)
		fprintf(stderr, "%s: cannot take a connection: %s%s\n", who, strerror(error),
			mesh_descriptors_hint());
	serve->pause_warned = true;
}

static void clients_accept(struct serve *serve, const struct serve_socket *listener)
{
	struct sockaddr_storage from;
	struct mesh_addr remote;
	socklen_t len;
	int fd;

	while (may_accept(serve)) {
		len = sizeof(from);
		fd = accept4(listener->fd, (struct sockaddr *)&from, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == ECONNABORTED)
			continue;
		if (fd < 0) {
			accept_failed(serve, errno);
			return;
		}
		serve->pause_warned = false;
		if (mesh_addr_from_sockaddr((struct sockaddr *)&from, len, &remote, NULL))
			close(fd);
		else
			serve_client_open(serve, fd, &listener->addr, &remote);
	}
}

/* Returns how many descriptors there are to wait for. */
static int poll_fds_fill(const struct serve *serve, struct pollfd *fds)
{
	bool accepting = may_accept(serve);
	int i, num = 0;

	fds[num++] =
		(struct pollfd){.fd = serve_neighbours_fd(serve->neighbours), .events = POLLIN};
	for (i = 0; accepting && i < serve->num_sockets; i++)
		fds[num++] = (struct pollfd){.fd = serve->sockets[i].fd, .events = POLLIN};
	for (i = 0; i < SERVE_CLIENTS_MAX; i++) {
		const struct serve_client *client = &serve->clients[i];

		if (client->stream.fd < 0)
			continue;
		fds[num++] = (struct pollfd){.fd = client->stream.fd,
					     .events = client->stream.out_size ? POLLIN | POLLOUT
									       : POLLIN};
		fds[num++] = (struct pollfd){.fd = client->udp_fd, .events = POLLIN};
	}
	return num;
}

/* Each tick at most, and only after a change: reading takes milliseconds. */
static void nics_follow(struct serve *serve)
{
	if (!serve->nics_changed)
		return;
	serve->nics_changed = false;
	if (peer_self_refresh(&serve->self))
		return;
	serve_neighbours_refresh(serve->neighbours, &serve->self);
	nics_listen(serve);
	fflush(stdout);
}

static void serve_run(struct serve *serve)
{
	struct pollfd fds[POLLFDS_MAX];
	uint64_t now_ms, tick_ms = 0;
	int i, num;

	for (;;) {
		num = poll_fds_fill(serve, fds);
		if (interrupt_poll(fds, num, tick_ms) == -EINTR)
			return;
		serve->nics_changed |= serve_neighbours_changed(serve->neighbours);
		for (i = 0; i < serve->num_sockets; i++)
			clients_accept(serve, &serve->sockets[i]);
		for (i = 0; i < SERVE_CLIENTS_MAX; i++)
			if (serve->clients[i].stream.fd >= 0)
				serve_client_advance(serve, &serve->clients[i]);
		now_ms = mesh_clock_ms();
		if (now_ms < tick_ms)
			continue;
		tick_ms = now_ms + TICK_MS;
		serve_child_runs(serve); /* leaves no zombie */
		serve->paused = false;
		nics_follow(serve);
		for (i = 0; i < SERVE_CLIENTS_MAX; i++)
			serve_client_tick(serve, &serve->clients[i], now_ms);
	}
}

int command_serve(int argc, char **argv)
{
	int status, ret;
	struct options options;
	struct serve serve;

	status = options_parse(argc, argv, &options);
	if (status >= 0)
		return status;
	interrupt_catch();
	ret = serve_open(&serve, &options);
	if (!ret)
		serve_run(&serve);
	status = ret ? output_failure(who, ret) : COMMAND_FINE;
	serve_close(&serve);
	if (status == COMMAND_FINE)
		printf("%llu connections answered, %llu rejected\n",
		       (unsigned long long)serve.served, (unsigned long long)serve.strangers);
	return output_finish(who, status);
}
