/* SPDX-License-Identifier: Apache-2.0 */
/* test_transport.c - both ends of connections in one process, over the loopback interface. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/peer.h"
#include "control/peer_life.h"
#include "setup/connect.h"
#include "setup/listener.h"
#include "setup/net.h"
#include "setup/setup.h"
#include "setup/work.h"
#include "transport/comm.h"
#include "transport/linger.h"
#include "transport/receive.h"
#include "transport/registration.h"
#include "transport/request.h"
#include "transport/send.h"

#include "comm_inside.h"
#include "transport_pair.h"

static void test_messages_of_all_sizes(void **state)
{
	static const size_t sizes[] = {
		0,    1,    7,	  8,	 127,	  128,		 129,		4096,
		8191, 8192, 8193, 65536, 1 << 20, (1 << 20) + 1, (5 << 20) + 13};
	struct pair pair;
	size_t i;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		message_move(&pair, sizes[i], sizes[i], false);
		message_move(&pair, sizes[i], sizes[i] + 4096, false);
		message_move(&pair, sizes[i], sizes[i], true);
		message_move(&pair, sizes[i], sizes[i] + 100, true);
	}
	pair_close(&pair);
}

/* Grants are held back after a run of small messages: the large one must ask for its own. */
static void test_large_after_many_small(void **state)
{
	struct pair pair;
	int i;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < 200; i++) {
		message_move(&pair, 64, 4096, i % 2);
		if (i % 17 == 16)
			message_move(&pair, 100000, 200000, i % 3);
	}
	pair_close(&pair);
}

/* Eight in flight, as NCCL has them; the run of small ones ends with large ones. */
static void test_window_turns_large(void **state)
{
	static const size_t sizes[] = {8, 8192, 8193, 100, 200000, 0, 8193};
	enum {
		DEPTH = 8,
		ROUNDS = 40
	};
	struct transfer t[DEPTH];
	struct pair pair;
	size_t s;
	int i, round;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < DEPTH; i++)
		transfer_open(&pair, &t[i], 200000, 210000);
	for (round = 0; round < ROUNDS * (int)(sizeof(sizes) / sizeof(sizes[0])); round++) {
		s = (size_t)round / ROUNDS;
		for (i = 0; i < DEPTH; i++) {
			pattern_fill(t[i].source, sizes[s], (uint32_t)(round * DEPTH + i));
			assert_int_equal(mesh_comm_receive(pair.receive, t[i].target, 210000,
							   t[i].to, &t[i].receive),
					 0);
			assert_non_null(t[i].receive);
		}
		for (i = 0; i < DEPTH; i++)
			assert_int_equal(mesh_comm_send(pair.send, t[i].source, sizes[s], t[i].from,
							&t[i].send),
					 0);
		for (i = 0; i < DEPTH; i++) {
			request_finish(t[i].receive, sizes[s]);
			request_finish(t[i].send, sizes[s]);
			assert_memory_equal(t[i].source, t[i].target, sizes[s]);
		}
	}
	for (i = 0; i < DEPTH; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

/* A receiver that held its grants back for more than a round of requests. */
static void test_large_after_rounds_of_small(void **state)
{
	enum {
		DEPTH = 8
	};
	struct transfer t[DEPTH];
	struct pair pair;
	size_t size;
	int i, round;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < DEPTH; i++)
		transfer_open(&pair, &t[i], 10000, 20000);
	for (round = 0; round < 13; round++) {
		size = round < 12 ? 100 : 9000;
		for (i = 0; i < DEPTH; i++)
			assert_int_equal(mesh_comm_receive(pair.receive, t[i].target, 20000,
							   t[i].to, &t[i].receive),
					 0);
		for (i = 0; i < DEPTH; i++)
			assert_int_equal(
				mesh_comm_send(pair.send, t[i].source, size, t[i].from, &t[i].send),
				0);
		for (i = 0; i < DEPTH; i++) {
			request_finish(t[i].receive, size);
			request_finish(t[i].send, size);
		}
	}
	for (i = 0; i < DEPTH; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

/* What waits for a grant that is held back must ask for it, even after an old grant was used up. */
static void test_held_grant_is_asked_for(void **state)
{
	enum {
		MESSAGES = 9,
		SMALL = 4,
		LARGE_SIZE = 90000
	};
	struct transfer t[MESSAGES];
	struct pair pair;
	size_t size;
	int i;

	(void)state;
	pair_open(&pair);
	for (i = 0; i < MESSAGES; i++)
		transfer_open(&pair, &t[i], LARGE_SIZE, LARGE_SIZE);
	for (i = 0; i < MESSAGES; i++) {
		/* Receives 0 to 4 are granted at once; then come four small messages in a row. */
		assert_int_equal(mesh_comm_receive(pair.receive, t[i].target, LARGE_SIZE, t[i].to,
						   &t[i].receive),
				 0);
		if (i != SMALL)
			continue;
		for (i = 0; i < SMALL; i++) {
			assert_int_equal(
				mesh_comm_send(pair.send, t[i].source, 64, t[i].from, &t[i].send),
				0);
			request_finish(t[i].receive, 64);
		}
	}
	for (i = SMALL; i < MESSAGES; i++)
		assert_int_equal(
			mesh_comm_send(pair.send, t[i].source, LARGE_SIZE, t[i].from, &t[i].send),
			0);
	for (i = 0; i < MESSAGES; i++) {
		size = i < SMALL ? 64 : LARGE_SIZE;
		if (i >= SMALL)
			request_finish(t[i].receive, size);
		request_finish(t[i].send, size);
	}
	for (i = 0; i < MESSAGES; i++)
		transfer_close(&pair, &t[i]);
	pair_close(&pair);
}

/* Tests the request until it is done or has failed. */
static int64_t request_end(struct mesh_request *request)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	int64_t size;

	do {
		size = mesh_request_test(request);
	} while (size == MESH_REQUEST_PENDING && mesh_clock_ms() < deadline);
	return size;
}

/* A sender may send, close and end before the receiver has posted anything. */
static void test_early_message_survives_close(void **state)
{
	struct mesh_request *late;
	struct transfer t;
	struct pair pair;

	(void)state;
	pair_open(&pair);
	transfer_open(&pair, &t, 64, 64);
	pattern_fill(t.source, 64, 7);
	assert_int_equal(mesh_comm_send(pair.send, t.source, 64, t.from, &t.send), 0);
	request_finish(t.send, 64);
	mesh_registration_close(pair.send, t.from);
	t.from = NULL;
	mesh_comm_close(pair.send);
	pair.send = NULL;
	assert_int_equal(mesh_comm_receive(pair.receive, t.target, 64, t.to, &t.receive), 0);
	request_finish(t.receive, 64);
	assert_memory_equal(t.source, t.target, 64);
	/* Nothing more will come. */
	assert_int_equal(mesh_comm_receive(pair.receive, t.target, 64, t.to, &late), 0);
	assert_int_equal(request_end(late), -EPIPE);
	transfer_close(&pair, &t);
	pair_close(&pair);
}

/* Nor need it have accepted anything. */
static void test_early_message_survives_close_before_accept(void **state)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	uint8_t handle[MESH_HANDLE_BYTES];
	struct mesh_listener *listener;
	struct mesh_request *request;
	struct pair pair = {.net = NULL};
	char out[64], in[64];
	struct mesh_registration *from, *to;

	(void)state;
	assert_int_equal(mesh_net_open(&pair.net), 0);
	assert_int_equal(mesh_net_listen(pair.net, 0, handle, &listener), 0);
	while (!pair.send) {
		assert_true(mesh_clock_ms() < deadline);
		assert_int_equal(mesh_net_connect(pair.net, 0, handle, &pair.send), 0);
	}
	memset(out, 0x5a, sizeof(out));
	assert_int_equal(mesh_registration_open(pair.send, out, sizeof(out), &from), 0);
	assert_int_equal(mesh_comm_send(pair.send, out, sizeof(out), from, &request), 0);
	request_finish(request, sizeof(out));
	mesh_comm_close(pair.send);
	pair.send = NULL;
	assert_int_equal(mesh_listener_accept(listener, &pair.receive), 0);
	assert_non_null(pair.receive);
	assert_int_equal(mesh_registration_open(pair.receive, in, sizeof(in), &to), 0);
	assert_int_equal(mesh_comm_receive(pair.receive, in, sizeof(in), to, &request), 0);
	request_finish(request, sizeof(in));
	assert_memory_equal(in, out, sizeof(in));
	mesh_listener_close(listener);
	pair_close(&pair);
}

/* To look at a descriptor must not end the host's locks on its file. */
static void test_hosts_file_locks_survive(void **state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[] = "/tmp/mesh-lock-XXXXXX";
	int fd = mkstemp(path), status;
	struct pair pair;
	pid_t child;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETLK, &lock), 0);
	pair_open(&pair);
	child = fork();
	if (!child) {
		fcntl(fd, F_GETLK, &lock);
		_exit(lock.l_type == F_UNLCK);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	pair_close(&pair);
	close(fd);
	unlink(path);
}

/* Half closed sockets of the first connection's peer must not poison the second's. */
static void test_connects_again_after_a_reset(void **state)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	struct pair first, second;
	struct mesh_peer *peer;
	struct mesh_process *process;
	bool buried = false;

	(void)state;
	pair_open(&first);
	process = first.send->process;
	mesh_lock_take(&process->lock);
	LIST_FOREACH(peer, &process->peers, entry) {
		if (!peer->incoming)
			shutdown(peer->watch.fd, SHUT_RDWR);
	}
	mesh_lock_release(&process->lock);
	pair_open(&second);
	while (!buried) { /* what is left of the first has been cleared away */
		assert_true(mesh_clock_ms() < deadline);
		buried = *comm_inside(first.send).error != 0;
	}
	message_move(&second, 64, 64, false);
	message_move(&second, 100000, 100000, false);
	pair_close(&second);
	pair_close(&first);
}

static bool engine_is_awake(struct mesh_process *process)
{
	return atomic_load(&process->engine.awake);
}

/* However often something else wakes it: a second after NCCL's last poll, and not before. */
static void test_engine_rests_in_time(void **state)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS, before;
	struct mesh_process *process;
	struct pair pair;
	bool awake;
	int i;

	(void)state;
	pair_open(&pair);
	process = pair.send->process;
	before = mesh_clock_ms();
	message_move(&pair, 64, 64, false);
	mesh_lock_take(&process->lock);
	for (i = 0; i < 200; i++)
		mesh_setup_work.tick(process);
	mesh_lock_release(&process->lock);
	awake = engine_is_awake(process);
	/* Else this thread had no CPU for so long that it may have gone to sleep. */
	if (mesh_clock_ms() - before < 500)
		assert_true(awake);
	while (engine_is_awake(process))
		assert_true(mesh_clock_ms() < deadline);
	/* The caller that wakes it after a long time is about to poll. */
	before = mesh_clock_ms();
	mesh_engine_busy(&process->engine);
	mesh_lock_take(&process->lock);
	mesh_setup_work.tick(process);
	mesh_lock_release(&process->lock);
	awake = engine_is_awake(process);
	if (mesh_clock_ms() - before < 500)
		assert_true(awake);
	pair_close(&pair);
}

/* The error of a TCP connection from 127.0.0.1 to @port there; 0 if it is made. */
static int port_try(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), error;

	assert_true(fd >= 0);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	error = connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;
	close(fd);
	return error;
}

/* Without the handlers that close hidden descriptors in the child. */
static pid_t fork_plainly(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

/* A host forks, as loaders of training data do, and its children live on with what we had open. */
static void test_child_keeps_nothing_alive(void **state)
{
	int pipe_fds[2], status;
	struct pair pair;
	uint16_t port;
	pid_t child;
	char byte;

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	pair_open(&pair);
	port = pair.send->process->control_port;
	child = fork_plainly();
	if (!child) {
		close(pipe_fds[1]);
		_exit(read(pipe_fds[0], &byte, 1) != 0); /* until our end is closed */
	}
	assert_int_equal(port_try(port), 0);
	pair_close(&pair);
	assert_int_equal(port_try(port), ECONNREFUSED);
	close(pipe_fds[1]);
	close(pipe_fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* Only the parent has the control connections, and what the child does cannot affect them. */
static void test_child_lets_go(void **state)
{
	int fds[64], num = 0, i, status;
	struct mesh_peer *peer;
	struct mesh_process *process;
	struct pair pair;
	pid_t child;

	(void)state;
	pair_open(&pair);
	process = pair.send->process;
	mesh_lock_take(&process->lock);
	fds[num++] = process->engine.epoll_fd;
	fds[num++] = process->engine.wake_fd;
	fds[num++] = process->controls[0].watch.fd;
	fds[num++] = process->stats.fd;
	LIST_FOREACH(peer, &process->peers, entry)
		fds[num++] = peer->watch.fd;
	assert_true(num >= 6); /* both ends of a connection */
	/*
	 * Forked with the lock held: a child whose parent's engine held it would wait for it
	 * without end. What else the engine takes, it takes and releases under this one.
	 */
	child = fork();
	if (!child) {
		for (i = 0; i < num && !is_open(fds[i]); i++)
			;
		alarm(20);
		while (i == num && (peer = LIST_FIRST(&process->peers)))
			mesh_peer_free(peer);
		_exit(i != num);
	}
	mesh_lock_release(&process->lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (i = 0; i < num; i++)
		assert_true(is_open(fds[i]));
	message_move(&pair, 100000, 100000, false);
	pair_close(&pair);
}

/*
 * The end that was dialled knows the other's port: so that a fence can distinguish its socket from
 * others.
 */
static void test_dialled_port_is_known(void **state)
{
	uint64_t deadline = mesh_clock_ms() + LIMIT_MS;
	struct mesh_process *process;
	struct mesh_peer *peer;
	struct pair pair;
	uint16_t port = 0;

	(void)state;
	/* Also if an earlier life of the plugin ended before its report was due. */
	pair_open(&pair);
	process = pair.send->process;
	mesh_lock_take(&process->lock);
	mesh_engine_timer_set(&process->engine, &process->ports.timer, deadline + LIMIT_MS);
	mesh_lock_release(&process->lock);
	pair_close(&pair);
	pair_open(&pair);
	while (!port) {
		assert_true(mesh_clock_ms() < deadline);
		mesh_lock_take(&process->lock);
		LIST_FOREACH(peer, &process->peers, entry) {
			if (peer->incoming && peer->remote)
				port = peer->remote->dialled_from;
		}
		mesh_lock_release(&process->lock);
	}
	assert_int_not_equal(port, process->domains[0]->port);
	pair_close(&pair);
}

/* Signals are for the host's own threads: a handler of its may run anywhere else. */
static void test_engine_takes_no_signals(void **state)
{
	char path[300], line[256], name[32];
	struct dirent *entry;
	struct pair pair;
	int found = 0;
	DIR *tasks;
	FILE *file;

	(void)state;
	pair_open(&pair);
	tasks = opendir("/proc/self/task");
	assert_non_null(tasks);
	while ((entry = readdir(tasks))) {
		unsigned long long blocked = 0;

		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		*name = '\0';
		while (file && fgets(line, sizeof(line), file)) {
			sscanf(line, "Name: %31s", name);
			sscanf(line, "SigBlk: %llx", &blocked);
		}
		if (file)
			fclose(file);
		if (strcmp(name, "nccl-net-mesh") != 0)
			continue;
		found++;
		assert_true(blocked & 1ull << (SIGINT - 1));
		assert_true(blocked & 1ull << (SIGUSR1 - 1));
	}
	closedir(tasks);
	assert_true(found); /* a short thread that the engine has started has its name, too */
	pair_close(&pair);
}

static void test_net_opens_again(void **state)
{
	struct pair pair;
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		pair_open(&pair);
		message_move(&pair, 100000, 100000, false);
		pair_close(&pair);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_of_all_sizes),
		cmocka_unit_test(test_large_after_many_small),
		cmocka_unit_test(test_window_turns_large),
		cmocka_unit_test(test_large_after_rounds_of_small),
		cmocka_unit_test(test_held_grant_is_asked_for),
		cmocka_unit_test(test_early_message_survives_close),
		cmocka_unit_test(test_early_message_survives_close_before_accept),
		cmocka_unit_test(test_hosts_file_locks_survive),
		cmocka_unit_test(test_connects_again_after_a_reset),
		cmocka_unit_test(test_engine_rests_in_time),
		cmocka_unit_test(test_child_keeps_nothing_alive),
		cmocka_unit_test(test_child_lets_go),
		cmocka_unit_test(test_dialled_port_is_known),
		cmocka_unit_test(test_engine_takes_no_signals),
		cmocka_unit_test(test_net_opens_again),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
