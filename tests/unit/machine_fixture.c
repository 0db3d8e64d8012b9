/* SPDX-License-Identifier: Apache-2.0 */
/* machine_fixture.c - a machine that `fi_mesh check` examines: recorded files, and its NICs. */
#include <sys/stat.h>

#include "check/checks.h"
#include "common/finding.h"
#include "common/pci_link.h"
#include "system/sysfs.h"

#include "machine_fixture.h"
#include "unit.h"

struct machine machine;

void machine_setup(void)
{
	sysfs_fixture_make(&machine.tree);
	snprintf(machine.sysfs.root, sizeof(machine.sysfs.root), "%.240s/sys", machine.tree.root);
	assert_int_equal(mkdir(machine.sysfs.root, 0755), 0);
	sysfs_fixture_file(&machine.tree,
			   "Limit                     Soft Limit           Hard Limit    Units\n"
			   "Max locked memory         unlimited            unlimited     bytes",
			   "proc/self/limits");
	sysfs_fixture_file(&machine.tree, "Name:\tcat\nCapEff:\t0000000000000000",
			   "proc/self/status");
	sysfs_fixture_file(&machine.tree, "cubic", CONGESTION);
	memset(&machine.context, 0, sizeof(machine.context));
	assert_int_equal(mesh_sysfs_open(machine.tree.root, &machine.context.files), 0);
}

void machine_teardown(void)
{
	check_context_free(&machine.context);
	sysfs_fixture_remove(&machine.tree);
}

struct mesh_nic *machine_nic_add(const char *netdev, const char *mac, const char *addr)
{
	struct mesh_nic_table *table = &machine.context.table;
	struct mesh_nic *nic;

	if (!table->nics)
		table->nics = calloc(8, sizeof(*table->nics));
	nic = &table->nics[table->num_nics++];
	table->num_taken = table->num_nics;
	snprintf(nic->netdev, sizeof(nic->netdev), "%s", netdev);
	sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &nic->mac[0], &nic->mac[1],
	       &nic->mac[2], &nic->mac[3], &nic->mac[4], &nic->mac[5], &nic->mac[6], &nic->mac[7]);
	nic->ifindex = (unsigned int)table->num_nics;
	nic->link_type = strlen(mac) > 17 ? 32 : 1; /* ARPHRD_INFINIBAND, ARPHRD_ETHER */
	nic->kind = strlen(mac) > 17 ? MESH_NIC_INFINIBAND : MESH_NIC_PHYSICAL;
	nic->state = MESH_NIC_RUNS;
	nic->verdict = MESH_NIC_TAKEN;
	nic->mtu = 9000;
	if (addr) {
		assert_int_equal(mesh_addr_parse(addr, &nic->addrs[nic->num_addrs++]), 0);
		nic->source = nic->addrs[0];
	}
	return nic;
}

void machine_load(void)
{
	struct mesh_sysfs files;

	assert_int_equal(mesh_sysfs_open(machine.sysfs.root, &files), 0);
	for (int i = 0; i < machine.context.table.num_nics; i++)
		mesh_sysfs_netdev_load(&files, &machine.context.table.nics[i]);
	assert_int_equal(mesh_sysfs_rdma_load(&files, machine.context.table.nics,
					      machine.context.table.num_nics),
			 0);
	mesh_pci_links_load(&machine.context.table);
	mesh_sysfs_close(&files);
}

enum check_verdict machine_check(const char *id)
{
	struct check_result result = {0};
	enum check_verdict verdict;
	const struct check *check;
	FILE *file;

	for (check = checks; strcmp(check->id, id);)
		check++;
	check->run(&machine.context, &result);
	verdict = check_verdict_of(&result);
	memset(machine.said, 0, sizeof(machine.said));
	file = fmemopen(machine.said, sizeof(machine.said) - 1, "w");
	check_print(file, check->id, &result, false);
	fclose(file);
	check_result_free(&result);
	return verdict;
}

void machine_says(const char *id, enum check_verdict verdict, const char *const *words)
{
	enum check_verdict got = machine_check(id);

	for (; *words; words++)
		if (got != verdict || !strstr(machine.said, *words))
			fail_msg("%s: wanted %s \"%s\", but %s:\n%s", id,
				 check_verdict_text(verdict), *words, check_verdict_text(got),
				 machine.said);
}

void assert_well(const char *id)
{
	if (machine_check(id) != CHECK_PASS)
		fail_msg("%s:\n%s", id, machine.said);
}

void tree_file(const char *text, const char *path)
{
	sysfs_fixture_file(&machine.tree, text, "%s", path);
}

void sys_file(const char *text, const char *path)
{
	sysfs_fixture_file(&machine.sysfs, text, "%s", path);
}

static void file_remove(const struct sysfs_fixture *fixture, const char *path)
{
	char whole[PATH_MAX];

	snprintf(whole, sizeof(whole), "%s/%s", fixture->root, path);
	assert_int_equal(remove(whole), 0);
}

void tree_remove(const char *path)
{
	file_remove(&machine.tree, path);
}

void sys_remove(const char *path)
{
	file_remove(&machine.sysfs, path);
}

void machine_spark_make(void)
{
	sysfs_fixture_dgx_spark(&machine.sysfs);
	machine_nic_add("enp1s0f0np0", "4c:bb:47:00:00:01", "10.1.0.1/24");
	machine_nic_add("enp1s0f1np1", "4c:bb:47:00:00:02", "10.2.0.1/24");
	sys_file("", "module/ib_uverbs/refcnt");
	sys_file("", "module/rdma_ucm/refcnt");
	sys_file("rocep1s0f0", "class/infiniband_verbs/uverbs0/ibdev");
	sys_file("rocep1s0f1", "class/infiniband_verbs/uverbs1/ibdev");
	sys_file("elsewhere", "class/infiniband_verbs/uverbs2/ibdev");
	tree_file("", "dev/infiniband/rdma_cm");
	tree_file("", "dev/infiniband/uverbs0");
	tree_file("", "dev/infiniband/uverbs1");
	machine_load();
}

void machine_connectx3_make(const char *address)
{
	sysfs_fixture_connectx3(&machine.sysfs);
	sys_file("0x1", "class/infiniband/mlx4_0/ports/1/sm_lid");
	sys_file("5: LinkUp", "class/infiniband/mlx4_0/ports/1/phys_state");
	machine_nic_add("ib0", "00:02:c9:03:00:ef:12:35", address);
	sys_file("4", MODEL "/current_link_width");
	sys_file("4", MODEL "/max_link_width");
	sys_file("8.0 GT/s PCIe", MODEL "/current_link_speed");
	sys_file("8.0 GT/s PCIe", MODEL "/max_link_speed");
	sys_file("16", MODEL "/../max_link_width");
}
