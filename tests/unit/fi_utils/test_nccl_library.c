/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_library.c - what NCCL's file contains, its settings files, and loading plugins. */
#include "check/nccl_library.h"
#include "common/nccl_setting.h"
#include "nccl/plugin.h"

#include "sysfs_fixture.h"
#include "unit.h"

static void scan(const char *bytes, size_t size, uint32_t asked, const char *version)
{
	struct nccl_library library;

	nccl_library_scan(bytes, size, &library);
	assert_int_equal(library.asked, asked);
	assert_string_equal(library.version, version);
}

#define SCAN(text, asked, version) scan(text, sizeof(text) - 1, asked, version)
#define DIGITS_63 "222222222222222222222222222222222222222222222222222222222222222"

TEST(scan)
{
	static const char *const none[] = {"", "2.2", "0.-8.3", "2.+8.3", "2. 8.3", "2.28.-3"};
	struct nccl_library library;

	SCAN("\0ncclNetPlugin_v11\0ncclNetPlugin_v6\0NCCL version %s\0NCCL version 2.28.3+cuda12.9"
	     "\0ncclNetPlugin_symbol\0ncclNetPlugin_v\0",
	     1u << 11 | 1u << 6, "2.28.3+cuda12.9");
	/* Out of range, cut off, not a whole name. */
	SCAN("ncclNetPlugin_v32\0ncclNetPlugin_v0\0ncclNetPlugin_v999999999999\0ncclNetPlugin_v8x\0"
	     "ncclNetPlugin_v9",
	     0, "");
	SCAN("NCCL version 2.2", 0, "2.2");
	SCAN("", 0, "");
	SCAN("RCCL version 2.18.3+hip6.0", 0, "2.18.3+hip6.0");
	SCAN("RCCL version : 2.22.3-HEAD:7d8d67c", 0, "2.22.3-HEAD");
	SCAN("RCCL version :", 0, "");
	SCAN("RCCL version : ", 0, "");
	nccl_library_scan("NCCL version " DIGITS_63, 13 + 63, &library);
	assert_int_equal(strlen(library.version), sizeof(library.version) - 1);
	assert_int_equal(nccl_version_number("2.28.3+cuda12.9"), 22803);
	/* Signs and blanks are no digits: a version is never negative. */
	FOR_EACH(i, none)
		assert_int_equal(nccl_version_number(none[i]), 0);
}

TEST(takes_paths)
{
	struct nccl_library library = {.version = "2.20.5+cuda12.4"};

	assert_false(nccl_takes_paths(&library));
	strcpy(library.version, "2.21.5+cuda12.4");
	assert_true(nccl_takes_paths(&library));
	library.is_rccl = true;
	assert_false(nccl_takes_paths(&library));
	strcpy(library.version, "2.22.3-HEAD");
	assert_true(nccl_takes_paths(&library));
	strcpy(library.version, ""); /* not known: as the newest */
	assert_true(nccl_takes_paths(&library));
}

static void conf_is(const char *text, int line, const char *wanted)
{
	char value[8] = "";

	assert_int_equal(nccl_conf_find(text, "NCCL_NET", value, sizeof(value)), line);
	assert_string_equal(value, wanted);
}

TEST(conf)
{
	/* NCCL trims nothing, and the first line counts. */
	conf_is("#NCCL_NET=no\nNCCL_NETX=no\n NCCL_NET=no\nNCCL_NET=IB \r\nNCCL_NET=no", 4,
		"IB \r");
	conf_is("NCCL_NET=", 1, "");
	conf_is("NCCL_NET==a", 1, "=a");
	conf_is("NCCL_NET", 0, "");
	conf_is("", 0, "");
	conf_is("NCCL_NET=12345678", 0, "");
	conf_is("NCCL_NET=1234567", 1, "1234567");
}

/* NCCL copies into arrays of 1024 bytes. */
TEST(conf_long)
{
	char text[3000] = "NCCL_NET=", value[2048];

	memset(text + 9, 'x', 2000);
	assert_int_equal(nccl_conf_find(text, "NCCL_NET", value, sizeof(value)), 1);
	assert_int_equal(strlen(value), NCCL_CONF_VALUE_MAX);
}

static struct mesh_sysfs files;

static void setting_is(bool rccl, const char *value, const char *origin, int line)
{
	struct nccl_setting setting;

	assert_true(nccl_setting_find(&files, rccl, "NCCL_NET", &setting));
	assert_string_equal(setting.value, value);
	if (origin)
		assert_string_equal(setting.origin, origin);
	assert_int_equal(setting.line, line);
}

/* The environment, then the user's file or NCCL_CONF_FILE, then the system's. */
TEST(setting_order)
{
	struct nccl_setting setting;
	struct nccl_conf_files list;
	struct sysfs_fixture tree;
	char home[PATH_MAX];

	unsetenv("NCCL_CONF_FILE");
	unsetenv("NCCL_NET");
	setenv("HOME", "/nonexistent", 1); /* NCCL asks the user database */
	assert_true(nccl_conf_home_file(false, home));
	assert_null(strstr(home, "/nonexistent"));
	sysfs_fixture_make(&tree);
	assert_int_equal(mesh_sysfs_open(tree.root, &files), 0);
	assert_false(nccl_setting_find(&files, false, "NCCL_NET", &setting));
	sysfs_fixture_file(&tree, "NCCL_NET=system", "etc/nccl.conf");
	sysfs_fixture_file(&tree, "NCCL_NET=rccl", "etc/rccl.conf");
	setting_is(true, "rccl", "/etc/rccl.conf", 1);
	setting_is(false, "system", "/etc/nccl.conf", 1);
	sysfs_fixture_file(&tree, "# user\nNCCL_NET=user", "%s", home + 1);
	setting_is(false, "user", home, 2);
	sysfs_fixture_file(&tree, "NCCL_DEBUG=INFO", "x/other.conf");
	setenv("NCCL_CONF_FILE", "/x/other.conf", 1); /* in place of the user's */
	setting_is(false, "system", "/etc/nccl.conf", 1);
	nccl_conf_files_list(false, &list);
	assert_int_equal(list.num, 2);
	setenv("NCCL_NET", "", 1); /* set to nothing is set */
	setting_is(false, "", NULL, 0);
	unsetenv("NCCL_NET");
	unsetenv("NCCL_CONF_FILE");
	mesh_sysfs_close(&files);
	sysfs_fixture_remove(&tree);
}

/* Where a program would find it: the order decides. */
TEST(find)
{
	static const char text[] = "NCCL version 2.27.3+cuda12.9";
	struct nccl_library library;
	struct sysfs_fixture tree;
	char paths[700], venv[300];

	sysfs_fixture_make(&tree);
	sysfs_fixture_file(&tree, text, "a/libnccl.so.2");
	sysfs_fixture_file(&tree, text, "b/librccl.so.1");
	sysfs_fixture_file(&tree, text,
			   "v/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2");
	unsetenv("VLLM_NCCL_SO_PATH");
	snprintf(paths, sizeof(paths), "/nonexistent::%s/b:%s/a", tree.root, tree.root);
	setenv("LD_LIBRARY_PATH", paths, 1);
	assert_int_equal(nccl_library_find(NULL, &library), 0);
	assert_non_null(strstr(library.path, "/b/librccl.so.1"));
	assert_true(library.is_rccl);
	assert_string_equal(library.version, "2.27.3+cuda12.9");
	unsetenv("LD_LIBRARY_PATH");
	snprintf(venv, sizeof(venv), "%s/v", tree.root);
	setenv("VIRTUAL_ENV", venv, 1);
	assert_int_equal(nccl_library_find(NULL, &library), 0);
	assert_non_null(strstr(library.path, "/v/lib/python3.11/site-packages/nvidia"));
	assert_false(library.is_rccl);
	snprintf(paths, sizeof(paths), "%s/a/libnccl.so.2", tree.root);
	setenv("VLLM_NCCL_SO_PATH", paths, 1);
	assert_int_equal(nccl_library_find(NULL, &library), 0);
	assert_string_equal(library.path, paths);
	unsetenv("VLLM_NCCL_SO_PATH");
	unsetenv("VIRTUAL_ENV");
	assert_true(nccl_library_find("/nonexistent", &library) < 0);
	sysfs_fixture_remove(&tree);
}

TEST(probe)
{
	struct plugin_probe probe;

	assert_int_equal(plugin_probe(MESH_BUILD_DIR "/libnccl-net-mesh.so", &probe), 0);
	assert_string_equal(probe.path, MESH_BUILD_DIR "/libnccl-net-mesh.so");
	assert_int_equal(probe.exported, 0x1fc0); /* v6 to v12 */
	assert_string_equal(probe.names[12], MESH_PLUGIN_NAME);
	assert_int_equal(plugin_probe("/nonexistent.so", &probe), 0);
	assert_string_equal(probe.path, "");
	assert_non_null(strstr(probe.error, "cannot open shared object file"));
	assert_int_equal(plugin_probe(MESH_BUILD_DIR "/fi_mesh", &probe), 0);
	assert_string_equal(probe.path, "");
}

static void assert_rude(const char *what, const char *error)
{
	struct plugin_probe probe;

	setenv("FAKE_PLUGIN_RUDE", what, 1);
	assert_int_equal(plugin_probe(MESH_BUILD_DIR "/unit/fake_plugin_rude.so", &probe), 0);
	unsetenv("FAKE_PLUGIN_RUDE");
	assert_string_equal(probe.error, error);
	assert_int_equal(probe.exported, *error ? 0 : 1 << 8);
	assert_string_equal(probe.names[8], *error ? "" : "Rude");
}

TEST(probe_of_rude_plugins)
{
	assert_rude("nothing", "");
	assert_rude("print", "");
	assert_rude("exit", "loading it ended the process (exit status 3)");
	assert_rude("abort", "loading it ended the process (Aborted)");
}
