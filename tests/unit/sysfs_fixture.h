/* SPDX-License-Identifier: Apache-2.0 */
/* sysfs_fixture.h - makes folders that look like /sys of machines that we know. */
#ifndef MESH_TESTS_SYSFS_FIXTURE_H
#define MESH_TESTS_SYSFS_FIXTURE_H

#include <limits.h>

/* A folder in $TMPDIR or /tmp; every function below ends the test program if it cannot write. */
struct sysfs_fixture {
	char root[256];
};

void sysfs_fixture_make(struct sysfs_fixture *fixture);
void sysfs_fixture_remove(struct sysfs_fixture *fixture);

/** Writes @text and a newline; NULL makes a file that opens but cannot be read, like EINVAL's. */
void sysfs_fixture_file(const struct sysfs_fixture *fixture, const char *text, const char *format,
			...) __attribute__((format(printf, 3, 4)));

/**
 * A device below devices/, for example "pci0000:00/0000:00:01.0/0000:01:00.0"; @bus is the last
 * one's subsystem ("pci", "virtio", "usb", "auxiliary").
 */
void sysfs_fixture_device(const struct sysfs_fixture *fixture, const char *device, const char *bus);

/** An interface; @device as above, or NULL for one without. @speed NULL: cannot be read. */
void sysfs_fixture_netdev(const struct sysfs_fixture *fixture, const char *name, const char *device,
			  const char *mac, const char *speed);

/** An RDMA device; @device may be NULL as soft-RoCE has none. */
void sysfs_fixture_rdma(const struct sysfs_fixture *fixture, const char *name, const char *device,
			const char *node_guid);

void sysfs_fixture_port(const struct sysfs_fixture *fixture, const char *name, int port,
			const char *link_layer, const char *state, const char *rate);

/** An entry of a GID table; an empty one has @gid, @type and @netdev NULL. */
void sysfs_fixture_gid(const struct sysfs_fixture *fixture, const char *name, int port, int index,
		       const char *gid, const char *type, const char *netdev);

/* Whole machines. */

/** ConnectX-3: one function, port 1 InfiniBand (ib0), port 2 Ethernet (enp1s0d1, 10.3.0.1). */
void sysfs_fixture_connectx3(const struct sysfs_fixture *fixture);

/** ConnectX-3: one function, both ports InfiniBand, ib0 ACTIVE and ib1 without subnet manager. */
void sysfs_fixture_connectx3_infiniband(const struct sysfs_fixture *fixture);

/** DGX Spark: a ConnectX-7 with four functions, two for each of its two ports. */
void sysfs_fixture_dgx_spark(const struct sysfs_fixture *fixture);

/** E810: irdma0 of ens1f0 speaks RoCE v2 (10.4.0.1), irdma1 of ens1f1 iWARP. */
void sysfs_fixture_e810(const struct sysfs_fixture *fixture);

/** A pod: net1 (10.20.0.5) on mlx5_bond_0, of whose GID table it sees entries 8 and 9. */
void sysfs_fixture_bond_pod(const struct sysfs_fixture *fixture);

/** Two nodes of soft-RoCE on one kernel: rxe_n0p0 (n0p0, 10.1.0.1) and rxe_n1p1 (n1p1). */
void sysfs_fixture_soft_roce(const struct sysfs_fixture *fixture);

/** A virtual machine: eth0 on virtio, eth1 a virtual function, usb0 on USB, veth0, lo. */
void sysfs_fixture_plain(const struct sysfs_fixture *fixture);

#endif
