/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_next.c - which processes of neighbours may be asked to relay, and in which order: each
 * node's most suitable one first. One that refuses is not followed by the others of its node.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "neighbours/neighbours.h"
#include "relay/circuit.h"
#include "relay/circuits.h"
#include "relay/next.h"
#include "relay/opening.h"
#include "relay/relay.h"
#include "setup/setup.h"
#include "system/drain_marks.h"

#include "log_capture.h"
#include "transport_pair.h"

#define JOB 77
#define NODE 2 /* is heard on lo; no process there takes connections */
#define PORT 9

static struct pair pair;
static struct mesh_process *process;
static struct mesh_neighbours *real;
static struct mesh_neighbours neighbours;
static struct mesh_heard heard[2];
static struct mesh_next nexts[MESH_NEXTS_MAX];
static int asks; /* how often the neighbours were to be asked again */

void __real_mesh_neighbours_ask(struct mesh_neighbours *of);
void __wrap_mesh_neighbours_ask(struct mesh_neighbours *of);
void __wrap_mesh_neighbours_ask(struct mesh_neighbours *of)
{
	if (of == &neighbours)
		asks++;
	else
		__real_mesh_neighbours_ask(of);
}

static void process_add(struct mesh_neighbour *about, uint64_t process_id, uint64_t job,
			enum mesh_neighbour_role role)
{
	about->processes[about->num_processes++] = (struct mesh_neighbour_process){
		.process_id = process_id,
		.job = job,
		.control_port = PORT,
		.protocol = MESH_PROTOCOL_VERSION,
		.role = (uint8_t)role,
	};
}

/* A NIC of the node, which has these processes: all that may relay for JOB, and one more. */
static void nic_hear(int index, const char *text)
{
	struct mesh_neighbour *about = &heard[index].about;
	struct mesh_asked *asked = &neighbours.rounds.asking.asked[0];
	struct mesh_addr addr;

	memset(&heard[index], 0, sizeof(heard[index]));
	about->node_id = NODE;
	about->providers = 1 << MESH_PROVIDER_TCP;
	assert_int_equal(mesh_addr_parse(text, &addr), 0);
	assert_true(mesh_neighbour_addr_add(about, &addr));
	process_add(about, 10, 0, MESH_NEIGHBOUR_SERVICE);
	process_add(about, 11, JOB + 1, MESH_NEIGHBOUR_RANK);
	process_add(about, 12, JOB, MESH_NEIGHBOUR_RANK);
	process_add(about, 13, JOB, MESH_NEIGHBOUR_RANK);
	asked->heard[asked->num_heard++] = &heard[index];
}

static int setup(void **state)
{
	(void)state;
	pair_open(&pair);
	process = pair.net->process;
	log_capture_start();
	mesh_lock_take(&process->lock);
	memset(&neighbours, 0, sizeof(neighbours));
	neighbours.rounds.asking.num_links = 1;
	neighbours.rounds.asking.asked[0].ifindex = neighbours.rounds.asking.links[0].ifindex =
		process->nics[process->endpoints[0].nic]->ifindex;
	asks = 0;
	nic_hear(0, "127.0.0.2/8");
	real = process->relay->neighbours;
	process->relay->neighbours = &neighbours;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	process->relay->neighbours = real;
	mesh_circuits_close(process);
	mesh_lock_release(&process->lock);
	pair_close(&pair);
	log_capture_stop();
	return 0;
}

/* The process ids that are listed, in this order. */
static void lists(int max, const uint64_t *ids, int num)
{
	int i;

	assert_int_equal(mesh_nexts_of_node(process, &neighbours, NODE, JOB, nexts, max), num);
	for (i = 0; i < num; i++) {
		assert_int_equal(nexts[i].cookie, ids[i]);
		assert_int_equal(nexts[i].control_port, PORT);
		assert_int_equal(nexts[i].node_id, NODE);
	}
}

static void test_processes(void **state)
{
	(void)state;
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 13, 10}, 3);
	lists(2, (uint64_t[]){12, 13}, 2);
	strcpy(process->config.relay, "any");
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 13, 10, 11}, 4);
	strcpy(process->config.relay, "job");
	heard[0].about.processes[2].control_port = 0;
	heard[0].about.processes[3].protocol++;
	lists(MESH_NEXTS_MAX, (uint64_t[]){10}, 1);
	heard[0].error = -1;
	lists(MESH_NEXTS_MAX, NULL, 0);
}

/* Each link has its first process before any has its second one. */
static void test_links(void **state)
{
	(void)state;
	nic_hear(1, "127.0.0.3/8");
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 12, 13, 13, 10, 10}, 6);
	assert_false(mesh_addr_equal(&nexts[0].address.addr, &nexts[1].address.addr));
	assert_true(mesh_addr_equal(&nexts[0].address.addr, &nexts[2].address.addr));
	lists(3, (uint64_t[]){12, 12, 13}, 3);
	heard[1].about.num_processes = 1;
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 10, 13, 10}, 4);
}

/* The address of each of the NICs that are listed first: "127.0.0.3", and so on. */
static void leads_to(const char *const *texts, int num)
{
	struct mesh_addr addr;
	int i;

	for (i = 0; i < num; i++) {
		assert_int_equal(mesh_addr_parse(texts[i], &addr), 0);
		assert_true(mesh_addr_equal(&nexts[i].address.addr, &addr));
	}
}

/* Of the links to one process, that with RDMA at both ends comes first. */
static void test_rdma_first(void **state)
{
	int dev = process->endpoints[0].nic;
	enum mesh_provider_id provider = process->providers[dev];
	struct mesh_handle handle = {.node_id = NODE, .control_port = PORT};

	(void)state;
	process->also_tcp[dev] = true;
	process->providers[dev] = MESH_PROVIDER_VERBS_RXM;
	nic_hear(1, "127.0.0.3/8");
	heard[1].about.providers |= 1 << MESH_PROVIDER_VERBS_RXM;
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 12, 13, 13, 10, 10}, 6);
	leads_to((const char *const[]){"127.0.0.3", "127.0.0.2", "127.0.0.3", "127.0.0.2"}, 4);
	assert_int_equal(nexts[0].address.provider, MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(nexts[1].address.provider, MESH_PROVIDER_TCP);
	assert_int_equal(mesh_nexts_of_handle(process, &neighbours, &handle, nexts, MESH_NEXTS_MAX),
			 2);
	leads_to((const char *const[]){"127.0.0.3", "127.0.0.2"}, 2);
	/* Equal ones keep their order. */
	heard[0].about.providers |= 1 << MESH_PROVIDER_VERBS_RXM;
	assert_int_equal(mesh_nexts_of_handle(process, &neighbours, &handle, nexts, MESH_NEXTS_MAX),
			 2);
	leads_to((const char *const[]){"127.0.0.2", "127.0.0.3"}, 2);
	process->providers[dev] = provider;
	process->also_tcp[dev] = false;
}

/* A link whose NIC is drained, there or here, has its processes behind those of all others. */
static void test_drained(void **state)
{
	const struct mesh_drain_marks *before = process->drain_marks;
	struct mesh_drain_marks marks = {.num = 1};

	(void)state;
	nic_hear(1, "127.0.0.3/8");
	heard[0].about.flags = MESH_NEIGHBOUR_DRAINED;
	heard[1].about.num_processes = 3;
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 10, 12, 13, 10}, 5);
	assert_true(mesh_addr_equal(&nexts[0].address.addr, &nexts[1].address.addr));
	assert_false(nexts[1].drained);
	assert_true(nexts[2].drained && nexts[4].drained);
	heard[1].error = -1; /* there is no other way */
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 13, 10}, 3);
	heard[0].about.flags = 0;
	strcpy(marks.netdevs[0], process->nics[process->endpoints[0].nic]->netdev);
	process->drain_marks = &marks;
	lists(MESH_NEXTS_MAX, (uint64_t[]){12, 13, 10}, 3);
	assert_true(nexts[0].drained && nexts[2].drained);
	process->drain_marks = before;
}

/* The peer of the pair's receiving end: this process itself, which came to it. */
static struct mesh_peer *incoming_find(void)
{
	struct mesh_peer *found;

	LIST_FOREACH(found, &process->peers, entry) {
		if (found->incoming && found->state == MESH_PEER_UP)
			break;
	}
	assert_non_null(found);
	return found;
}

/* Asks for a circuit that goes on through the node. */
static void circuit_ask(struct mesh_peer *peer)
{
	struct mesh_frame request;
	struct mesh_handle handle;

	memset(&handle, 0, sizeof(handle));
	memset(&request, 0, sizeof(request));
	handle.node_id = NODE + 1;
	handle.cookie = handle.listen_id = handle.control_port = 1;
	handle.num_endpoints = handle.total_nics = 1;
	handle.endpoints[0] = process->endpoints[0];
	strcpy(handle.node, "target");
	mesh_handle_encode(&handle, request.open.handle);
	request.open.comm = 9;
	request.open.num_paths = 1;
	request.open.num_relays = 2;
	request.open.route[0] = process->node_id;
	request.open.route[1] = NODE;
	request.open.job = process->relay->job;
	strcpy(request.open.origin, "origin");
	mesh_circuit_open_came(peer, &request);
}

static struct mesh_circuit *circuit_open(struct mesh_peer *peer)
{
	circuit_ask(peer);
	assert_non_null(LIST_FIRST(&process->relay->circuits));
	return LIST_FIRST(&process->relay->circuits);
}

/* What a process refuses may be the fault of one behind it: only the same one is asked again. */
static void test_refused(void **state)
{
	struct mesh_peer *peer = incoming_find();
	struct mesh_circuit_opening *opening;
	struct mesh_circuit *circuit;
	struct mesh_frame frame;
	int i;

	(void)state;
	nic_hear(1, "127.0.0.3/8");
	for (i = 0; i < 2; i++)
		heard[i].about.processes[2].job = heard[i].about.processes[3].job =
			process->relay->job;
	circuit = circuit_open(peer);
	opening = circuit->opening;
	assert_int_equal(opening->num_nexts, 6);
	assert_int_equal(opening->tried, 1);
	assert_int_equal(mesh_circuit_down_open(circuit, peer), 0);
	opening->asked = true;
	memset(&frame, 0, sizeof(frame));
	frame.refuse.comm = circuit->down.sink.id;
	frame.refuse.refusal = MESH_REFUSAL_RELAY_FULL;
	assert_true(mesh_circuit_refused(peer, &frame));
	assert_int_equal(opening->tried, 2);
	assert_int_equal(opening->num_nexts, 2);
	assert_int_equal(opening->nexts[1].cookie, 12);
}

/* One that does not come up is followed by the next one, over each of the links. */
static void test_no_answer(void **state)
{
	struct mesh_circuit *circuit;
	int tried;

	(void)state;
	heard[0].about.processes[2].job = heard[0].about.processes[3].job = process->relay->job;
	circuit = circuit_open(incoming_find());
	for (tried = 1; tried < 3; tried++) {
		assert_int_equal(circuit->opening->tried, tried);
		assert_int_equal(circuit->opening->num_nexts, 3);
		circuit->timer.expired(&circuit->timer, circuit->opening->try_ms + LIMIT_MS);
	}
	assert_int_equal(asks, 0);
	circuit->timer.expired(&circuit->timer, circuit->opening->try_ms + LIMIT_MS);
	assert_true(LIST_EMPTY(&process->relay->circuits));
	assert_int_equal(asks, 1);
}

/* Our NIC there has no carrier: the connecting end hears at once that nothing leads on. */
static void test_no_carrier(void **state)
{
	int dev = process->endpoints[0].nic;
	const struct mesh_nic *nic = process->nics[dev];
	struct mesh_nic away = *nic;

	(void)state;
	strcpy(away.netdev, "mesh-no-such-0");
	heard[0].about.processes[2].job = heard[0].about.processes[3].job = process->relay->job;
	assert_int_equal(mesh_nexts_of_node(process, &neighbours, NODE, process->relay->job, nexts,
					    MESH_NEXTS_MAX),
			 3);
	assert_int_equal(mesh_next_open(process, &nexts[0]), 0);
	process->nics[dev] = &away;
	assert_int_equal(mesh_next_open(process, &nexts[0]), -ENETDOWN);
	circuit_ask(incoming_find());
	assert_true(LIST_EMPTY(&process->relay->circuits));
	process->nics[dev] = nic;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rdma_first, setup, teardown),
		cmocka_unit_test_setup_teardown(test_drained, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_carrier, setup, teardown),
	};

	setenv("NCCL_MESH_NICS", "=lo", 1);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", "29500", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
