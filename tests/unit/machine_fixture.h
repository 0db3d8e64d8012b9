/* SPDX-License-Identifier: Apache-2.0 */
/* machine_fixture.h - a machine that `fi_mesh check` examines: recorded files, and its NICs. */
#ifndef MESH_TESTS_UNIT_MACHINE_FIXTURE_H
#define MESH_TESTS_UNIT_MACHINE_FIXTURE_H

#include "check/context.h"
#include "common/finding.h"

#include "sysfs_fixture.h"

/* The ConnectX-3 of machine_connectx3_make(), below /sys. */
#define MODEL "devices/pci0000:00/0000:00:01.0/0000:01:00.0"
#define CONGESTION "proc/sys/net/ipv4/tcp_congestion_control"

struct machine {
	struct sysfs_fixture tree, sysfs; /* "/" and its "/sys" */
	struct check_context context;
	char said[8192]; /* what the last check said */
};

extern struct machine machine;

/** A test's setup: a machine without NICs; and teardown. */
void machine_setup(void);
void machine_teardown(void);

/** A NIC as netlink would report it; the recorded tree adds the rest in machine_load(). */
struct mesh_nic *machine_nic_add(const char *netdev, const char *mac, const char *addr);

/** Reads the tree as the plugin does. */
void machine_load(void);

/** Replaces the text of a file below "/", or below "/sys". */
void tree_file(const char *text, const char *path);
void sys_file(const char *text, const char *path);

/** Removes such a file, or an empty folder. */
void tree_remove(const char *path);
void sys_remove(const char *path);

/** Two Spark ports with all that is needed, loaded. */
void machine_spark_make(void);

/** One InfiniBand port, to be loaded. */
void machine_connectx3_make(const char *address);

/** Runs the check @id: machine.said has its text. */
enum check_verdict machine_check(const char *id);

/** Fails the test unless the check has this verdict and says all of these words. */
#define assert_says(id, verdict, ...)                                                              \
	machine_says(id, verdict, (const char *const[]){__VA_ARGS__, NULL})
void machine_says(const char *id, enum check_verdict verdict, const char *const *words);

/** Fails the test unless the check passes. */
void assert_well(const char *id);

#endif
