/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_watch.c - what `fi_mesh watch` makes of counters, and how it prints them. */
#include "commands.h"
#include "common/output.h"
#include "watch/print.h"
#include "watch/sample.h"

#include "printed.h"
#include "unit.h"

static struct watch_nic nics[2], nics_before[2];
static struct watch_link links[1], links_before[1];
static struct watch_process processes[1];
static struct watch_sample now, before;

static void link_set(struct watch_link *link, uint64_t bytes)
{
	struct mesh_addr addr;

	memset(link, 0, sizeof(*link));
	link->pid = 42;
	link->open_paths = 2;
	link->entry.state = MESH_STATS_OPEN;
	link->entry.sending = 1;
	link->entry.family = MESH_FAMILY_IPV4;
	link->entry.provider = MESH_PROVIDER_VERBS_RXM;
	strcpy(link->entry.nic, "ab");
	strcpy(link->entry.peer, "b\"\\\n");
	assert_int_equal(mesh_addr_parse("10.1.0.1", &addr), 0);
	memcpy(link->entry.local, addr.bytes, 16);
	assert_int_equal(mesh_addr_parse("10.1.0.2", &addr), 0);
	memcpy(link->entry.remote, addr.bytes, 16);
	link->entry.counters.bytes = bytes;
	link->entry.counters.messages = 3;
}

void tests_setup(void)
{
	memset(nics, 0, sizeof(nics));
	strcpy(nics[0].netdev, "ab");
	strcpy(nics[0].rdma, "mlx5_0");
	nics[0].rdma_port = 1;
	nics[0].speed_mbps = 100000;
	nics[0].up = true;
	nics[0].netdev_known = nics[0].rdma_known = true;
	strcpy(nics[0].hw[0].name, "out_of_sequence");
	nics[0].hw[0].value = 9;
	nics[0].num_hw = 1;
	strcpy(nics[1].netdev, "ac"); /* its link is down */
	nics[1].netdev_known = true;
	memcpy(nics_before, nics, sizeof(nics));
	nics[0].rdma_tx = 12500000000u;
	link_set(&links[0], 12000000000u);
	link_set(&links_before[0], 0);
	memset(processes, 0, sizeof(processes));
	processes[0].header.pid = 42;
	strcpy(processes[0].header.program, "train");
	processes[0].header.counters.peers_up = 2;
	processes[0].header.counters.peers_lost = 1;
	now = (struct watch_sample){.time_ns = 3000000000u,
				    .nics = nics,
				    .num_nics = 2,
				    .links = links,
				    .num_links = 1,
				    .processes = processes,
				    .num_processes = 1};
	before = (struct watch_sample){.time_ns = 2000000000u,
				       .nics = nics_before,
				       .num_nics = 2,
				       .links = links_before,
				       .num_links = 1};
}

static void print(const struct watch_sample *earlier)
{
	watch_print(print_file(), &now, earlier);
}

static void print_prometheus(void)
{
	watch_print_prometheus(print_file(), &now);
}

static const json_t *json_of_sample(void)
{
	assert_int_equal(watch_print_json(print_file(), &now, &before), 0);
	return json_printed();
}

TEST(traffic)
{
	assert_int_equal(watch_traffic(&nics[0], &nics_before[0], 1), WATCH_RDMA);
	assert_int_equal(watch_traffic(&nics[1], &nics_before[1], 1), WATCH_IDLE);
	assert_int_equal(watch_traffic(&nics[0], NULL, 0), WATCH_UNKNOWN);
	nics[0].netdev_rx = 1000000;
	assert_int_equal(watch_traffic(&nics[0], &nics_before[0], 1), WATCH_BOTH);
	nics[0].rdma_tx = 0;
	assert_int_equal(watch_traffic(&nics[0], &nics_before[0], 1), WATCH_KERNEL);
	/* The same bytes in a longer time are noise. */
	assert_int_equal(watch_traffic(&nics[0], &nics_before[0], 100), WATCH_IDLE);
}

TEST_BARE(counter_that_goes_back)
{
	assert_true(watch_rate(5, 10, 1) == 0);
	assert_true(watch_rate(30, 10, 2) == 10);
	assert_true(watch_rate(30, 10, 0) == 0);
}

TEST(text)
{
	print(&before);
	PRINTED_HAS("ab   mlx5_0  100 Gb/s   RDMA     0 b/s         0 b/s     100.00 Gb/s",
		    "\nac   -       link down  ",
		    "10.1.0.1 -> 10.1.0.2  verbs;ofi_rxm  96.00 Gb/s  11.2 GiB",
		    "b\"\\?", /* a newline would tear the table */
		    "train (pid 42)", "1 of 2 peers lost");
	print(NULL);
	PRINTED_HAS("ab   mlx5_0  100 Gb/s   -        -");
}

/* Root sees those of all users: then each line says whose it is. */
TEST(users)
{
	struct watch_process two[2] = {processes[0], processes[0]};

	two[1].uid = 4000000000u;
	now.processes = two;
	now.num_processes = 2;
	print(NULL);
	PRINTED_HAS(", user root): ", ", user 4000000000): ");
	two[1].uid = 0;
	print(NULL);
	assert_lacks(printed(), ", user");
}

TEST(nothing_there)
{
	now.num_nics = now.num_links = now.num_processes = 0;
	print(NULL);
	assert_string_equal(printed(),
			    "No NIC of this node can carry the mesh; `fi_mesh nics` says why.\n"
			    "\nNo process uses the plugin now.\n");
}

/* What this node relays: for whom, how much, and the slots in use. */
TEST(circuits)
{
	struct watch_circuit circuit = {
		.circuit = {.origin = "a",
			    .target = "c\"",
			    .nic_up = "ba",
			    .nic_down = "bc",
			    .counters = {.bytes = 12500000,
					 .segments = 24,
					 .messages = 7,
					 .copied = 310,
					 .memory = 8 << 20,
					 .slots = 128,
					 .used = 3}},
		.pid = 42,
		.open = 2,
	};
	struct watch_circuit earlier = circuit;

	earlier.circuit.counters.bytes = 0;
	now.circuits = &circuit;
	before.circuits = &earlier;
	now.num_circuits = before.num_circuits = 1;
	print(&before);
	PRINTED_HAS("42   a -> c\"  ba -> bc  100.0 Mb/s  11.9 MiB  24        7         2"
		    "         3 of 128  8.0 MiB\n");
	print_prometheus();
	PRINTED_HAS("nccl_mesh_relay_bytes_total{from=\"a\",to=\"c\\\"\",nic_from=\"ba\","
		    "nic_to=\"bc\",pid=\"42\"} 12500000\n",
		    "pid=\"42\"} 3\n",
		    "nccl_mesh_relay_copied_bytes_total{from=\"a\",to=\"c\\\"\","
		    "nic_from=\"ba\",nic_to=\"bc\",pid=\"42\"} 310\n");
	JSON_IS(json_of_sample(), "circuits[0].bytes_per_s", "12500000.0", "circuits[0].nic_to",
		"\"bc\"", "circuits[0].used_slots", "3", "circuits[0].copied", "310");
}

TEST(prometheus)
{
	print_prometheus();
	PRINTED_HAS("# TYPE nccl_mesh_link_bytes_total counter\n"
		    "nccl_mesh_link_bytes_total{nic=\"ab\",peer=\"b\\\"\\\\?\",",
		    "direction=\"send\",local=\"10.1.0.1\",remote=\"10.1.0.2\","
		    "provider=\"verbs;ofi_rxm\",via=\"direct\",pid=\"42\"} 12000000000\n",
		    "nccl_mesh_rdma_transmit_bytes_total{nic=\"ab\",device=\"mlx5_0\","
		    "port=\"1\"} 12500000000\n",
		    "counter=\"out_of_sequence\"} 9\n",
		    "# TYPE nccl_mesh_nic_up gauge\nnccl_mesh_nic_up{nic=\"ab\"} 1\n"
		    "nccl_mesh_nic_up{nic=\"ac\"} 0\n",
		    "# TYPE nccl_mesh_nic_speed_bits_per_second gauge\n"
		    "nccl_mesh_nic_speed_bits_per_second{nic=\"ab\"} 100000000000\n#",
		    "nccl_mesh_peers_lost_total{pid=\"42\",program=\"train\"} 1\n");
	/* A NIC without RDMA has no such line. */
	assert_lacks(printed(), "nccl_mesh_rdma_transmit_bytes_total{nic=\"ac\"");
	links[0].entry.via = MESH_STATS_ROUTED;
	print_prometheus();
	PRINTED_HAS("via=\"routed\"");
	print(NULL);
	PRINTED_HAS("verbs;ofi_rxm, routed");
}

TEST(json)
{
	JSON_IS(json_of_sample(), "nics[0].traffic", "\"rdma\"", "nics[0].up", "true", "nics[1].up",
		"false", "nics[1].rdma", "null", "nics[0].rdma.tx_bytes_per_s", "12500000000.0",
		"links[0].bytes_per_s", "12000000000.0", "links[0].direction", "\"send\"");
	assert_ptr_equal(strchr(printed(), '\n') + 1, strchr(printed(), '\0')); /* one line */
}

TEST_BARE(wrong_use)
{
	COMMAND_ROWS(command_watch, {"--interval 0", COMMAND_MISUSE},
		     {"--interval nan", COMMAND_MISUSE}, {"--count 0", COMMAND_MISUSE},
		     {"--count -1", COMMAND_MISUSE}, {"--output x", COMMAND_MISUSE},
		     {"--prometheus --json", COMMAND_MISUSE}, {"--nonsense", COMMAND_MISUSE},
		     {"more", COMMAND_MISUSE}, {"--pid 0", COMMAND_MISUSE},
		     {"--user no\tsuch\tuser", COMMAND_MISUSE});
}
