/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_watch.c - what `fi_mesh watch` makes of counters, and how it prints them. */
#include <jansson.h>

#include "common/exit_status.h"
#include "watch/command.h"
#include "watch/json.h"
#include "watch/print.h"
#include "watch/prometheus.h"
#include "watch/rates.h"
#include "watch/sample.h"

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

static int setup(void)
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
	return 0;
}

TESTS_USE(setup, NULL);

static char *printed(bool prometheus, const struct watch_sample *earlier)
{
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	if (prometheus)
		watch_print_prometheus(file, &now);
	else
		watch_print(file, &now, earlier);
	assert_int_equal(fclose(file), 0);
	return text;
}

static void assert_contains(char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in:\n%s", part, text);
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
	char *text = printed(false, &before);

	assert_contains(text, "ab   mlx5_0  100 Gb/s   RDMA     0 b/s         0 b/s     "
			      "100.00 Gb/s");
	assert_contains(text, "\nac   -       link down  ");
	assert_contains(text, "10.1.0.1 -> 10.1.0.2  verbs;ofi_rxm  96.00 Gb/s  11.2 GiB");
	assert_contains(text, "b\"\\?"); /* a newline would tear the table */
	assert_contains(text, "train (pid 42)");
	assert_contains(text, "1 of 2 peers lost");
	free(text);
	text = printed(false, NULL);
	assert_contains(text, "ab   mlx5_0  100 Gb/s   -        -");
	free(text);
}

/* Root sees those of all users: then each line says whose it is. */
TEST(users)
{
	struct watch_process two[2] = {processes[0], processes[0]};
	char *text;

	two[1].uid = 4000000000u;
	now.processes = two;
	now.num_processes = 2;
	text = printed(false, NULL);
	assert_non_null(strstr(text, ", user root): "));
	assert_non_null(strstr(text, ", user 4000000000): "));
	free(text);
	two[1].uid = 0;
	text = printed(false, NULL);
	assert_null(strstr(text, ", user"));
	free(text);
}

TEST(nothing_there)
{
	char *text;

	now.num_nics = now.num_links = now.num_processes = 0;
	text = printed(false, NULL);
	assert_string_equal(text,
			    "No NIC of this node can carry the mesh; `fi_mesh nics` says why.\n"
			    "\nNo process uses the plugin now.\n");
	free(text);
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
	json_t *root, *shown;
	char *text;
	size_t size;
	FILE *file;

	earlier.circuit.counters.bytes = 0;
	now.circuits = &circuit;
	before.circuits = &earlier;
	now.num_circuits = before.num_circuits = 1;
	text = printed(false, &before);
	assert_contains(text, "42   a -> c\"  ba -> bc  100.0 Mb/s  11.9 MiB  24        7         2"
			      "         3 of 128  8.0 MiB\n");
	free(text);
	text = printed(true, NULL);
	assert_contains(text, "nccl_mesh_relay_bytes_total{from=\"a\",to=\"c\\\"\",nic_from=\"ba\","
			      "nic_to=\"bc\",pid=\"42\"} 12500000\n");
	assert_contains(text, "pid=\"42\"} 3\n");
	assert_contains(text, "nccl_mesh_relay_copied_bytes_total{from=\"a\",to=\"c\\\"\","
			      "nic_from=\"ba\",nic_to=\"bc\",pid=\"42\"} 310\n");
	free(text);
	file = open_memstream(&text, &size);
	assert_int_equal(watch_print_json(file, &now, &before), 0);
	fclose(file);
	root = json_loads(text, 0, NULL);
	shown = json_array_get(json_object_get(root, "circuits"), 0);
	assert_true(json_real_value(json_object_get(shown, "bytes_per_s")) == 12500000.0);
	assert_string_equal(json_string_value(json_object_get(shown, "nic_to")), "bc");
	assert_int_equal(json_integer_value(json_object_get(shown, "used_slots")), 3);
	assert_int_equal(json_integer_value(json_object_get(shown, "copied")), 310);
	json_decref(root);
	free(text);
}

TEST(prometheus)
{
	char *text = printed(true, NULL);

	assert_contains(text, "# TYPE nccl_mesh_link_bytes_total counter\n"
			      "nccl_mesh_link_bytes_total{nic=\"ab\",peer=\"b\\\"\\\\?\",");
	assert_contains(text,
			"direction=\"send\",local=\"10.1.0.1\",remote=\"10.1.0.2\","
			"provider=\"verbs;ofi_rxm\",via=\"direct\",pid=\"42\"} 12000000000\n");
	assert_contains(text, "nccl_mesh_rdma_transmit_bytes_total{nic=\"ab\",device=\"mlx5_0\","
			      "port=\"1\"} 12500000000\n");
	assert_contains(text, "counter=\"out_of_sequence\"} 9\n");
	assert_contains(text, "# TYPE nccl_mesh_nic_up gauge\n"
			      "nccl_mesh_nic_up{nic=\"ab\"} 1\n"
			      "nccl_mesh_nic_up{nic=\"ac\"} 0\n");
	assert_contains(text, "# TYPE nccl_mesh_nic_speed_bits_per_second gauge\n"
			      "nccl_mesh_nic_speed_bits_per_second{nic=\"ab\"} 100000000000\n#");
	assert_contains(text, "nccl_mesh_peers_lost_total{pid=\"42\",program=\"train\"} 1\n");
	/* A NIC without RDMA has no such line. */
	assert_null(strstr(text, "nccl_mesh_rdma_transmit_bytes_total{nic=\"ac\""));
	free(text);
	links[0].entry.via = MESH_STATS_ROUTED;
	text = printed(true, NULL);
	assert_contains(text, "via=\"routed\"");
	free(text);
	text = printed(false, NULL);
	assert_contains(text, "verbs;ofi_rxm, routed");
	free(text);
}

TEST(json)
{
	json_t *root, *nic, *link;
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_int_equal(watch_print_json(file, &now, &before), 0);
	fclose(file);
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	nic = json_array_get(json_object_get(root, "nics"), 0);
	assert_string_equal(json_string_value(json_object_get(nic, "traffic")), "rdma");
	assert_true(json_is_true(json_object_get(nic, "up")));
	nic = json_array_get(json_object_get(root, "nics"), 1);
	assert_true(json_is_false(json_object_get(nic, "up")));
	nic = json_array_get(json_object_get(root, "nics"), 0);
	assert_true(json_is_null(
		json_object_get(json_array_get(json_object_get(root, "nics"), 1), "rdma")));
	nic = json_object_get(nic, "rdma");
	assert_true(json_real_value(json_object_get(nic, "tx_bytes_per_s")) == 12500000000.0);
	link = json_array_get(json_object_get(root, "links"), 0);
	assert_true(json_real_value(json_object_get(link, "bytes_per_s")) == 12000000000.0);
	assert_string_equal(json_string_value(json_object_get(link, "direction")), "send");
	json_decref(root);
	free(text);
}

TEST_BARE(wrong_use)
{
	const char *wrong[][3] = {
		{"watch", "--interval", "0"},  {"watch", "--interval", "nan"},
		{"watch", "--count", "0"},     {"watch", "--count", "-1"},
		{"watch", "--output", "x"},    {"watch", "--prometheus", "--json"},
		{"watch", "--nonsense", NULL}, {"watch", "more", NULL},
		{"watch", "--pid", "0"},       {"watch", "--user", "no such user"}};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char *argv[] = {(char *)(uintptr_t)wrong[i][0], (char *)(uintptr_t)wrong[i][1],
				(char *)(uintptr_t)wrong[i][2], NULL};

		assert_int_equal(command_watch(argv[2] ? 3 : 2, argv), COMMAND_MISUSE);
	}
}
