/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_config.c - `fi_mesh config`, and that docs/settings.md is what it prints. */
#include <fcntl.h>

#include "base/config.h"
#include "commands.h"
#include "common/output.h"
#include "config/print.h"

#include "printed.h"
#include "unit.h"

/* Runs it with a setting, fails the test unless it exits with this status. */
static void runs(const char *setting, const char *value, const char *argument, int status)
{
	if (setting)
		setenv(setting, value, 1);
	COMMAND_ROWS(command_config, {argument, status});
	if (setting)
		unsetenv(setting);
}

TEST(text_has_values)
{
	setenv("NCCL_MESH_RELAY_MEMORY", "4M", 1);
	runs("NCCL_MESH_NICS", "=ab", "", COMMAND_FINE);
	PRINTED_HAS(
		"NCCL_MESH_NICS==ab (from the environment)\n",
		"NCCL_MESH_RELAY_MEMORY=4194304 (from the environment)\n    bytes from 1048576 to ",
		"NCCL_MESH_CONNECT_TIMEOUT (not set; default: 60)\n");
	unsetenv("NCCL_MESH_RELAY_MEMORY");
}

/* qemu's user emulation shows the root folder of the other architecture. */
static bool root_shows(const char *path)
{
	int root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool shows = !faccessat(root, path + 1, R_OK, 0);

	close(root);
	return shows;
}

/* NCCL's file counts behind the environment; the first line of a name counts. */
TEST(file)
{
	char path[] = "/tmp/test_fi_mesh_config.XXXXXX", line[64];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fputs("NCCL_MESH_NICS=first\nNCCL_MESH_NICS=second\n# NCCL_MESH_PROVIDER=tcp\n"
	      "NCCL_MESH_RELAY_MEMORY=2M\nNCCL_MESH_SITE=x\nNCCL_DEBUG=INFO\n",
	      file);
	assert_int_equal(fclose(file), 0);
	if (!root_shows(path)) {
		unlink(path);
		print_message("skipped: the root folder is not this machine's\n");
		skip();
	}
	setenv("NCCL_CONF_FILE", path, 1);
	setenv("NCCL_MESH_RELAY_MEMORY", "4M", 1);
	runs(NULL, NULL, "", COMMAND_FINE);
	snprintf(line, sizeof(line), "NCCL_MESH_NICS=first (from %s, line 1)\n", path);
	PRINTED_HAS(line, "NCCL_MESH_RELAY_MEMORY=4194304 (from the environment)\n",
		    "NCCL_MESH_PROVIDER (not set");
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_SITE");
	runs(NULL, NULL, "--json", COMMAND_FINE);
	snprintf(line, sizeof(line), "\"origin\": \"%s, line 5\"", path);
	PRINTED_HAS(line);
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_SITE");
	unsetenv("NCCL_MESH_RELAY_MEMORY");
	/* A misspelt name in the file is reported as one in the environment. */
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("NCCL_MESH_NICKS=a\n", file);
	assert_int_equal(fclose(file), 0);
	runs(NULL, NULL, "", COMMAND_PROBLEM);
	unsetenv("NCCL_MESH_NICKS");
	unsetenv("NCCL_CONF_FILE");
	unlink(path);
}

/* On root's terminal, and in JSON, which must be UTF-8. */
TEST(values_are_printable)
{
	static const char name[] = "a\033[31m\xff";

	runs("NCCL_MESH_NODE_NAME", name, "", COMMAND_FINE);
	PRINTED_HAS("NCCL_MESH_NODE_NAME=a?[31m? (from the environment)\n");
	runs("NCCL_MESH_NODE_NAME", name, "--json", COMMAND_FINE);
	PRINTED_HAS("\"a?[31m?\"");
}

TEST(problems)
{
	runs("NCCL_MESH_CONNECT_TIMEOUT", "soon", "", COMMAND_PROBLEM);
	runs("NCCL_MESH_NICS", "^", "", COMMAND_PROBLEM);
	runs("NCCL_MESH_ADDRESSES", "10.0.0.0/40", "--json", COMMAND_PROBLEM);
	runs("NCCL_MESH_PROVIDER", "udp", "", COMMAND_PROBLEM);
	runs("NCCL_MESH_PROVIDER", "tcp", "", COMMAND_FINE);
	runs("NCCL_MESH_NIC", "ab", "", COMMAND_PROBLEM);
	runs("NCCL_MESH_CONNECT_TIMEOUT", "", "", COMMAND_FINE);
	PRINTED_HAS("NCCL_MESH_CONNECT_TIMEOUT (not set; default: 60)\n");
	runs(NULL, NULL, "--jsn", COMMAND_MISUSE);
	runs(NULL, NULL, "surplus", COMMAND_MISUSE);
}

TEST(json)
{
	runs(NULL, NULL, "--json", COMMAND_FINE);
	PRINTED_HAS("\"name\": \"NCCL_MESH_CONNECT_TIMEOUT\"", "\"value\": 60",
		    /* Each of the units. */
		    "\"max\": 86400,\n      \"unit\": \"seconds\"",
		    "\"max\": 1099511627776,\n      \"unit\": \"bytes\"");
}

TEST(lines_are_short)
{
	char *line;

	config_print_wrapped(print_file(), "one two", "  ");
	assert_string_equal(printed(), "  one two\n");
	config_print_markdown(print_file());
	for (line = strtok((char *)printed(), "\n"); line; line = strtok(NULL, "\n"))
		assert_in_range(strlen(line), 1, 100);
}

/* Tests run in the tree's top folder. */
TEST(reference_is_up_to_date)
{
	char kept[65536];
	FILE *file = fopen("docs/settings.md", "r");

	assert_non_null(file);
	kept[fread(kept, 1, sizeof(kept) - 1, file)] = 0;
	fclose(file);
	config_print_markdown(print_file());
	if (strcmp(printed(), kept))
		fail_msg("run: build/fi_mesh config --markdown >docs/settings.md");
}
