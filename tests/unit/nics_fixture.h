/* SPDX-License-Identifier: Apache-2.0 */
/* nics_fixture.h - a table of NICs for tests of the selection, and what was selected. */
#ifndef MESH_TESTS_NICS_FIXTURE_H
#define MESH_TESTS_NICS_FIXTURE_H

#include "nic/nic.h"
#include "nic/nic_select.h"

#include "log_capture.h"
#include "nic_named.h"
#include "unit.h"

#define NICS_MAX 16

static struct mesh_nic *nics; /* NICS_MAX */
static struct mesh_nic_table table;

static inline void nics_setup(void)
{
	nics = calloc(NICS_MAX, sizeof(*nics));
	table = (struct mesh_nic_table){.nics = nics};
	log_capture_start();
	assert_non_null(nics);
}

static inline void nics_teardown(void)
{
	free(nics);
}

/* A NIC that is up; @addrs is a blank-separated list. */
static inline struct mesh_nic *add(const char *netdev, int speed_mbps, const char *addrs)
{
	struct mesh_nic *nic = nic_add(&table, netdev, addrs);

	assert_true(table.num_nics <= NICS_MAX);
	nic->speed_mbps = speed_mbps;
	return nic;
}

/* Ports of Ethernet. */
static inline struct mesh_nic *rdma_give(struct mesh_nic *nic, const char *device, int port)
{
	snprintf(nic->rdma.device, sizeof(nic->rdma.device), "%s", device);
	snprintf(nic->rdma.state, sizeof(nic->rdma.state), "%s",
		 mesh_nic_has_carrier(nic) ? "4: ACTIVE" : "1: DOWN");
	nic->rdma.port = port;
	nic->rdma.link_layer = MESH_LINK_LAYER_ETHERNET;
	nic->rdma.node_guid = 0x1000 + nic->ifindex;
	return nic;
}

static inline struct mesh_nic *add_rdma(const char *netdev, int speed_mbps, const char *addrs,
					const char *device, int port)
{
	return rdma_give(add(netdev, speed_mbps, addrs), device, port);
}

static inline const struct mesh_nic *find(const char *netdev)
{
	return nic_named(table.nics, table.num_nics, netdev);
}

static inline void assert_reason(const char *netdev, const char *reason)
{
	assert_string_equal(find(netdev)->reason, reason);
}

/* Those that are taken, in their order, as "a b c"; no other has a source. */
static inline void assert_taken(const char *wanted)
{
	char got[256] = "";

	for (int i = 0; i < table.num_nics; i++) {
		assert_int_equal(mesh_nic_is_taken(&nics[i]), i < table.num_taken);
		assert_int_equal(nics[i].source.family != MESH_FAMILY_NONE,
				 mesh_nic_is_taken(&nics[i]));
		if (mesh_nic_is_taken(&nics[i]))
			strcat(strcat(got, i ? " " : ""), nics[i].netdev);
	}
	assert_string_equal(got, wanted);
}

/* Selects with this setting: these are taken. */
static inline void selects(const char *setting, const char *taken)
{
	assert_int_equal(mesh_nic_select(setting, "", &table), 0);
	assert_taken(taken);
}

#endif
