/* SPDX-License-Identifier: Apache-2.0 */
/* context.c - reads the state that the checks examine. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/log.h"
#include "system/nic_table.h"
#include "system/stats_file.h"

#include "check/context.h"
#include "common/pci_link.h"
#include "common/stats_folders.h"

static void marks_add(void *arg, const char *path, int folder_fd, uid_t owner)
{
	struct check_context *context = arg;
	struct mesh_drain_marks marks = {.num = 0};
	int i;

	(void)path;
	(void)owner;
	mesh_drain_marks_read(folder_fd, &marks);
	for (i = 0; i < marks.num && context->drained.num < MESH_DRAIN_MARKS_MAX; i++) {
		if (mesh_drain_marks_have(&context->drained, marks.netdevs[i]))
			continue;
		memcpy(context->drained.netdevs[context->drained.num++], marks.netdevs[i],
		       sizeof(marks.netdevs[i]));
	}
}

int check_context_load(struct check_context *context, const char *root)
{
	char sysfs[PATH_MAX];
	int ret;

	*context = (struct check_context){.files = {.fd = -1}};
	ret = mesh_sysfs_open(root, &context->files);
	if (ret) {
		mesh_warn("cannot open %s: %s", root, strerror(-ret));
		return ret;
	}
	if (snprintf(sysfs, sizeof(sysfs), "%s/sys", context->files.root) >= (int)sizeof(sysfs)) {
		mesh_warn("the path %s is too long", context->files.root);
		return -ENAMETOOLONG;
	}
	/* A bad value was reported, and its default is used, as in the plugin. */
	ret = mesh_config_load(NULL, NULL, &context->config);
	if (ret == -E2BIG)
		return ret;
	if (!strcmp(root, "/") && strcmp(context->config.stats_dir, MESH_STATS_NONE))
		stats_folders_visit(context->config.stats_dir, false, marks_add, context);
	ret = mesh_nic_filter_parse(context->config.nics, &context->filter);
	if (!ret)
		ret = mesh_nic_table_load(sysfs, &context->config, &context->table);
	if (!ret)
		mesh_pci_links_load(&context->table);
	return ret;
}

void check_context_free(struct check_context *context)
{
	mesh_nic_table_free(&context->table);
	mesh_sysfs_close(&context->files);
}

bool check_nic_is_wanted(const struct check_context *context, const struct mesh_nic *nic)
{
	if (context->filter.num_items)
		return mesh_nic_filter_names(&context->filter, nic) != context->filter.exclude;
	return mesh_nic_is_taken(nic) || nic->kind == MESH_NIC_PHYSICAL ||
	       nic->kind == MESH_NIC_VIRTUAL || nic->kind == MESH_NIC_INFINIBAND;
}

const struct mesh_addr *check_given_address(const struct mesh_nic *nic)
{
	int i;

	for (i = 0; i < nic->num_addrs; i++)
		if (!mesh_addr_is_link_local(&nic->addrs[i]))
			return &nic->addrs[i];
	return NULL;
}

bool check_has_rdma(const struct check_context *context)
{
	int i;

	for (i = 0; i < context->table.num_nics; i++)
		if (*context->table.nics[i].rdma.device)
			return true;
	return false;
}

bool check_in_container(const struct check_context *context)
{
	/* Docker, podman and CRI-O leave these. */
	return mesh_sysfs_exists(&context->files, ".dockerenv") ||
	       mesh_sysfs_exists(&context->files, "run/.containerenv") ||
	       mesh_sysfs_exists(&context->files, "var/run/secrets/kubernetes.io");
}

bool check_is_arm64(const struct check_context *context)
{
	struct utsname name;
	char text[32];

	/* The file is in Linux 6.1 and newer. */
	if (!mesh_sysfs_read(&context->files, text, sizeof(text), "proc/sys/kernel/arch"))
		return !strncmp(text, "aarch64", 7);
	return !uname(&name) && !strcmp(name.machine, "aarch64");
}
