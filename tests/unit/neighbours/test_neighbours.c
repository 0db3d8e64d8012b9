/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_neighbours.c - questions and answers between two nodes, which are network namespaces:
 *
 *   near [ab] ---- [ba] far
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "neighbours/neighbours.h"
#include "nic/nic.h"
#include "system/node.h"

#include "log_capture.h"
#include "namespace.h"
#include "unit.h"

#define PROVIDERS (1 << MESH_PROVIDER_VERBS_RXM | 1 << MESH_PROVIDER_TCP)
#define LIMIT_MS 60000
#define FLOOD 20000

/* A process of a node. */
struct rank {
	struct mesh_lock lock;
	struct mesh_engine engine;
	struct mesh_neighbours *neighbours;
	const char *netdev;
};

static int near_ns, far_ns;
static struct rank near, far;

static int timeout_never(void *owner)
{
	return -1;
}

static void tick_nothing(void *owner)
{
}

static const struct mesh_engine_work no_work = {.timeout = timeout_never, .tick = tick_nothing};

static void enter(int namespace)
{
	assert_int_equal(setns(namespace, CLONE_NEWNET), 0);
}

/* ---- ranks --------------------------------------------------------------------------------- */

static void nic_read(const char *netdev, struct mesh_nic *nic)
{
	struct mesh_nic *nics;
	int i, num;

	assert_int_equal(mesh_netlink_load(&nics, &num), 0);
	for (i = 0; i < num && strcmp(nics[i].netdev, netdev); i++)
		continue;
	assert_true(i < num);
	*nic = nics[i];
	free(nics);
}

/* In the present namespace, with the lock held. */
static void links_read(struct rank *rank, bool ask)
{
	struct mesh_neighbour_link link;
	struct mesh_nic nic;

	nic_read(rank->netdev, &nic);
	nic.source = nic.addrs[0];
	mesh_neighbour_link_describe(&rank->neighbours->self, &nic, 3, PROVIDERS, &link);
	mesh_neighbours_links_set(rank->neighbours, &link, 1, ask);
}

static void rank_start(struct rank *rank, int namespace, const char *node, const char *netdev,
		       uint64_t process_id, bool ask)
{
	struct mesh_neighbour_self self = {
		.node_id = (uint64_t)(namespace + 1),
		.site = "east",
		.job = 77,
		.process = {process_id, 77, 4711, 0, MESH_NEIGHBOUR_RANK, (uint32_t)process_id},
	};

	enter(namespace);
	snprintf(self.node, sizeof(self.node), "%s", node);
	rank->netdev = netdev;
	mesh_lock_init(&rank->lock);
	assert_int_equal(mesh_engine_open(&rank->engine, &rank->lock, &no_work, rank), 0);
	mesh_lock_take(&rank->lock);
	rank->neighbours = mesh_neighbours_open(&rank->engine, &self);
	assert_non_null(rank->neighbours);
	links_read(rank, ask);
	mesh_lock_release(&rank->lock);
	/* The thread stays in this namespace. */
	assert_int_equal(mesh_engine_start(&rank->engine), 0);
}

static void rank_stop(struct rank *rank)
{
	mesh_engine_stop(&rank->engine);
	mesh_lock_take(&rank->lock);
	mesh_neighbours_close(rank->neighbours);
	mesh_lock_release(&rank->lock);
	mesh_engine_close(&rank->engine);
	mesh_lock_destroy(&rank->lock);
}

static void ask(struct rank *rank, int namespace)
{
	enter(namespace);
	mesh_lock_take(&rank->lock);
	mesh_neighbours_ask(rank->neighbours);
	mesh_lock_release(&rank->lock);
}

/* Copies what the rank has heard first, if @processes or more are known there. */
static bool heard(struct rank *rank, int processes, struct mesh_heard *first)
{
	const struct mesh_asked *asked;
	bool is;
	int num;

	mesh_lock_take(&rank->lock);
	num = rank->neighbours->asking.num_links;
	asked = rank->neighbours->asking.asked;
	is = num && asked->num_heard && asked->heard[0]->about.total_processes == processes;
	if (is)
		*first = *asked->heard[0];
	mesh_lock_release(&rank->lock);
	return is;
}

static bool speaks(struct rank *rank)
{
	bool does;

	mesh_lock_take(&rank->lock);
	does = mesh_members_speak(&rank->neighbours->members);
	mesh_lock_release(&rank->lock);
	return does;
}

/* ---- tests --------------------------------------------------------------------------------- */

/* The kernel drops what a link sends before it runs, up to a second after it came up. */
static void link_await(int namespace, const char *netdev)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;
	struct mesh_nic nic;

	enter(namespace);
	nic_read(netdev, &nic);
	while (nic.state != MESH_NIC_RUNS && mesh_clock_ms() < deadline_ms) {
		poll(NULL, 0, 1);
		nic_read(netdev, &nic);
	}
	assert_int_equal(nic.state, MESH_NIC_RUNS);
}

static void nics_make(const char *addrgenmode)
{
	enter(near_ns);
	namespace_ip("link add ab mtu 1400 type veth peer name ba mtu 1400 netns /proc/%d/fd/%d",
		     (int)getpid(), far_ns);
	namespace_ip("link set ab addrgenmode %s up", addrgenmode);
	enter(far_ns);
	namespace_ip("link set ba addrgenmode %s up", addrgenmode);
	link_await(near_ns, "ab");
	link_await(far_ns, "ba");
}

static void addresses_add(void)
{
	enter(near_ns);
	namespace_ip("address add fe80::a/64 dev ab nodad");
	enter(far_ns);
	namespace_ip("address add fe80::b/64 dev ba nodad");
}

void tests_setup(void)
{
	log_capture_start();
	nics_make("none");
}

void tests_teardown(void)
{
	enter(near_ns);
	namespace_ip("link del ab");
}

/* One answer lists all processes of the node; when the speaker ends, another one answers. */
TEST(members)
{
	struct rank others[3];
	struct mesh_heard answer;
	struct mesh_links_answer links = {.num_ranks = 0};

	addresses_add();
	rank_start(&far, far_ns, "far", "ba", 20, false);
	for (int i = 0; i < 3; i++)
		rank_start(&others[i], far_ns, "far", "ba", 21 + (uint64_t)i, false);
	rank_start(&near, near_ns, "near", "ab", 11, true);
	/* The members report to the speaker, which may happen after the first question. */
	for (int i = 0; i < 1000 && !heard(&near, 4, &answer); i++) {
		ask(&near, near_ns);
		poll(NULL, 0, 20);
	}
	assert_true(heard(&near, 4, &answer));
	assert_int_equal(near.neighbours->asking.asked[0].num_heard, 1);
	/* The far rank asked nothing, and has heard nothing. */
	assert_int_equal(far.neighbours->asking.asked[0].num_heard, 0);
	assert_true(speaks(&far) && !speaks(&others[0]));
	mesh_lock_take(&far.lock);
	mesh_members_count(&far.neighbours->members, 77, &links);
	assert_true(links.num_ranks == 4 && links.first_rank == 20);
	mesh_lock_release(&far.lock);
	rank_stop(&far);
	rank_stop(&others[1]);
	for (int i = 0; i < 1000 && !heard(&near, 2, &answer); i++) {
		ask(&near, near_ns);
		poll(NULL, 0, 20);
	}
	assert_true(heard(&near, 2, &answer));
	assert_true(speaks(&others[0]) != speaks(&others[2]));
	rank_stop(&near);
	rank_stop(&others[0]);
	rank_stop(&others[2]);
}

/* A process of another user: answers for the node, then takes all places of the one that does. */
static void foreigner_run(int parent)
{
	struct sockaddr_un address = {AF_UNIX, "\0nccl-net-mesh neighbours 3"};
	socklen_t len = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), i;
	char byte = 0;

	if (setuid(65534) || bind(fd, (struct sockaddr *)&address, len) || listen(fd, 8))
		_exit(1);
	if (write(parent, &byte, 1) != 1 || read(parent, &byte, 1) != 1)
		_exit(2);
	close(fd);
	if (read(parent, &byte, 1) != 1)
		_exit(3);
	for (i = 0; i < 2 * MESH_MEMBERS_MAX; i++) {
		fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		if (connect(fd, (struct sockaddr *)&address, len))
			_exit(4);
	}
	/* All of them were accepted, or closed. */
	_exit(read(fd, &byte, 1) || write(parent, &byte, 1) != 1 || read(parent, &byte, 1));
}

/* One that answers for us is named, and as many as there are leave places for ours. */
TEST(other_user)
{
	struct mesh_links_answer links = {.num_ranks = 0};
	struct rank ours;
	int pair[2], status;
	char byte = 0;
	pid_t pid;

	enter(far_ns);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (!pid) {
		close(pair[0]);
		foreigner_run(pair[1]);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	rank_start(&far, far_ns, "far", "ba", 20, false);
	assert_true(log_captured(MESH_LOG_INFO, "a process of user 65534 answers other nodes"));
	assert_int_equal(write(pair[0], &byte, 1), 1);
	for (int i = 0; i < 1000 && !speaks(&far); i++)
		poll(NULL, 0, 20);
	assert_int_equal(write(pair[0], &byte, 1), 1);
	assert_int_equal(read(pair[0], &byte, 1), 1);
	rank_start(&ours, far_ns, "far", "ba", 21, false);
	for (int i = 0; i < 1000 && links.num_ranks < 2; i++) {
		links = (struct mesh_links_answer){.num_ranks = 0};
		mesh_lock_take(&far.lock);
		mesh_members_count(&far.neighbours->members, 77, &links);
		mesh_lock_release(&far.lock);
		poll(NULL, 0, 20);
	}
	assert_int_equal(links.num_ranks, 2);
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	rank_stop(&far);
	rank_stop(&ours);
}

/* When the last cable goes, the round ends at once, and so does a search. */
TEST_BARE(search_without_cable)
{
	static struct mesh_neighbours neighbours;

	neighbours.searching.goes_on = true;
	neighbours.asking.began_ms = 7;
	assert_true(mesh_neighbours_searches(&neighbours, 0));
	mesh_asking_init(&neighbours.asking, &neighbours.self);
	neighbours.asking.began_ms = 7;
	neighbours.asking.sent = 1;
	mesh_neighbours_ask(&neighbours);
	assert_false(mesh_neighbours_searches(&neighbours, 0));
}

/* The far node is found by a search, with what a first hop needs. */
TEST(route)
{
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS, target = (uint64_t)(far_ns + 1);
	const struct mesh_explore *explore;
	const struct mesh_asked *asked;
	const struct mesh_heard *hop;
	struct mesh_route route;
	int num;

	addresses_add();
	rank_start(&far, far_ns, "far", "ba", 21, true);
	rank_start(&near, near_ns, "near", "ab", 11, true);
	enter(near_ns);
	mesh_lock_take(&near.lock);
	do { /* one ends without it if a neighbour does not answer at once; connecting repeats it */
		assert_true(mesh_clock_ms() < deadline_ms);
		assert_int_equal(mesh_neighbours_search(near.neighbours), 0);
		do {
			mesh_lock_release(&near.lock);
			poll(NULL, 0, 1);
			mesh_lock_take(&near.lock);
		} while (mesh_neighbours_searches(near.neighbours, target));
	} while (mesh_neighbours_routes(near.neighbours, target, 15, NULL, 0, &route, 1) != 1);
	explore = &near.neighbours->searching.explore;
	assert_int_equal(route.num_relays, 0);
	assert_true(route.hops[0] == target && route.rdma && !route.drained);
	assert_string_equal(mesh_explore_node_name(explore, target), "far");
	assert_int_equal(explore->nodes[1].first_rank, 21);
	assert_null(mesh_explore_node_name(explore, 4242));
	assert_int_equal(explore->graph.nodes[1].site, mesh_neighbour_site_number("east"));
	num = near.neighbours->asking.num_links;
	asked = near.neighbours->asking.asked;
	assert_true(num == 1 && asked->num_heard == 1);
	hop = asked->heard[0];
	assert_true(hop->about.node_id == target);
	assert_int_equal(asked->ifindex, if_nametoindex("ab"));
	assert_int_equal(hop->about.nic, 3);
	assert_int_equal(hop->about.protocol, MESH_PROTOCOL_VERSION);
	assert_int_equal(hop->about.providers, PROVIDERS);
	assert_true(hop->about.processes[0].process_id == 21);
	assert_true(hop->about.processes[0].job == 77);
	assert_int_equal(hop->about.processes[0].control_port, 4711);
	mesh_lock_release(&near.lock);
	rank_stop(&near);
	rank_stop(&far);
}

/* Sends @count datagrams to the near node's port, as a host of the link. */
static void flood(int count, int hops, const struct mesh_neighbour *datagram)
{
	struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(MESH_NEIGHBOUR_PORT)};
	uint8_t bytes[4000] = {0};
	int fd, i, value = hops;

	enter(far_ns);
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	assert_true(fd >= 0);
	assert_int_equal(inet_pton(AF_INET6, "fe80::a", &to.sin6_addr), 1);
	to.sin6_scope_id = if_nametoindex("ba");
	setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &value, sizeof(value));
	memcpy(bytes, datagram, sizeof(*datagram));
	for (i = 0; i < count; i++) {
		/* Whole, oversized, cut, and noise. */
		size_t size = i % 4 == 1   ? sizeof(bytes)
			      : i % 4 == 2 ? (size_t)(i % 1000)
					   : datagram->length;

		bytes[i % 4 == 3 ? i % 1000 : 3000] ^= (uint8_t)i;
		sendto(fd, bytes, size, 0, (struct sockaddr *)&to, sizeof(to));
	}
	close(fd);
}

static void question_forge(struct mesh_neighbour *question)
{
	memset(question, 0, sizeof(*question));
	snprintf(question->node, sizeof(question->node), "liar");
	question->node_id = 99;
	mesh_neighbour_finish(question, MESH_NEIGHBOUR_QUESTION);
}

/* Of a flood so many are read as the pace allows, with one line; then questions work again. */
TEST(flood)
{
	struct mesh_neighbour question;
	struct mesh_heard answer;
	uint64_t begin_ms, taken, most;

	addresses_add();
	rank_start(&near, near_ns, "near", "ab", 11, false);
	question_forge(&question);
	begin_ms = mesh_clock_ms();
	while (mesh_clock_ms() < begin_ms + 3000)
		flood(FLOOD / 10, 255, &question);
	mesh_lock_take(&near.lock);
	taken = near.neighbours->answering.answered + near.neighbours->answering.dropped;
	mesh_lock_release(&near.lock);
	most = 4096 + 2 * (mesh_clock_ms() - begin_ms) + 1;
	assert_in_range(taken, 4096, most);
	assert_int_equal(near.neighbours->asking.asked[0].num_heard, 0);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "datagrams a second arrive on UDP port 18621"));
	rank_start(&far, far_ns, "far", "ba", 21, false);
	for (begin_ms = mesh_clock_ms(); !heard(&far, 1, &answer);) {
		assert_true(mesh_clock_ms() < begin_ms + LIMIT_MS);
		ask(&far, far_ns);
		poll(NULL, 0, 20);
	}
	assert_string_equal(answer.about.node, "near");
	rank_stop(&far);
	rank_stop(&near);
}

/* What has passed a router is not answered, even if it is well made. */
TEST(hop_limit)
{
	struct mesh_neighbour question;
	uint64_t deadline_ms = mesh_clock_ms() + LIMIT_MS;
	uint64_t answered, dropped;

	addresses_add();
	rank_start(&near, near_ns, "near", "ab", 11, false);
	question_forge(&question);
	flood(1, 254, &question);
	do {
		mesh_lock_take(&near.lock);
		answered = near.neighbours->answering.answered;
		dropped = near.neighbours->answering.dropped;
		mesh_lock_release(&near.lock);
		poll(NULL, 0, 1);
	} while (!answered && !dropped && mesh_clock_ms() < deadline_ms);
	assert_int_equal(answered, 0);
	assert_int_equal(dropped, 1);
	rank_stop(&near);
}

/* A node of another version is known by its name, and answers a question of ours. */
TEST(other_version)
{
	struct mesh_neighbour question;
	struct mesh_datagram datagram;
	struct mesh_addr from, group = mesh_datagram_group(MESH_FAMILY_IPV6);
	struct pollfd ready;
	int ret = -EAGAIN;

	addresses_add();
	rank_start(&near, near_ns, "near", "ab", 11, false);
	question_forge(&question);
	question.version = MESH_NEIGHBOUR_VERSION + 1;
	enter(far_ns);
	ready = (struct pollfd){.fd = mesh_datagram_open(MESH_FAMILY_IPV6, 0), .events = POLLIN};
	assert_int_equal(mesh_addr_parse("fe80::b", &from), 0);
	assert_int_equal(mesh_datagram_send(ready.fd, if_nametoindex("ba"), &from, &group,
					    MESH_NEIGHBOUR_PORT, &question, question.length),
			 0);
	while (ret == -EAGAIN && poll(&ready, 1, LIMIT_MS) > 0)
		ret = mesh_datagram_receive(ready.fd, &datagram);
	assert_int_equal(ret, 1);
	assert_int_equal(datagram.about.type, MESH_NEIGHBOUR_ANSWER);
	assert_string_equal(datagram.about.node, "near");
	mesh_descriptor_close(ready.fd);
	rank_stop(&near);
}

void tests_begin(void)
{
	if (!namespace_enter())
		exit(77);
	near_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (!namespace_enter())
		exit(77);
	far_ns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}
