/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_nics.c - what `fi_mesh nics` prints, and its exit statuses. */
#include "commands.h"
#include "common/output.h"
#include "nic/nic.h"
#include "nics/print.h"

#include "printed.h"
#include "unit.h"

static struct mesh_nic *nics; /* two */
static struct mesh_nic_table table;
static struct nics_provider providers[2];
static const char *site = "";

void tests_setup(void)
{
	nics = calloc(2, sizeof(*nics));
	assert_non_null(nics);
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
	nics[0].verdict = MESH_NIC_TAKEN;
	assert_int_equal(mesh_addr_parse("10.1.0.1/24", &nics[0].source), 0);
	nics[0].addrs[nics[0].num_addrs++] = nics[0].source;
	strcpy(nics[1].netdev, "lo");
	mesh_nic_leave(&nics[1], MESH_NIC_SKIPPED, "loopback");
	nics[1].kind = MESH_NIC_LOOPBACK;
	providers[0].name = "verbs;ofi_rxm";
}

void tests_teardown(void)
{
	free(nics);
}

static void assert_printed(const char *wanted)
{
	nics_print(print_file(), &table, providers, site);
	assert_string_equal(printed(), wanted);
}

static const json_t *json_of_table(void)
{
	assert_int_equal(nics_print_json(print_file(), &table, providers, site), 0);
	return json_printed();
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
	JSON_IS(json_of_table(), "site", "null");
	site = "east";
	table.num_nics = table.num_taken = 0;
	assert_printed("Site: east\n\nNo NIC of this node can carry the mesh.\n");
	JSON_IS(json_of_table(), "site", "\"east\"");
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
	mesh_nic_leave(&nics[0], MESH_NIC_NO_PROVIDER, "libfabric has no provider for it");
	mesh_nic_table_sort(&table);
	assert_printed("No NIC of this node can carry the mesh.\n"
		       "\n"
		       "Not used:\n"
		       "  enp1s0f0np0  libfabric has no provider for it\n"
		       "  lo           loopback\n");
}

TEST(json)
{
	JSON_IS(json_of_table(), "taken", "1", "nics", "#2", "nics[0].netdev", "\"enp1s0f0np0\"",
		"nics[0].taken", "true", "nics[0].dev", "0", "nics[0].source", "\"10.1.0.1/24\"",
		"nics[0].provider", "\"verbs;ofi_rxm\"", "nics[0].guid", "\"0x4cbb470300000001\"",
		"nics[0].pci_link.width", "4", "nics[0].pci_link.max_width", "8",
		"nics[0].rdma.gid_in_use.index", "3", "nics[0].rdma.link_layer", "\"Ethernet\"",
		"nics[0].rdma.gids[0].index", "3", "nics[0].rdma.gids[0].gid",
		"\"::ffff:10.1.0.1\"", "nics[0].rdma.gids[0].type", "\"RoCE v2\"", "nics[1].dev",
		"null", "nics[1].rdma", "null", "nics[1].source", "null", "nics[1].reason",
		"\"skipped: loopback\"");
}

/* The kernel allows names that are no UTF-8. */
TEST(json_bad_name)
{
	strcpy(nics[0].netdev, "e\xff\"0");
	JSON_IS(json_of_table(), "nics[0].netdev", "\"e?\\\"0\"");
}

TEST_BARE(options)
{
	COMMAND_ROWS(command_nics, {"--help", COMMAND_FINE}, {"--yaml", COMMAND_MISUSE},
		     {"--sysfs", COMMAND_MISUSE}, {"--sysfs /nonexistent", COMMAND_MISUSE},
		     {"--json junk", COMMAND_MISUSE});
}

TEST_BARE(settings)
{
	setenv("NCCL_MESH_NICS", "=no-such-nic", 1);
	COMMAND_ROWS(command_nics, {"", COMMAND_PROBLEM});
	COMMAND_ROWS(command_nics, {"--json", COMMAND_PROBLEM});
	setenv("NCCL_MESH_NICS", "^", 1);
	COMMAND_ROWS(command_nics, {"", COMMAND_PROBLEM});
	setenv("NCCL_MESH_NICS", "", 1);
	setenv("NCCL_MESH_PROVIDER", "no-such-provider", 1);
	COMMAND_ROWS(command_nics, {"", COMMAND_PROBLEM});
	unsetenv("NCCL_MESH_PROVIDER");
	unsetenv("NCCL_MESH_NICS");
}
