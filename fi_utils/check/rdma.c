/* SPDX-License-Identifier: Apache-2.0 */
/* rdma.c - what RDMA needs of the system: modules, device files, locked memory. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/sysfs.h"

#include "check/checks.h"
#include "check/context.h"
#include "common/finding.h"

#define PCI_MELLANOX 0x15b3

/* ---- modules ---------------------------------------------------------------------------- */

/* Network drivers whose RDMA part is a separate module (drivers/infiniband/hw of the kernel). */
static const char *rdma_module_of(const char *driver)
{
	static const char *const halves[][2] = {
		{"mlx4_core", "mlx4_ib"}, {"mlx5_core", "mlx5_ib"}, {"ice", "irdma"},
		{"bnxt_en", "bnxt_re"},	  {"qede", "qedr"},	    {"hns3", "hns_roce_hw_v2"},
		{"cxgb4", "iw_cxgb4"},	  {"mana", "mana_ib"},
	};
	size_t i;

	for (i = 0; i < sizeof(halves) / sizeof(halves[0]); i++)
		if (!strcmp(driver, halves[i][0]))
			return halves[i][1];
	return NULL;
}

/* The last part of what a link below the root points to, a driver's name; false without one. */
static bool link_name(const struct check_context *context, const char *path, char *name,
		      size_t size)
{
	char target[PATH_MAX];
	const char *slash;
	ssize_t len;

	len = readlinkat(context->files.fd, path, target, sizeof(target) - 1);
	if (len < 0)
		return false;
	target[len] = '\0';
	slash = strrchr(target, '/');
	return snprintf(name, size, "%s", slash ? slash + 1 : target) < (int)size;
}

static bool module_is_there(const struct check_context *context, const char *module)
{
	return mesh_sysfs_exists(&context->files, "sys/module/%s", module);
}

static void nic_module(const struct check_context *context, const struct mesh_nic *nic,
		       struct check_result *result)
{
	char path[128], driver[64];
	const char *module;

	snprintf(path, sizeof(path), "sys/class/net/%s/device/driver", nic->netdev);
	/* A management network does not need RDMA. */
	if (*nic->rdma.device ||
	    (nic->management == MESH_NIC_DEFAULT_ROUTE && !mesh_nic_is_taken(nic)) ||
	    !link_name(context, path, driver, sizeof(driver)))
		return;
	module = rdma_module_of(driver);
	if (!module)
		return;
	if (module_is_there(context, module)) {
		check_say(
			result, CHECK_WARN,
			"%s has an RDMA card (%s), but it has no RDMA device: it carries TCP only",
			nic->netdev, driver);
		check_seen(result, "/sys/class/infiniband; the module %s is loaded", module);
		if (check_in_container(context))
			check_fix(result, "pass the RDMA device of %s into the container",
				  nic->netdev);
		else
			check_fix(result, "dmesg | grep %s", module);
		return;
	}
	check_say(result, CHECK_WARN,
		  "%s has an RDMA card (%s), but the module %s is not loaded: it carries TCP only",
		  nic->netdev, driver, module);
	check_seen(result, "/sys/module/%s is missing", module);
	check_fix(result, "modprobe %s", module);
}

/* A network or InfiniBand card (PCI class 02) that no driver has taken. */
static void card_without_driver(const struct check_context *context, const char *function,
				struct check_result *result)
{
	uint64_t class, vendor, device;
	const struct mesh_sysfs *files = &context->files;
	const char *module = "the card's driver";

	if (mesh_sysfs_read_number(files, UINT32_MAX, &class, "sys/bus/pci/devices/%s/class",
				   function) ||
	    class >> 16 != 0x02 ||
	    mesh_sysfs_exists(files, "sys/bus/pci/devices/%s/driver", function) ||
	    mesh_sysfs_read_number(files, UINT16_MAX, &vendor, "sys/bus/pci/devices/%s/vendor",
				   function) ||
	    mesh_sysfs_read_number(files, UINT16_MAX, &device, "sys/bus/pci/devices/%s/device",
				   function))
		return;
	/* ConnectX-3 and older have 0x1002 to 0x1010 (pci.ids); later cards use mlx5. */
	if (vendor == PCI_MELLANOX)
		module = device <= 0x1010 ? "mlx4_core" : "mlx5_core";
	check_say(result, CHECK_WARN,
		  "the network card in %s (%04" PRIx64 ":%04" PRIx64 ") has no driver", function,
		  vendor, device);
	check_seen(result, "/sys/bus/pci/devices/%s/driver is missing", function);
	check_fix(result, "modprobe %s (lspci -k -s %s)", module, function);
}

static void cards_without_driver(const struct check_context *context, struct check_result *result)
{
	struct dirent **entries = NULL;
	int i, num;

	num = mesh_sysfs_list(&context->files, "sys/bus/pci/devices", &entries);
	for (i = 0; i < num; i++)
		card_without_driver(context, entries[i]->d_name, result);
	mesh_sysfs_list_free(entries, num);
}

/* The modules that give programs access to the devices. */
static void user_modules(const struct check_context *context, struct check_result *result)
{
	static const struct {
		const char *module, *class, *does;
	} needed[] = {
		{"ib_uverbs", "infiniband_verbs", "programs cannot reach any RDMA device"},
		{"rdma_ucm", "misc/rdma_cm", "programs cannot make RDMA connections"},
	};
	size_t i;

	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (module_is_there(context, needed[i].module) ||
		    mesh_sysfs_exists(&context->files, "sys/class/%s", needed[i].class))
			continue;
		check_say(result, CHECK_FAIL, "the module %s is not loaded: %s", needed[i].module,
			  needed[i].does);
		check_seen(result, "/sys/module/%s and /sys/class/%s are missing", needed[i].module,
			   needed[i].class);
		check_fix(result, "modprobe %s && echo %s > /etc/modules-load.d/%s.conf",
			  needed[i].module, needed[i].module, needed[i].module);
	}
}

void check_modules(const struct check_context *context, struct check_result *result)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_nics; i++)
		if (check_nic_is_wanted(context, &table->nics[i]))
			nic_module(context, &table->nics[i], result);
	cards_without_driver(context, result);
	if (check_has_rdma(context))
		user_modules(context, result);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "%s",
			  check_has_rdma(context) ? "every RDMA card has its modules"
						  : "there is no RDMA card to have modules for");
}

/* ---- device files ----------------------------------------------------------------------- */

static void missing_fix(const struct check_context *context, struct check_result *result)
{
	if (check_in_container(context))
		check_fix(result, "pass the devices into the container: --device /dev/infiniband "
				  "--cap-add IPC_LOCK --ulimit memlock=-1");
	else
		check_fix(result, "modprobe -a ib_uverbs rdma_ucm && udevadm trigger");
}

static void forbidden_fix(const struct check_context *context, const char *path, int error,
			  struct check_result *result)
{
	const struct group *group;
	struct stat info;

	if (fstatat(context->files.fd, path, &info, 0)) {
		missing_fix(context, result);
		return;
	}
	/* cppcheck-suppress getgrgidCalled ; one thread */
	group = getgrgid(info.st_gid);
	check_seen(result, "/%s: %s, owner %u, group %s, mode %03o", path, strerror(error),
		   (unsigned int)info.st_uid, group ? group->gr_name : "?",
		   (unsigned int)info.st_mode & 0777);
	if (error == EPERM) /* not caused by the file's mode, which gives EACCES */
		missing_fix(context, result);
	else if (info.st_gid && group && (info.st_mode & 060) == 060)
		check_fix(result, "sudo usermod -aG %s $USER, then log in again", group->gr_name);
	else
		check_fix(result,
			  "sudo chmod 666 /%s, and permanently a udev rule: "
			  "SUBSYSTEM==\"infiniband_verbs\", MODE=\"0666\"",
			  path);
}

static void device_file(const struct check_context *context, const char *path, const char *what,
			struct check_result *result)
{
	int fd = openat(context->files.fd, path, O_RDWR | O_CLOEXEC | O_NONBLOCK), error = errno;

	if (fd >= 0) {
		close(fd);
		return;
	}
	if (error == ENOENT || error == ENOTDIR) {
		check_say(result, CHECK_FAIL, "/%s is missing: no RDMA %s", path, what);
		check_seen(result, "/%s: %s", path, strerror(error));
		missing_fix(context, result);
		return;
	}
	check_say(result, CHECK_FAIL, "you may not open /%s: no RDMA %s", path, what);
	forbidden_fix(context, path, error, result);
}

static bool device_is_ours(const struct check_context *context, const char *device)
{
	const struct mesh_nic_table *table = &context->table;
	int i;

	for (i = 0; i < table->num_nics; i++)
		if (!strcmp(table->nics[i].rdma.device, device))
			return true;
	return false;
}

void check_device_files(const struct check_context *context, struct check_result *result)
{
	struct dirent **entries = NULL;
	char path[300], what[100], device[MESH_RDMA_NAME_MAX];
	int i, num;

	if (!check_has_rdma(context)) {
		check_say(result, CHECK_PASS, "there is no RDMA device to open");
		return;
	}
	device_file(context, "dev/infiniband/rdma_cm", "connections", result);
	num = mesh_sysfs_list(&context->files, "sys/class/infiniband_verbs", &entries);
	for (i = 0; i < num; i++) {
		if (mesh_sysfs_read(&context->files, device, sizeof(device),
				    "sys/class/infiniband_verbs/%.200s/ibdev",
				    entries[i]->d_name) ||
		    !device_is_ours(context, device))
			continue;
		snprintf(path, sizeof(path), "dev/infiniband/%.200s", entries[i]->d_name);
		snprintf(what, sizeof(what), "over %s", device);
		device_file(context, path, what, result);
	}
	mesh_sysfs_list_free(entries, num);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "/dev/infiniband can be opened");
}

/* ---- locked memory ---------------------------------------------------------------------- */

/* rxm's receives and NCCL's first buffers. */
#define MEMLOCK_ENOUGH (UINT64_C(128) << 20)
/* linux/capability.h */
#define CAP_IPC_LOCK_BIT 14

/* The text behind @name at the start of a line, up to its end; false if there is none. */
static bool field_find(const char *text, const char *name, char *value, size_t size)
{
	const char *line = text, *end;
	size_t len = strlen(name);

	for (; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, name, len))
			continue;
		line += len;
		line += strspn(line, " \t");
		end = line + strcspn(line, " \t\n");
		if ((size_t)(end - line) >= size)
			return false;
		memcpy(value, line, (size_t)(end - line));
		value[end - line] = '\0';
		return true;
	}
	return false;
}

static bool in_first_user_namespace(const struct check_context *context)
{
	char text[4096];
	unsigned long inside, outside, count;
	int ret = mesh_sysfs_read(&context->files, text, sizeof(text), "proc/self/uid_map");

	/* Without the file the kernel has no user namespaces. The first one maps every id. */
	return ret == -ENOENT ||
	       (!ret && sscanf(text, "%10lu %10lu %10lu", &inside, &outside, &count) == 3 &&
		!inside && !outside && count == UINT32_MAX);
}

static bool may_lock_all(const struct check_context *context)
{
	char text[4096], value[32];
	uint64_t capabilities;

	if (!in_first_user_namespace(context) ||
	    mesh_sysfs_read(&context->files, text, sizeof(text), "proc/self/status") ||
	    !field_find(text, "CapEff:", value + 2, sizeof(value) - 2))
		return false;
	memcpy(value, "0x", 2);
	return !mesh_sysfs_number_parse(value, UINT64_MAX, &capabilities) &&
	       capabilities >> CAP_IPC_LOCK_BIT & 1;
}

static void memlock_fix(const struct check_context *context, struct check_result *result)
{
	if (check_in_container(context))
		check_fix(result, "start the container with --ulimit memlock=-1 (Kubernetes: "
				  "capability IPC_LOCK, or LimitMEMLOCK=infinity of the runtime)");
	else
		check_fix(result,
			  "put \"* - memlock unlimited\" into /etc/security/limits.d/"
			  "rdma.conf and log in again; for a service LimitMEMLOCK=infinity");
}

/* Reported of arm64 machines; on x86 the area is usually empty, and nothing depends on it. */
static void cma_judge(const struct check_context *context, struct check_result *result)
{
	char text[8192], value[32];

	if (!check_has_rdma(context) || !check_is_arm64(context) ||
	    mesh_sysfs_read(&context->files, text, sizeof(text), "proc/meminfo") ||
	    !field_find(text, "CmaTotal:", value, sizeof(value)) || strcmp(value, "0"))
		return;
	check_say(result, CHECK_UNKNOWN,
		  "the kernel reserves no contiguous memory: with some kernels of arm64 machines "
		  "RDMA then cannot register memory (Cannot allocate memory)");
	check_seen(result, "/proc/meminfo: CmaTotal 0 kB");
	check_fix(result, "if that happens, boot with cma=128M on the kernel's command line");
}
/* A relay registers what it holds with the NICs of both sides: the kernel counts it twice. */
static void relay_judge(const struct check_context *context, uint64_t limit,
			struct check_result *result)
{
	const struct mesh_config *config = &context->config;
	uint64_t bytes = 2 * config->relay_memory_bytes;
	int i, num = 0;

	for (i = 0; i < context->table.num_nics; i++) {
		if (*context->table.nics[i].rdma.device &&
		    check_nic_is_wanted(context, &context->table.nics[i]))
			num++;
	}
	if (num < 2 || !strcmp(config->relay, "off") || limit >= MEMLOCK_ENOUGH + bytes)
		return;
	check_say(result, CHECK_WARN,
		  "relaying for other nodes over RDMA may lock %" PRIu64
		  " MiB more than the limit allows",
		  (MEMLOCK_ENOUGH + bytes - limit) >> 20);
	check_seen(result, "NCCL_MESH_RELAY_MEMORY, %" PRIu64 " MiB, on two NICs",
		   config->relay_memory_bytes >> 20);
	check_fix(
		result,
		"raise the limit, as above, or lower NCCL_MESH_RELAY_MEMORY; a full mesh needs no "
		"relays: NCCL_MESH_RELAY=off");
}

static void limit_judge(const struct check_context *context, struct check_result *result)
{
	char text[4096], value[32];
	uint64_t limit = 0;
	bool rdma = check_has_rdma(context);

	if (mesh_sysfs_read(&context->files, text, sizeof(text), "proc/self/limits") ||
	    !field_find(text, "Max locked memory", value, sizeof(value)) ||
	    (strcmp(value, "unlimited") && mesh_sysfs_number_parse(value, UINT64_MAX, &limit))) {
		check_say(result, CHECK_UNKNOWN,
			  "/proc/self/limits does not show the limit of locked memory");
		return;
	}
	if (!strcmp(value, "unlimited") || may_lock_all(context) || !rdma) {
		check_say(result, CHECK_PASS, "%s",
			  rdma ? "the limit of locked memory is high enough"
			       : "TCP needs no locked memory");
		return;
	}
	check_say(result, limit < MEMLOCK_ENOUGH ? CHECK_FAIL : CHECK_WARN,
		  "only %" PRIu64 " KiB of memory may be locked: RDMA %s", limit >> 10,
		  limit < MEMLOCK_ENOUGH ? "cannot register its buffers"
					 : "fails once NCCL registers more");
	check_seen(result, "ulimit -l; /proc/self/limits; no CAP_IPC_LOCK");
	memlock_fix(context, result);
	relay_judge(context, limit, result);
}

void check_memlock(const struct check_context *context, struct check_result *result)
{
	limit_judge(context, result);
	cma_judge(context, result);
}
