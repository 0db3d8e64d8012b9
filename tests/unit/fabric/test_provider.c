/* SPDX-License-Identifier: Apache-2.0 */
/* test_provider.c - which libfabric entry serves a NIC, and the message if there is none. */
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "fabric/provider.h"

#include "fake_fabric.h"
#include "log_capture.h"
#include "unit.h"

/* The machine: what a process may do here. */
static struct {
	bool no_rdma_cm, no_uverbs;
	uint32_t fi_version;
} machine;

uint32_t __real_fi_version(void);

uint32_t __wrap_fi_version(void)
{
	return machine.fi_version;
}

int __wrap_access(const char *path, int mode)
{
	errno = ENOENT;
	if (!strcmp(path, "/dev/infiniband/rdma_cm"))
		return machine.no_rdma_cm ? -1 : 0;
	assert_string_equal(path, "/dev/infiniband/uverbs3");
	return machine.no_uverbs ? -1 : 0;
}

static struct mesh_nic nic;
static struct fi_info *info;
static enum mesh_provider_id id;
static char reason[MESH_PROVIDER_REASON_MAX];

void tests_setup(void)
{
	fake_reset();
	memset(&machine, 0, sizeof(machine));
	machine.fi_version = FI_VERSION(1, 17);
	nic = *fake_nic();
	nic.rdma.device[0] = '\0';
	info = NULL;
	unsetenv("FI_PROVIDER");
	unsetenv("FI_TCP_IFACE");
	unsetenv("FI_NET_IFACE");
	unsetenv("FI_VERBS_IFACE");
	log_capture_start(); /* mesh_provider_find logs nothing */
}

void tests_teardown(void)
{
	int logged = log_captured_lines(MESH_LOG_WARN) + log_captured_lines(MESH_LOG_INFO);

	if (info)
		fi_freeinfo(info);
	info = NULL;
	fake_teardown();
	assert_false(logged);
}

static void rdma_set(enum mesh_link_layer link_layer, const char *words)
{
	strcpy(nic.rdma.device, "mlx5_7");
	strcpy(nic.rdma.uverbs, "uverbs3");
	nic.rdma.port = 1;
	nic.rdma.link_layer = link_layer;
	strcpy(nic.rdma.state, words);
}

static int find(enum mesh_provider_id wanted)
{
	if (info)
		fi_freeinfo(info);
	info = NULL;
	id = MESH_PROVIDER_NONE;
	memset(reason, 'x', sizeof(reason));
	return mesh_provider_find(&nic, wanted, &info, &id, reason);
}

/* Found, with this domain. */
static void finds(enum mesh_provider_id wanted, enum mesh_provider_id expected, const char *domain)
{
	assert_int_equal(find(wanted), 0);
	assert_non_null(info);
	assert_int_equal(id, expected);
	assert_string_equal(info->domain_attr->name, domain);
}

static void misses(enum mesh_provider_id wanted, const char *said)
{
	assert_int_equal(find(wanted), -ENODEV);
	assert_null(info);
	assert_int_equal(id, MESH_PROVIDER_NONE);
	if (!strstr(reason, said))
		fail_msg("\"%s\" does not say \"%s\"", reason, said);
}

#define OFFERS(...) (fake.offers = (const struct fake_offer[]){__VA_ARGS__, {0}})

TEST(by_source)
{
	OFFERS({"tcp", "eth0", "10.7.0.2"}, {"tcp", "lo", "127.0.0.1"}, {"tcp", "eth7", NULL},
	       {"tcp", "eth7", "fd00::1"}, {"tcp", "eth7", "10.7.0.1"});
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_TCP, "eth7");
	assert_string_equal(reason, "");
	assert_string_equal(fake.queried[0], "net 10.7.0.1");
	assert_string_equal(fake.queried[1], "tcp 10.7.0.1");
}

/* 1.16 and 1.17 call it net, and their tcp is something else: net is asked for first. */
TEST(net_first)
{
	OFFERS({"tcp", "eth7", "10.7.0.1"}, {"net", "eth7", "10.7.0.1"});
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_TCP, "eth7");
	assert_string_equal(info->fabric_attr->prov_name, "net");
}

/*
 * libfabric's tcp answers for an address that is not here with an entry named after itself; and
 * an address that two NICs have must not lead to the other one.
 */
TEST(wrong_domain)
{
	OFFERS({"tcp", "tcp", "10.7.0.1"}, {"net", "net", "10.7.0.1"});
	misses(MESH_PROVIDER_NONE, "libfabric offers no tcp for eth7 (10.7.0.1)");
	OFFERS({"tcp", "eth70", "10.7.0.1"}, {"tcp", "eth", "10.7.0.1"});
	misses(MESH_PROVIDER_NONE, "libfabric offers no tcp");
	OFFERS({"tcp", NULL, "10.7.0.1"});
	misses(MESH_PROVIDER_NONE, "libfabric offers no tcp");
	OFFERS({"tcp", "eth7", "10.7.0.9"});
	misses(MESH_PROVIDER_NONE, "libfabric offers no tcp");
}

TEST(ipv6)
{
	OFFERS({"tcp", "eth7", "fd00::1"});
	assert_int_equal(mesh_addr_parse("fd00::1/64", &nic.source), 0);
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_TCP, "eth7");
	assert_string_equal(fake.queried[1], "tcp fd00::1");
	assert_int_equal(fake.hints->addr_format, FI_SOCKADDR_IN6);
}

/* A link-local address needs its NIC's name in the question; answers may leave the scope out. */
TEST(link_local)
{
	OFFERS({"tcp", "eth7", "fe80::1"});
	assert_int_equal(mesh_addr_parse("fe80::1/64", &nic.source), 0);
	nic.source.scope_id = 3;
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_TCP, "eth7");
	assert_string_equal(fake.queried[1], "tcp fe80::1%eth7");
}

TEST(verbs_first)
{
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	OFFERS({"tcp", "eth7", "10.7.0.1"}, {"verbs;ofi_rxm", "mlx5_6", "10.7.0.1"},
	       {"verbs;ofi_rxm", "mlx5_7", "10.7.0.1"});
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_VERBS_RXM, "mlx5_7");
	assert_string_equal(reason, "");
	assert_int_equal(fake.on[FAKE_GETINFO].calls, 1);
	finds(MESH_PROVIDER_TCP, MESH_PROVIDER_TCP, "eth7"); /* as the user wants it */
	assert_string_equal(reason, "");
	/* Without RDMA behind the NIC verbs is not even asked for. */
	nic.rdma.device[0] = '\0';
	fake.on[FAKE_GETINFO].calls = 0;
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_TCP, "eth7");
	assert_string_equal(fake.queried[0], "net 10.7.0.1");
}

/* tcp is used instead, and the reason is logged. */
TEST(verbs_passed_over)
{
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_TCP, "eth7");
	assert_non_null(strstr(reason, "no verbs;ofi_rxm for mlx5_7"));
	assert_null(strstr(reason, "FI_PROVIDER"));
}

TEST(only_wanted)
{
	OFFERS({"tcp", "eth7", "10.7.0.1"}, {"tcp;ofi_rxm", "eth7", "10.7.0.1"});
	finds(MESH_PROVIDER_TCP_RXM, MESH_PROVIDER_TCP_RXM, "eth7");
	assert_string_equal(info->fabric_attr->prov_name, "tcp;ofi_rxm");
	misses(MESH_PROVIDER_VERBS_RXM, "no RDMA device is behind eth7");
	assert_int_equal(fake.on[FAKE_GETINFO].calls, 2); /* tcp was not asked for */
	OFFERS({"tcp", "eth7", "10.7.0.1"});
	misses(MESH_PROVIDER_TCP_RXM, "libfabric offers no tcp;ofi_rxm for eth7");
}

TEST(hints)
{
	const int mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

	assert_int_equal(find(MESH_PROVIDER_TCP), 0);
	assert_int_equal(fake.hints->ep_attr->type, FI_EP_RDM);
	assert_true((fake.hints->caps & (FI_MSG | FI_RMA)) == (FI_MSG | FI_RMA));
	assert_int_equal(fake.hints->domain_attr->mr_mode, mr_mode);
	assert_int_equal(fake.hints->domain_attr->cq_data_size, 4);
	assert_int_equal(fake.hints->domain_attr->threading, FI_THREAD_SAFE);
	assert_int_equal(fake.hints->addr_format, FI_SOCKADDR_IN);
}

/* ---- reasons: the likeliest cause first ---------------------------------------------------- */

TEST(reason_rdma_cm)
{
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	machine.no_rdma_cm = true;
	misses(MESH_PROVIDER_VERBS_RXM, "/dev/infiniband/rdma_cm cannot be opened");
	assert_non_null(strstr(reason, "rdma_ucm"));
	assert_non_null(strstr(reason, strerror(ENOENT)));
}

/* A container that was given rdma_cm only. */
TEST(reason_uverbs)
{
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	machine.no_uverbs = true;
	misses(MESH_PROVIDER_VERBS_RXM, "/dev/infiniband/uverbs3 cannot be opened");
	assert_non_null(strstr(reason, "pass /dev/infiniband into it"));
}

TEST(reason_state)
{
	rdma_set(MESH_LINK_LAYER_INFINIBAND, "2: INIT");
	misses(MESH_PROVIDER_VERBS_RXM, "no RDMA with mlx5_7 port 1: no subnet manager");
	assert_non_null(strstr(reason, "opensm"));
	rdma_set(MESH_LINK_LAYER_ETHERNET, "1: DOWN");
	misses(MESH_PROVIDER_VERBS_RXM, "no link (1: DOWN)");
	assert_null(strstr(reason, "subnet manager"));
}

TEST(reason_not_installed)
{
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	misses(MESH_PROVIDER_VERBS_RXM, "is its verbs provider installed");
}

TEST(reason_fi_provider)
{
	setenv("FI_PROVIDER", "sockets", 1);
	OFFERS({"shm", "shm", NULL});
	misses(MESH_PROVIDER_NONE, "FI_PROVIDER=sockets is set");
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	misses(MESH_PROVIDER_VERBS_RXM, "does FI_PROVIDER allow it");
	unsetenv("FI_PROVIDER");
}

/* What MPI's settings keep from us; net and tcp each have their own. */
TEST(reason_iface)
{
	OFFERS({"shm", "shm", NULL});
	setenv("FI_TCP_IFACE", "eth0", 1);
	misses(MESH_PROVIDER_TCP_RXM, "FI_TCP_IFACE=eth0 is set; unset it or add the NIC");
	misses(MESH_PROVIDER_TCP, "see `fi_info -p \"net\" -s 10.7.0.1`");
	setenv("FI_NET_IFACE", "eth1", 1);
	misses(MESH_PROVIDER_TCP, "FI_NET_IFACE=eth1 is set");
	machine.fi_version = FI_VERSION(2, 0);
	misses(MESH_PROVIDER_TCP, "FI_TCP_IFACE=eth0 is set");
	unsetenv("FI_TCP_IFACE");
	misses(MESH_PROVIDER_TCP, "see `fi_info -p \"tcp\" -s 10.7.0.1`");
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	setenv("FI_VERBS_IFACE", "eth0", 1);
	misses(MESH_PROVIDER_VERBS_RXM, "does FI_VERBS_IFACE allow it");
	unsetenv("FI_VERBS_IFACE");
	unsetenv("FI_NET_IFACE");
}

/* An RDMA NIC that has come up late: libfabric lists its devices anew, since 2.2. */
TEST(rescan)
{
	OFFERS({"verbs;ofi_rxm", "mlx5_7", "10.7.0.1"});
	machine.fi_version = FI_VERSION(2, 2);
	mesh_provider_rescan(&nic); /* it has no RDMA device */
	assert_int_equal(fake.on[FAKE_GETINFO].calls, 0);
	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	mesh_provider_rescan(&nic);
	assert_int_equal(fake.rescans, 1);
	assert_string_equal(fake.queried[0], "verbs;ofi_rxm 10.7.0.1");
	machine.fi_version = FI_VERSION(2, 1);
	mesh_provider_rescan(&nic);
	assert_int_equal(fake.on[FAKE_GETINFO].calls, 1);
	machine.fi_version = FI_VERSION(2, 6);
	fake_fail(FAKE_GETINFO, 0, 1, -FI_ENODATA);
	mesh_provider_rescan(&nic);
	assert_int_equal(fake.rescans, 2);
	/* It is one for all that follow. */
	finds(MESH_PROVIDER_NONE, MESH_PROVIDER_VERBS_RXM, "mlx5_7");
	assert_int_equal(fake.rescans, 2);
}

TEST(reason_old_library)
{
	machine.fi_version = FI_VERSION(1, 11);
	fake_fail(FAKE_GETINFO, 0, 2, -FI_ENOSYS);
	misses(MESH_PROVIDER_TCP, "libfabric 1.11 is too old: 1.17 or later is needed");
}

/* libfabric's own errors, and the longest texts that there can be. */
TEST(reason_error)
{
	fake_fail(FAKE_GETINFO, 0, 2, -FI_EBUSY);
	misses(MESH_PROVIDER_TCP, fi_strerror(FI_EBUSY));
	memset(nic.rdma.device, 'd', MESH_RDMA_NAME_MAX - 1);
	nic.rdma.device[MESH_RDMA_NAME_MAX - 1] = '\0';
	memset(nic.rdma.state, 's', sizeof(nic.rdma.state) - 1);
	nic.rdma.state[sizeof(nic.rdma.state) - 1] = '\0';
	misses(MESH_PROVIDER_VERBS_RXM, nic.rdma.state);
	assert_true(strlen(reason) < sizeof(reason) - 1);
}

/* ---- all NICs ------------------------------------------------------------------------------ */

TEST(assign)
{
	struct mesh_nic nics[3];
	struct mesh_nic_table table = {.nics = nics, .num_nics = 3, .num_taken = 3};
	struct mesh_provider_verdict verdicts[3];

	for (int i = 0; i < 3; i++) {
		nics[i] = nic;
		nics[i].verdict = MESH_NIC_TAKEN;
		nics[i].netdev[3] = (char)('7' + i);
	}
	nics[0].source.bytes[3] = 7;
	nics[2].source.bytes[3] = 9;
	OFFERS({"tcp", "eth8", "10.7.0.1"}, {"tcp", "eth9", "10.7.0.9"});
	assert_int_equal(mesh_providers_assign("", &table, verdicts), 0);
	assert_int_equal(table.num_taken, 2);
	assert_string_equal(nics[0].netdev, "eth8");
	assert_string_equal(nics[1].netdev, "eth9");
	assert_string_equal(nics[2].netdev, "eth7");
	assert_false(mesh_nic_is_taken(&nics[2]));
	assert_non_null(strstr(nics[2].reason, "libfabric offers no tcp for eth7"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(verdicts[i].id, MESH_PROVIDER_TCP);
		assert_string_equal(verdicts[i].note, "");
	}
}

/* The user sees the table's log only: what to do stands at the end. */
TEST(assign_long_reason)
{
	struct mesh_nic_table table = {.nics = &nic, .num_nics = 1, .num_taken = 1};
	struct mesh_provider_verdict verdict;

	rdma_set(MESH_LINK_LAYER_ETHERNET, "4: ACTIVE");
	memset(nic.rdma.device, 'd', MESH_RDMA_NAME_MAX - 1);
	machine.no_rdma_cm = true;
	nic.verdict = MESH_NIC_TAKEN;
	assert_int_equal(mesh_providers_assign("verbs;ofi_rxm", &table, &verdict), 0);
	assert_int_equal(table.num_taken, 0);
	assert_non_null(strstr(nic.reason, "else load the module rdma_ucm"));
}

TEST(assign_setting)
{
	struct mesh_nic_table table = {.nics = &nic, .num_nics = 1, .num_taken = 1};
	struct mesh_provider_verdict verdict;

	assert_int_equal(mesh_providers_assign("net", &table, &verdict), 0);
	assert_int_equal(verdict.id, MESH_PROVIDER_TCP);
	assert_int_equal(mesh_providers_assign("verbs", &table, &verdict), -EINVAL);
	assert_int_equal(table.num_taken, 1);
	assert_true(log_captured(MESH_LOG_WARN, "NCCL_MESH_PROVIDER=\"verbs\""));
	log_capture_start(); /* drop it: the teardown expects no lines */
}

/* Of what runs, not of what was compiled with: that may be older. */
TEST(version)
{
	char text[MESH_LIBFABRIC_VERSION_MAX], begin[16];
	unsigned int version = __real_fi_version();

	assert_ptr_equal(mesh_libfabric_version(text), text);
	snprintf(begin, sizeof(begin), "%u.%u.", FI_MAJOR(version), FI_MINOR(version));
	assert_memory_equal(text, begin, strlen(begin));
}
