/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_nics.c - what `fi_mesh nics` prints, and its exit statuses. */
#include <fcntl.h>

#include <jansson.h>

#include "common/exit_status.h"
#include "nic/nic_order.h"
#include "nics/command.h"
#include "nics/json.h"
#include "nics/print.h"
#include "nics/provider.h"

#include "unit.h"

static struct mesh_nic *nics; /* two */
static struct mesh_nic_table table;
static struct nics_provider providers[2];
static const char *site = "";

static int setup(void)
{
	nics = calloc(2, sizeof(*nics));
	if (!nics)
		return -1;
	table = (struct mesh_nic_table){.nics = nics, .num_nics = 2, .num_taken = 1};
	memset(providers, 0, sizeof(providers));
	strcpy(nics[0].netdev, "enp1s0f0np0");
	strcpy(nics[0].name, "mesh-enp1s0f0np0");
	strcpy(nics[0].pci_path, "/sys/devices/pci0000:00/0000:01:00.0");
	strcpy(nics[0].rdma.device, "rocep1s0f0");
	strcpy(nics[0].rdma.state, "4: ACTIVE");
	strcpy(nics[0].reason, "taken: 200 Gb/s");
	nics[0].rdma.port = nics[0].port = 1;
	nics[0].rdma.link_layer = MESH_LINK_LAYER_ETHERNET;
	nics[0].rdma.num_gids = 1;
	nics[0].rdma.gids[0] = (struct mesh_gid){
		.bytes = {[10] = 0xff, 0xff, 10, 1, 0, 1}, .index = 3, .type = MESH_GID_ROCE_V2};
	nics[0].guid = 0x4cbb470300000001u;
	nics[0].speed_mbps = 200000;
	nics[0].mtu = 9000;
	nics[0].pci_link = (struct mesh_pci_link){4, 8000, 8, 8000, 16, 16000};
	nics[0].taken = true;
	assert_int_equal(mesh_addr_parse("10.1.0.1/24", &nics[0].source), 0);
	nics[0].addrs[nics[0].num_addrs++] = nics[0].source;
	strcpy(nics[1].netdev, "lo");
	mesh_nic_leave(&nics[1], "loopback");
	nics[1].kind = MESH_NIC_LOOPBACK;
	providers[0].name = "verbs;ofi_rxm";
	return 0;
}

static int teardown(void)
{
	free(nics);
	return 0;
}

TESTS_USE(setup, teardown);

static void assert_printed(const char *wanted)
{
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	nics_print(file, &table, providers, site);
	assert_int_equal(fclose(file), 0);
	assert_string_equal(text, wanted);
	free(text);
}

static json_t *json_printed(void)
{
	json_error_t error;
	json_t *root;
	size_t size;
	char *text;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	assert_int_equal(nics_print_json(file, &table, providers, site), 0);
	assert_int_equal(fclose(file), 0);
	root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		fail_msg("not JSON: %s in\n%s", error.text, text);
	free(text);
	return root;
}

TEST(table)
{
	assert_printed(
		"DEV  NIC          SPEED     RDMA          LINK      GID        PROVIDER       "
		"ADDRESS      MTU   PCI           PCI LINK\n"
		"0    enp1s0f0np0  200 Gb/s  rocep1s0f0:1  Ethernet  3 RoCE v2  verbs;ofi_rxm  "
		"10.1.0.1/24  9000  0000:01:00.0  x4 at 8.0 GT/s (card: x8 at 8.0 GT/s)\n"
		"\n"
		"Not used:\n"
		"  lo  loopback\n");
}

TEST(site)
{
	json_t *root = json_printed();

	assert_true(json_is_null(json_object_get(root, "site")));
	json_decref(root);
	site = "east";
	table.num_nics = table.num_taken = 0;
	assert_printed("Site: east\n\nNo NIC of this node can carry the mesh.\n");
	root = json_printed();
	assert_string_equal(json_string_value(json_object_get(root, "site")), "east");
	json_decref(root);
	site = "";
}

TEST(table_plain)
{
	char note[] = "memlock is too low";

	*nics[0].rdma.device = *nics[0].pci_path = '\0';
	nics[0].speed_mbps = 0;
	table.num_nics = 1;
	providers[0] = (struct nics_provider){.name = NULL, .note = note};
	memset(&nics[0].pci_link, 0, sizeof(nics[0].pci_link));
	mesh_addr_parse("fd00::1/64", &nics[0].addrs[nics[0].num_addrs++]);
	mesh_addr_parse("fe80::1/64", &nics[0].addrs[nics[0].num_addrs++]);
	assert_printed("DEV  NIC          SPEED          RDMA  LINK      GID  PROVIDER  "
		       "ADDRESS      MTU   PCI  PCI LINK\n"
		       "0    enp1s0f0np0  speed unknown  -     Ethernet  -    -         "
		       "10.1.0.1/24  9000  -    -\n"
		       "\n"
		       "enp1s0f0np0 also has fd00::1/64, fe80::1/64\n"
		       "enp1s0f0np0: memlock is too low\n");
}

TEST(table_none)
{
	mesh_nic_table_sort(&table);
	mesh_nic_table_leave(&table, 0, "libfabric has no provider for it");
	assert_printed("No NIC of this node can carry the mesh.\n"
		       "\n"
		       "Not used:\n"
		       "  enp1s0f0np0  libfabric has no provider for it\n"
		       "  lo           loopback\n");
}

TEST(json)
{
	json_t *root = json_printed(), *nic, *gid;

	assert_int_equal(json_integer_value(json_object_get(root, "taken")), 1);
	assert_int_equal(json_array_size(json_object_get(root, "nics")), 2);
	nic = json_array_get(json_object_get(root, "nics"), 0);
	assert_string_equal(json_string_value(json_object_get(nic, "netdev")), "enp1s0f0np0");
	assert_true(json_is_true(json_object_get(nic, "taken")));
	assert_int_equal(json_integer_value(json_object_get(nic, "dev")), 0);
	assert_string_equal(json_string_value(json_object_get(nic, "source")), "10.1.0.1/24");
	assert_string_equal(json_string_value(json_object_get(nic, "provider")), "verbs;ofi_rxm");
	assert_string_equal(json_string_value(json_object_get(nic, "guid")), "0x4cbb470300000001");
	gid = json_object_get(nic, "pci_link");
	assert_int_equal(json_integer_value(json_object_get(gid, "width")), 4);
	assert_int_equal(json_integer_value(json_object_get(gid, "max_width")), 8);
	nic = json_object_get(nic, "rdma");
	gid = json_object_get(nic, "gid_in_use");
	assert_int_equal(json_integer_value(json_object_get(gid, "index")), 3);
	assert_string_equal(json_string_value(json_object_get(nic, "link_layer")), "Ethernet");
	gid = json_array_get(json_object_get(nic, "gids"), 0);
	assert_int_equal(json_integer_value(json_object_get(gid, "index")), 3);
	assert_string_equal(json_string_value(json_object_get(gid, "gid")), "::ffff:10.1.0.1");
	assert_string_equal(json_string_value(json_object_get(gid, "type")), "RoCE v2");
	nic = json_array_get(json_object_get(root, "nics"), 1);
	assert_true(json_is_null(json_object_get(nic, "dev")));
	assert_true(json_is_null(json_object_get(nic, "rdma")));
	assert_true(json_is_null(json_object_get(nic, "source")));
	assert_string_equal(json_string_value(json_object_get(nic, "reason")), "skipped: loopback");
	json_decref(root);
}

/* The kernel allows names that are no UTF-8. */
TEST(json_bad_name)
{
	json_t *root, *nic;

	strcpy(nics[0].netdev, "e\xff\"0");
	root = json_printed();
	nic = json_array_get(json_object_get(root, "nics"), 0);
	assert_string_equal(json_string_value(json_object_get(nic, "netdev")), "e?\"0");
	json_decref(root);
}

/* Runs the subcommand with its output thrown away. */
static int run(const char *a, const char *b)
{
	char name[] = "nics", *argv[] = {name, (char *)a, (char *)b, NULL};
	int out = dup(1), err = dup(2), null = open("/dev/null", O_WRONLY), status;

	assert_true(out >= 0 && err >= 0 && null >= 0);
	fflush(NULL);
	dup2(null, 1);
	dup2(null, 2);
	status = command_nics(a ? b ? 3 : 2 : 1, argv);
	fflush(NULL);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	close(null);
	return status;
}

TEST_BARE(options)
{
	assert_int_equal(run("--help", NULL), COMMAND_FINE);
	assert_int_equal(run("--yaml", NULL), COMMAND_MISUSE);
	assert_int_equal(run("--sysfs", NULL), COMMAND_MISUSE);
	assert_int_equal(run("--sysfs", "/nonexistent"), COMMAND_MISUSE);
	assert_int_equal(run("--json", "junk"), COMMAND_MISUSE);
}

TEST_BARE(settings)
{
	setenv("NCCL_MESH_NICS", "=no-such-nic", 1);
	assert_int_equal(run(NULL, NULL), COMMAND_PROBLEM);
	assert_int_equal(run("--json", NULL), COMMAND_PROBLEM);
	setenv("NCCL_MESH_NICS", "^", 1);
	assert_int_equal(run(NULL, NULL), COMMAND_PROBLEM);
	setenv("NCCL_MESH_NICS", "", 1);
	setenv("NCCL_MESH_PROVIDER", "no-such-provider", 1);
	assert_int_equal(run(NULL, NULL), COMMAND_PROBLEM);
	unsetenv("NCCL_MESH_PROVIDER");
	unsetenv("NCCL_MESH_NICS");
}
