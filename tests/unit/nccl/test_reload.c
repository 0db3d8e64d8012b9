/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_reload.c - an NCCL that has forgotten the plugin's name finds it again.
 *
 * From 2.28.3 to 2.29.7, after the last communicator of a process, NCCL unloads the plugin and
 * clears its record with the name in it (plugin/net.cc, ncclNetPluginUnload). For the next
 * communicator it asks the loader for the default name, libnccl-net.so, and without a file of
 * that name it goes on over sockets and says so in an INFO line at most.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void the_default_name_finds_a_plugin_that_was_loaded_by_its_path(void **state)
{
	/* NCCL's flags (2.28.9, plugin_open.cc). */
	void *plugin = dlopen(MESH_BUILD_DIR "/libnccl-net-mesh.so", RTLD_NOW | RTLD_LOCAL);
	void *table, *again;

	(void)state;
	assert_non_null(plugin);
	table = dlsym(plugin, "ncclNetPlugin_v11");
	assert_non_null(table);
	assert_int_equal(dlclose(plugin), 0);
	again = dlopen("libnccl-net.so", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(again);
	assert_ptr_equal(dlsym(again, "ncclNetPlugin_v11"), table);
	dlclose(again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_default_name_finds_a_plugin_that_was_loaded_by_its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
