/* SPDX-License-Identifier: Apache-2.0 */
/* nccl.c - whether NCCL, as it is set up here, comes to the plugin at all. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "check/checks.h"
#include "check/context.h"
#include "check/nccl_files.h"
#include "check/nccl_library.h"
#include "common/finding.h"
#include "common/nccl_setting.h"
#include "common/output.h"
#include "common/own_plugin.h"

/* ---- settings of nccl-mesh-plugin, whose prefix is the same ----------------------------- */

static const struct {
	const char *name;
	const char *instead; /* a setting to use; NULL: none is needed */
	const char *why;     /* why none is needed */
} old_settings[] = {
	{"NCCL_MESH_GID_INDEX", NULL, "the GID is found by the address"},
	{"NCCL_MESH_DEBUG", "NCCL_DEBUG=INFO", NULL},
	{"NCCL_MESH_FAST_FAIL", "NCCL_MESH_DEAD_PEER_TIMEOUT, in seconds", NULL},
	{"NCCL_MESH_TIMEOUT_MS", "NCCL_MESH_CONNECT_TIMEOUT, in seconds", NULL},
	{"NCCL_MESH_RETRY_COUNT", NULL, "attempts go on until NCCL_MESH_CONNECT_TIMEOUT"},
	{"NCCL_MESH_DISABLE_RDMA", "NCCL_MESH_PROVIDER=tcp on all nodes", NULL},
	{"NCCL_MESH_CONN_POOL", NULL, "connections of two processes are always shared"},
	{"NCCL_MESH_ASYNC_CONNECT", NULL, "connect never waits"},
};

static void setting_fix(const struct nccl_setting *setting, const char *name,
			struct check_result *result)
{
	check_seen(result, "%s: %s=%.300s", setting->origin, name, setting->value);
	if (setting->line)
		check_fix(result, "remove the line %s= from %s", name, setting->origin);
	else
		check_fix(result, "unset %s", name);
}

/* Reports each that the environment or a configuration file still has. */
static void check_old_settings(const struct check_context *context, bool is_rccl,
			       struct check_result *result)
{
	struct nccl_setting setting;
	size_t i;

	for (i = 0; i < sizeof(old_settings) / sizeof(old_settings[0]); i++) {
		const char *name = old_settings[i].name;

		if (!nccl_setting_find(&context->files, is_rccl, name, &setting))
			continue;
		check_say(result, CHECK_WARN,
			  "%s is a setting of nccl-mesh-plugin, ignored here: %s%s", name,
			  old_settings[i].instead ? "the setting is now " : "",
			  old_settings[i].instead ? old_settings[i].instead : old_settings[i].why);
		setting_fix(&setting, name, result);
	}
}

/* What our tables call themselves; NCCL_NET must say the same. A unit test compares. */
#define NET_NAME "Mesh"
/* These versions forget the plugin's name when the last communicator ends (net.cc). */
#define FORGETS_FROM 22803
#define FORGETS_TO 22907
/* Older ones hang on arm64: a weak compare-exchange loses slots of the proxy (NVIDIA/nccl 2213). */
#define ARM64_FROM 22903

/*
 * How NCCL finds our own file. @nccl, @setting: NULL where it is not known, or not set. Where no
 * path is taken, the name finds it: the files for NCCL and for RCCL are in the same folder.
 */
static void plugin_fix(const struct nccl_library *nccl, const struct nccl_setting *setting,
		       bool is_rccl, struct check_result *result)
{
	const char *rccl = is_rccl ? " --rccl" : "";
	char folder[PATH_MAX];

	if (nccl && !nccl_takes_paths(nccl) && own_plugin_folder(false, folder))
		check_fix(result, "export NCCL_NET_PLUGIN=mesh LD_LIBRARY_PATH=%s:$LD_LIBRARY_PATH",
			  folder);
	else if (!setting || (setting->line && own_plugin_is_named(setting->value)))
		check_fix(result, "fi_mesh enable%s", rccl);
	else if (setting->line)
		check_fix(result, "fi_mesh enable%s, after removing line %d from %s", rccl,
			  setting->line, setting->origin);
	else
		check_fix(result, "unset NCCL_NET_PLUGIN; fi_mesh enable%s", rccl);
}

/* ---- environment ------------------------------------------------------------------------ */

static void net_judge(const struct check_context *context, bool is_rccl,
		      struct check_result *result)
{
	struct nccl_setting setting;

	if (!nccl_setting_find(&context->files, is_rccl, "NCCL_NET", &setting) || !*setting.value ||
	    !strcasecmp(setting.value, NET_NAME))
		return;
	check_say(
		result, CHECK_FAIL,
		"NCCL_NET=%.64s makes NCCL use that network instead of the plugin, which is called "
		"" NET_NAME,
		setting.value);
	setting_fix(&setting, "NCCL_NET", result);
}

static void plugin_setting_judge(const struct check_context *context, bool is_rccl,
				 struct check_result *result)
{
	struct nccl_setting setting;
	size_t len;

	if (!nccl_setting_find(&context->files, is_rccl, "NCCL_NET_PLUGIN", &setting))
		return;
	len = strlen(setting.value);
	if (!len || !strcasecmp(setting.value, "none")) {
		check_say(
			result, CHECK_FAIL,
			"NCCL_NET_PLUGIN=%s makes NCCL load no plugin at all: the mesh is not used",
			setting.value);
	} else if (!strncasecmp(setting.value, "STATIC_PLUGIN", len)) {
		check_say(result, CHECK_FAIL,
			  "NCCL takes NCCL_NET_PLUGIN=%s for a short form of STATIC_PLUGIN and "
			  "loads no file",
			  setting.value);
	} else {
		return;
	}
	check_seen(result, "%s: NCCL_NET_PLUGIN=%.300s", setting.origin, setting.value);
	plugin_fix(NULL, &setting, is_rccl, result);
}

void check_environment(const struct check_context *context, struct check_result *result)
{
	const bool is_rccl = nccl_library_is_rccl(context->nccl_file);

	net_judge(context, is_rccl, result);
	plugin_setting_judge(context, is_rccl, result);
	if (!result->num_findings)
		check_say(result, CHECK_PASS, "no NCCL setting bypasses the plugin");
	nccl_files_judge(context, is_rccl, result);
	check_old_settings(context, is_rccl, result);
}

/* ---- plugin ----------------------------------------------------------------------------- */

/* "v6 v7 v8" */
static const char *versions_text(uint32_t versions, char *text, size_t size)
{
	int version;

	*text = '\0';
	for (version = 1; version <= NCCL_ABI_MAX; version++)
		if (versions >> version & 1)
			output_add(text, size, "%sv%d", *text ? " " : "", version);
	return text;
}

/* The highest bit, which is what NCCL tries first; 0 for none. */
static int highest(uint32_t versions)
{
	return versions ? 31 - __builtin_clz(versions) : 0;
}

/*
 * Loads one name of the list: as it is, then as libnccl-net-NAME.so, where it is neither a path
 * nor a file name of that kind (plugin_open.cc). Older versions do the latter only (net.cc).
 */
static int name_probe(const char *name, const struct nccl_library *nccl, bool only_within,
		      struct plugin_probe *probe)
{
	size_t len = strlen(name);
	char file[300];
	int ret;

	if (!only_within) {
		ret = plugin_probe(name, probe);
		if (ret || *probe->path || strchr(name, '/') ||
		    (!strncmp(name, "lib", 3) && len > 3 && !strcmp(name + len - 3, ".so")))
			return ret;
	}
	snprintf(file, sizeof(file), "%s-net-%s.so", nccl->is_rccl ? "librccl" : "libnccl", name);
	ret = plugin_probe(file, probe);
	if (ret || *probe->path || !nccl->is_rccl || only_within)
		return ret;
	snprintf(file, sizeof(file), "libnccl-net-%s.so", name);
	return plugin_probe(file, probe);
}

static void other_plugin_say(const struct plugin_probe *probe, int version, const char *name,
			     const struct nccl_library *nccl, struct check_result *result)
{
	char folder[PATH_MAX];

	check_say(result, CHECK_FAIL,
		  "NCCL loads another plugin before this one: %s, which is called \"%s\"",
		  probe->path, probe->names[version]);
	check_seen(result, "dlopen(\"%s\"), as NCCL does; LD_LIBRARY_PATH=%.300s", name,
		   getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : "");
	if (own_plugin_is_named(name) && nccl_takes_paths(nccl) && own_plugin_folder(false, folder))
		check_fix(result, "export NCCL_NET_PLUGIN=%s/" OWN_PLUGIN_FILE, folder);
}

/* With v12 in the plugin and v11 in NCCL it is v11 that counts. True: NCCL's search ends here. */
static bool probe_judge(const struct plugin_probe *probe, const struct nccl_library *nccl,
			const char *name, struct check_result *result)
{
	uint32_t asked = nccl->asked ? nccl->asked : UINT32_MAX;
	int version = highest(probe->exported & asked), own = highest(probe->exported);
	char has[200], wants[200];

	if (!probe->exported)
		return false; /* NCCL goes on to the next name */
	versions_text(probe->exported, has, sizeof(has));
	if (!version) {
		if (strcasecmp(probe->names[own], NET_NAME))
			return false;
		check_say(result, CHECK_FAIL,
			  "NCCL %s does not support the plugin %s: it asks for %s, the plugin "
			  "has %s",
			  nccl->version, probe->path,
			  versions_text(nccl->asked, wants, sizeof(wants)), has);
		check_seen(result, "the names in %s", nccl->path);
		check_fix(result, "install a newer version of the plugin, or another NCCL");
		return true;
	}
	if (strcasecmp(probe->names[version], NET_NAME)) {
		other_plugin_say(probe, version, name, nccl, result);
		return true;
	}
	check_say(result, CHECK_PASS, "NCCL loads %s and takes its ABI v%d", probe->path, version);
	check_seen(result, "dlopen(\"%s\"); it has %s", name, has);
	return true;
}

/* No name of the list led to a plugin. */
static void nothing_loaded_say(const char *list, const char *error, bool only_within,
			       const struct nccl_library *nccl, struct check_result *result)
{
	check_say(result, CHECK_FAIL, "NCCL finds no plugin and silently uses its own networks");
	if (only_within && strchr(list, '/'))
		check_seen(result, "%s %s takes NCCL_NET_PLUGIN for a part of a file's name: %s",
			   nccl_library_name(nccl), nccl->version, error);
	else
		check_seen(result, "it looks for %.300s: %s", list, error);
}

/* Goes through the list as NCCL does. */
static void list_judge(const char *list, const struct nccl_library *nccl, bool only_within,
		       struct check_result *result)
{
	char name[256], error[600] = "";
	struct plugin_probe probe;
	const char *at = list;
	size_t len;

	for (; *at; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		if (!len || len >= sizeof(name)) /* NCCL takes names up to 254 bytes */
			continue;
		memcpy(name, at, len);
		name[len] = '\0';
		if (name_probe(name, nccl, only_within, &probe)) {
			check_say(result, CHECK_UNKNOWN, "%s could not be tried", name);
			return;
		}
		if (probe_judge(&probe, nccl, name, result))
			return;
		if (!*error)
			snprintf(error, sizeof(error), "%s",
				 *probe.error ? probe.error : "it has no ncclNetPlugin_v*");
	}
	nothing_loaded_say(list, error, only_within, nccl, result);
}

/* NCCL 2.28.3 to 2.29.7: the second communicator of a process may not find the plugin again. */
static void forgetting_judge(const struct check_context *context, const struct nccl_library *nccl,
			     struct check_result *result)
{
	int version = nccl_version_number(nccl->version);
	struct nccl_setting setting;
	struct plugin_probe probe;

	if (version < FORGETS_FROM || version > FORGETS_TO || nccl->is_rccl ||
	    !nccl_setting_find(&context->files, false, "NCCL_NET_PLUGIN", &setting) ||
	    (nccl_setting_find(&context->files, false, "NCCL_NET_PLUGIN_REF_COUNT", &setting) &&
	     !strcmp(setting.value, "1")))
		return;
	if (!plugin_probe("libnccl-net.so", &probe) &&
	    !strcasecmp(probe.names[highest(probe.exported)], NET_NAME))
		return;
	check_say(result, CHECK_WARN,
		  "NCCL %s forgets the plugin's name when a program's last communicator ends; the "
		  "next one falls back to NCCL's own networks",
		  nccl->version);
	check_seen(result, "%s", nccl->path);
	if (nccl_setting_find(&context->files, false, "NCCL_NET_PLUGIN_REF_COUNT", &setting))
		check_fix(result, "export NCCL_NET_PLUGIN_REF_COUNT=1");
	else
		check_fix(result, "fi_mesh enable");
}

static void arm64_judge(const struct check_context *context, const struct nccl_library *nccl,
			struct check_result *result)
{
	int version = nccl_version_number(nccl->version);

	if (!version || version >= ARM64_FROM || nccl->is_rccl || !check_is_arm64(context))
		return;
	check_say(result, CHECK_WARN,
		  "NCCL %s may hang silently on arm64, with any network: before 2.29.3 its proxy "
		  "loses slots",
		  nccl->version);
	check_seen(result, "%s", nccl->path);
	check_fix(result, "use NCCL 2.29.3 or later");
}

void check_plugin(const struct check_context *context, struct check_result *result)
{
	const struct check_finding *last;
	struct nccl_setting setting;
	struct nccl_library nccl;
	bool is_set;
	int ret;

	ret = nccl_library_find(context->nccl_file, &nccl);
	if (ret == -ENOENT) {
		check_say(result, CHECK_UNKNOWN,
			  "no NCCL or RCCL was found: which plugin versions it wants is not known");
		check_fix(result, "fi_mesh check --nccl /path/to/libnccl.so.2");
	} else if (ret || !nccl.asked) {
		check_say(result, CHECK_UNKNOWN,
			  "%s does not say which plugin versions it supports", nccl.path);
		check_fix(result, "fi_mesh check --nccl /path/to/libnccl.so.2");
	} else {
		check_say(result, CHECK_PASS, "%s %s is %s", nccl_library_name(&nccl),
			  *nccl.version ? nccl.version : "of unknown version", nccl.path);
	}
	is_set = nccl_setting_find(&context->files, nccl.is_rccl, "NCCL_NET_PLUGIN", &setting);
	if (!is_set)
		strcpy(setting.value, nccl.is_rccl ? "librccl-net.so" : "libnccl-net.so");
	if (!*setting.value || !strcasecmp(setting.value, "none"))
		return; /* the check of the environment says it */
	list_judge(setting.value, &nccl, is_set && !nccl_takes_paths(&nccl), result);
	last = result->findings + result->num_findings - 1;
	if (!result->incomplete && last->verdict == CHECK_FAIL && !last->fix)
		plugin_fix(&nccl, is_set ? &setting : NULL, nccl.is_rccl, result);
	forgetting_judge(context, &nccl, result);
	arm64_judge(context, &nccl, result);
}
