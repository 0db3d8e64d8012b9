/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what all checks of `fi_mesh check` share: what they look at and how they answer.
 *
 * A check is one function and one row of the table in check.c. It looks through the plugin's own
 * layers and says one sentence for each thing that is wrong, with the evidence and the command
 * that mends it; or one sentence that says what it found to be well.
 */
#ifndef MESH_FI_UTILS_CHECK_H
#define MESH_FI_UTILS_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "base/config.h"
#include "nic/nic_filter.h"
#include "system/sysfs.h"

/* From the best to the worst; a check is as good as its worst finding. */
enum check_verdict {
	CHECK_PASS,
	CHECK_UNKNOWN, /* could not be seen; the sentence says why */
	CHECK_WARN,    /* works, but slower than it could, or by luck */
	CHECK_FAIL,    /* does not work */
};

struct check_finding {
	enum check_verdict verdict;
	char *text;	/* one sentence; owned, as are the others */
	char *evidence; /* where it was seen; NULL: the sentence has it */
	char *fix;	/* command, or what to do by hand; NULL: nothing to be done */
};

struct check_result {
	struct check_finding *findings; /* owned */
	int num_findings;
	bool incomplete; /* memory ran out */
};

/* How many checks, or sections, have which verdict. */
struct check_totals {
	int counts[CHECK_FAIL + 1];
};

#define CHECK_TOTALS_TEXT_MAX 80

/* What is looked at. Plain data, so that tests can make one. */
struct check_context {
	struct mesh_sysfs files; /* "/", or a recorded tree: "sys/...", "proc/...", "dev/..." */
	struct mesh_config config;
	struct mesh_nic_filter filter; /* config.nics */
	struct mesh_nic_table table;
	const char *nccl_file; /* --nccl, or NULL: look for it */
};

struct check {
	const char *id; /* stable: scripts and docs name it */
	const char *title;
	void (*run)(const struct check_context *context, struct check_result *result);
};

/** The table, in the order in which a person would look; ended by an id of NULL. */
extern const struct check checks[];

/* ---- answering (check_report.c) --------------------------------------------------------- */

/** Adds a finding: one sentence without a full stop. */
void check_say(struct check_result *result, enum check_verdict verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Adds to the latest finding where it was seen, or the command that mends it. */
void check_seen(struct check_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void check_fix(struct check_result *result, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/** The worst of its findings; CHECK_UNKNOWN if there are none or memory ran out. */
enum check_verdict check_verdict_of(const struct check_result *result);

/** "pass", "unknown", "warn" or "fail". */
const char *check_verdict_text(enum check_verdict verdict);

/** Prints the findings for people; @quiet leaves out what is well. */
void check_print(FILE *file, const struct check *check, const struct check_result *result,
		 bool quiet);

/** {"id", "title", "verdict", "findings": [...]}, or NULL without memory. */
json_t *check_json(const struct check *check, const struct check_result *result);

void check_result_free(struct check_result *result);

/** COMMAND_PROBLEM if anything warns or fails, else COMMAND_FINE. */
int check_totals_status(const struct check_totals *totals);

/**
 * Writes "3 pass, 0 unknown, 1 warn, 0 fail" into @text (CHECK_TOTALS_TEXT_MAX bytes); returns
 * @text.
 */
const char *check_totals_text(const struct check_totals *totals, char *text);

/** {"pass", "unknown", "warn", "fail", @key: @list}, which takes @list; NULL without memory. */
json_t *check_totals_json(const struct check_totals *totals, const char *key, json_t *list);

/* ---- what checks ask in common (check_context.c) ---------------------------------------- */

/**
 * Reads what the checks look at.
 *
 * @root: "/", or a folder with recorded "sys", "proc" and "dev"; netlink is always the living one
 *
 * Returns 0, or a negative errno (logged).
 */
int check_context_load(struct check_context *context, const char *root);

void check_context_free(struct check_context *context);

/** True if NCCL_MESH_NICS, or without it its kind, makes it one that should carry the mesh. */
bool check_nic_is_wanted(const struct check_context *context, const struct mesh_nic *nic);

/** An address that somebody gave it, or NULL: link-local ones come on their own. */
const struct mesh_addr *check_given_address(const struct mesh_nic *nic);

/** True if any NIC has an RDMA device behind it. */
bool check_has_rdma(const struct check_context *context);

/**
 * What the kernel uses of net.ipv4.conf.*.NAME: the larger of "all" and the NIC's own
 * (ip-sysctl.rst); -1 if it cannot be read.
 *
 * @files: opened at "/"
 */
int check_ipv4_setting(const struct mesh_sysfs *files, const char *netdev, const char *name);

/** True in a container, where devices and limits are the runtime's business. */
bool check_in_container(const struct check_context *context);

/* ---- the checks ------------------------------------------------------------------------- */

void check_libfabric(const struct check_context *context, struct check_result *result);
void check_modules(const struct check_context *context, struct check_result *result);
void check_device_files(const struct check_context *context, struct check_result *result);
void check_memlock(const struct check_context *context, struct check_result *result);
void check_ports(const struct check_context *context, struct check_result *result);
void check_gids(const struct check_context *context, struct check_result *result);
void check_pcie(const struct check_context *context, struct check_result *result);
void check_carrier(const struct check_context *context, struct check_result *result);
void check_congestion(const struct check_context *context, struct check_result *result);
void check_mtu(const struct check_context *context, struct check_result *result);
void check_speed(const struct check_context *context, struct check_result *result);
void check_subnets(const struct check_context *context, struct check_result *result);
void check_shared_subnet(const struct check_context *context, struct check_result *result);
void check_firewall(const struct check_context *context, struct check_result *result);
void check_environment(const struct check_context *context, struct check_result *result);
void check_plugin(const struct check_context *context, struct check_result *result);

#endif
