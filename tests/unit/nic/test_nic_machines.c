/* SPDX-License-Identifier: Apache-2.0 */
/* test_nic_machines.c - which NICs carry the mesh on the machines that people have. */
#include "nics_fixture.h"

/*
 * A NIC: its name, Mbit/s (0: the kernel does not say), addresses with commas between (-: none),
 * and what else is true: default (route), rdma, ib (RDMA over InfiniBand), wireless, bridge,
 * container (its host end), virtual (its own end), down, on:NAME (a VLAN or macvlan there),
 * of:NAME (a port of that bond).
 */
static const struct machine {
	const char *what, *nics, *taken;
} machines[] = {
	{"DGX Spark: two ports of two halves, LAN, Wi-Fi, Docker",
	 "enP7s7 10000 192.168.1.20/24 default; enp1s0f0np0 200000 10.1.0.1/24 rdma;"
	 "enp1s0f1np1 200000 10.2.0.1/24 rdma; enP2p1s0f0np0 200000 fe80::1/64 rdma;"
	 "enP2p1s0f1np1 200000 10.2.1.1/24 rdma; wlP9s9 0 192.168.2.20/24 wireless;"
	 "docker0 0 172.17.0.1/16 bridge; vethabcdef0 10000 fe80::2/64 container",
	 "enP2p1s0f0np0 enP2p1s0f1np1 enp1s0f0np0 enp1s0f1np1"},
	{"Strix Halo: a Thunderbolt cable with an address, LAN",
	 "eno1 5000 192.168.1.5/24 default; thunderbolt0 0 10.1.0.1/24", "thunderbolt0"},
	{"a Thunderbolt cable without one",
	 "eno1 2500 192.168.1.5/24 default; thunderbolt0 0 fe80::1/64,169.254.7.7/16",
	 "thunderbolt0"},
	{"Strix Halo: InfiniBand, Thunderbolt, LAN",
	 "ib0 56000 10.1.0.1/24 ib; thunderbolt0 0 10.2.0.1/24; eno1 2500 192.168.1.5/24 default",
	 "ib0"},
	{"a card of two InfiniBand ports, a child of one without an address",
	 "ib0 56000 10.1.0.1/24 ib; ib1 56000 10.2.0.1/24 ib; ib0.8001 56000 fe80::3/64 on:ib0;"
	 "eno1 2500 192.168.1.5/24 default",
	 "ib0 ib1"},
	{"eight rails on a switch, one of which has the default route",
	 "r0 400000 10.0.0.1/24 rdma default; r1 400000 10.0.1.1/24 rdma;"
	 "r2 400000 10.0.2.1/24 rdma; r3 400000 10.0.3.1/24 rdma; r4 400000 10.0.4.1/24 rdma;"
	 "r5 400000 10.0.5.1/24 rdma; r6 400000 10.0.6.1/24 rdma; r7 400000 10.0.7.1/24 rdma",
	 "r0 r1 r2 r3 r4 r5 r6 r7"},
	{"cables as fast as the LAN",
	 "mgmt 10000 192.168.99.1/24 default virtual; n0p0 10000 10.1.0.1/24 virtual;"
	 "n0p1 10000 10.2.0.1/24 virtual",
	 "n0p0 n0p1"},
	{"a cable slower than the LAN", "eth0 10000 192.168.1.5/24 default; eth1 2500 10.2.0.1/24",
	 "eth1"},
	{"a fast NIC with the default route, and one that nobody means",
	 "eth0 100000 10.1.0.1/24 default; eth1 1000 10.2.0.1/24", "eth0"},
	{"cables with link-local addresses, as fast as the LAN",
	 "mgmt 10000 192.168.99.1/24 default; n0p0 10000 fe80::1/64", "n0p0"},
	{"a BMC's USB network beside the only NIC",
	 "eno1 10000 192.168.99.1/24 default; usb0 0 169.254.3.1/24; usb1 5000 fe80::1/64",
	 "eno1 usb0 usb1"},
	{"the same with an address that each of them has",
	 "eno1 1000 192.168.1.5/24 default; usb0 425 16.1.15.2/30", "eno1 usb0"},
	{"the same with nothing known",
	 "eno1 0 192.168.99.1/24 default; usb0 0 169.254.3.1/24; usb1 0 fe80::1/64",
	 "eno1 usb0 usb1"},
	{"the LAN's address on a VLAN: its NIC has a link-local one only",
	 "eth0 10000 10.1.0.1/24; eth1 10000 fe80::2/64;"
	 "eth1.7 10000 192.168.1.5/24 default on:eth1",
	 "eth0"},
	{"on a macvlan, beside Thunderbolt",
	 "eno1 2500 192.168.1.4/24; mv0 2500 192.168.1.5/24 default on:eno1;"
	 "thunderbolt0 0 10.1.0.1/24",
	 "thunderbolt0"},
	{"on a bond",
	 "eno1 10000 fe80::1/64 of:bond0; eno2 10000 fe80::2/64 of:bond0;"
	 "bond0 20000 192.168.1.5/24 default; eth0 10000 10.1.0.1/24",
	 "eth0"},
	{"a cable whose address is on a VLAN: it is not two cables",
	 "eth0 10000 fe80::1/64; eth1 10000 fe80::2/64; eth1.7 10000 10.1.0.1/24 on:eth1",
	 "eth0 eth1.7"},
	{"a VLAN that does not make the NIC below it useless",
	 "eth0 10000 10.2.0.1/24; eth0.7 10000 10.1.0.1/24 on:eth0; eth1 10000 fe80::1/64;"
	 "eth1.7 10000 fe80::1/64 on:eth1",
	 "eth0 eth0.7 eth1 eth1.7"},
	{"a macvlan without a GID of its own on an RDMA NIC",
	 "eth0 100000 fe80::1/64 rdma; mv0 100000 10.1.0.1/24 on:eth0", "eth0"},
	{"a pod, or a container, with one NIC",
	 "lo 0 127.0.0.1/8 loopback; eth0 10000 10.244.1.7/24 default virtual", "eth0"},
	{"what is down is not the fastest",
	 "eth0 100000 10.1.0.1/24 rdma down; eth1 100000 -; eth2 1000 10.2.0.1/24 default", "eth2"},
};

static void give(struct mesh_nic *nic, const char *fact)
{
	static const struct {
		const char *word;
		enum mesh_nic_kind kind;
	} kinds[] = {{"wireless", MESH_NIC_WIRELESS},	{"bridge", MESH_NIC_BRIDGE},
		     {"container", MESH_NIC_CONTAINER}, {"virtual", MESH_NIC_VIRTUAL},
		     {"loopback", MESH_NIC_LOOPBACK},	{"ib", MESH_NIC_INFINIBAND}};

	FOR_EACH(i, kinds)
		if (!strcmp(fact, kinds[i].word))
			nic->kind = kinds[i].kind;
	if (!strcmp(fact, "default"))
		nic->management = MESH_NIC_DEFAULT_ROUTE;
	if (!strcmp(fact, "down"))
		nic->state = MESH_NIC_DOWN;
	if (!strcmp(fact, "rdma") || !strcmp(fact, "ib"))
		rdma_give(nic, nic->netdev, 1);
	if (!strcmp(fact, "ib"))
		nic->rdma.link_layer = MESH_LINK_LAYER_INFINIBAND;
	if (!strncmp(fact, "on:", 3))
		nic->lower = find(fact + 3)->ifindex;
}

/* A bond stands behind its ports in a row. */
static void bond(struct mesh_nic *port, const char *name)
{
	struct mesh_nic *master = nics;

	while (strcmp(master->netdev, name))
		master++;
	strcpy(master->link_kind, "bond");
	port->master = master->ifindex;
}

static void machine_build(char *text)
{
	char *row, *word, *name, *speed, *at, *ports[NICS_MAX] = {NULL};
	int i;

	while ((row = strtok_r(text, ";", &text))) {
		name = strtok_r(row, " ", &row);
		speed = strtok_r(row, " ", &row);
		word = strtok_r(row, " ", &row);
		for (at = word; *at; at++)
			*at = strchr(",-", *at) ? ' ' : *at;
		add(name, atoi(speed), word);
		while ((word = strtok_r(row, " ", &row)))
			if (strncmp(word, "of:", 3))
				give(&nics[table.num_nics - 1], word);
			else
				ports[table.num_nics - 1] = word + 3;
	}
	for (i = 0; i < table.num_nics; i++)
		if (ports[i])
			bond(&nics[i], ports[i]);
}

TESTS_USE(nics_setup, nics_teardown);

TEST(machines)
{
	FOR_EACH(i, machines) {
		char *text = strdup(machines[i].nics);

		print_message("%s\n", machines[i].what);
		table.num_nics = 0;
		memset(nics, 0, NICS_MAX * sizeof(*nics));
		machine_build(text);
		selects("", machines[i].taken);
		free(text);
	}
}
