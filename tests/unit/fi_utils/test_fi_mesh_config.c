/* SPDX-License-Identifier: Apache-2.0 */
/* test_fi_mesh_config.c - `fi_mesh config`, and that docs/settings.md is what it prints. */
#include <fcntl.h>

#include "base/config.h"
#include "common/exit_status.h"
#include "config/command.h"
#include "config/print.h"

#include "unit.h"

/* What @argv[1] prints, and its exit status. To be freed. */
static char *run(const char *argument, int *status)
{
	char *argv[] = {(char[]){"config"}, (char *)argument, NULL}, *text = NULL;
	FILE *screen = stdout;
	size_t size;

	stdout = open_memstream(&text, &size);
	assert_non_null(stdout);
	*status = command_config(argument ? 2 : 1, argv);
	fclose(stdout);
	stdout = screen;
	return text;
}

TEST(text_has_values)
{
	int status;
	char *text;

	setenv("NCCL_MESH_NICS", "=ab", 1);
	setenv("NCCL_MESH_EAGER_LIMIT", "4K", 1);
	text = run(NULL, &status);
	assert_int_equal(status, COMMAND_FINE);
	assert_non_null(strstr(text, "NCCL_MESH_NICS==ab (from the environment)\n"));
	assert_non_null(strstr(
		text,
		"NCCL_MESH_EAGER_LIMIT=4096 (from the environment)\n    bytes from 0 to 65536;"));
	assert_non_null(strstr(text, "NCCL_MESH_CONNECT_TIMEOUT (not set; default: 60)\n"));
	free(text);
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_EAGER_LIMIT");
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
	char path[] = "/tmp/test_fi_mesh_config.XXXXXX", line[64], *text;
	int fd = mkstemp(path), status;
	FILE *file = fdopen(fd, "w");

	assert_non_null(file);
	fputs("NCCL_MESH_NICS=first\nNCCL_MESH_NICS=second\n# NCCL_MESH_PROVIDER=tcp\n"
	      "NCCL_MESH_EAGER_LIMIT=2K\nNCCL_MESH_MAX_PATHS=3\nNCCL_DEBUG=INFO\n",
	      file);
	assert_int_equal(fclose(file), 0);
	if (!root_shows(path)) {
		unlink(path);
		print_message("skipped: the root folder is not this machine's\n");
		skip();
	}
	setenv("NCCL_CONF_FILE", path, 1);
	setenv("NCCL_MESH_EAGER_LIMIT", "4K", 1);
	text = run(NULL, &status);
	assert_int_equal(status, COMMAND_FINE);
	snprintf(line, sizeof(line), "NCCL_MESH_NICS=first (from %s, line 1)\n", path);
	assert_non_null(strstr(text, line));
	assert_non_null(strstr(text, "NCCL_MESH_EAGER_LIMIT=4096 (from the environment)\n"));
	assert_non_null(strstr(text, "NCCL_MESH_PROVIDER (not set"));
	free(text);
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_MAX_PATHS");
	text = run("--json", &status);
	snprintf(line, sizeof(line), "\"origin\": \"%s, line 5\"", path);
	assert_non_null(strstr(text, line));
	free(text);
	unsetenv("NCCL_MESH_NICS");
	unsetenv("NCCL_MESH_MAX_PATHS");
	unsetenv("NCCL_MESH_EAGER_LIMIT");
	/* A misspelt name in the file is reported as one in the environment. */
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("NCCL_MESH_NICKS=a\n", file);
	assert_int_equal(fclose(file), 0);
	text = run(NULL, &status);
	assert_int_equal(status, COMMAND_PROBLEM);
	free(text);
	unsetenv("NCCL_MESH_NICKS");
	unsetenv("NCCL_CONF_FILE");
	unlink(path);
}

/* On root's terminal, and in JSON, which must be UTF-8. */
TEST(values_are_printable)
{
	int status;
	char *text;

	setenv("NCCL_MESH_NODE_NAME", "a\033[31m\xff", 1);
	text = run(NULL, &status);
	assert_non_null(strstr(text, "NCCL_MESH_NODE_NAME=a?[31m? (from the environment)\n"));
	free(text);
	text = run("--json", &status);
	assert_int_equal(status, COMMAND_FINE);
	assert_non_null(strstr(text, "\"a?[31m?\""));
	free(text);
	unsetenv("NCCL_MESH_NODE_NAME");
}

TEST(problems)
{
	int status;
	char *text;

	setenv("NCCL_MESH_CONNECT_TIMEOUT", "soon", 1);
	free(run(NULL, &status));
	assert_int_equal(status, COMMAND_PROBLEM);
	unsetenv("NCCL_MESH_CONNECT_TIMEOUT");
	setenv("NCCL_MESH_NICS", "^", 1);
	free(run(NULL, &status));
	assert_int_equal(status, COMMAND_PROBLEM);
	unsetenv("NCCL_MESH_NICS");
	setenv("NCCL_MESH_ADDRESSES", "10.0.0.0/40", 1);
	free(run("--json", &status));
	assert_int_equal(status, COMMAND_PROBLEM);
	unsetenv("NCCL_MESH_ADDRESSES");
	setenv("NCCL_MESH_PROVIDER", "udp", 1);
	free(run(NULL, &status));
	assert_int_equal(status, COMMAND_PROBLEM);
	setenv("NCCL_MESH_PROVIDER", "tcp", 1);
	free(run(NULL, &status));
	assert_int_equal(status, COMMAND_FINE);
	unsetenv("NCCL_MESH_PROVIDER");
	setenv("NCCL_MESH_NIC", "ab", 1);
	free(run(NULL, &status));
	assert_int_equal(status, COMMAND_PROBLEM);
	unsetenv("NCCL_MESH_NIC");
	setenv("NCCL_MESH_CONNECT_TIMEOUT", "", 1);
	text = run(NULL, &status);
	assert_int_equal(status, COMMAND_FINE);
	assert_non_null(strstr(text, "NCCL_MESH_CONNECT_TIMEOUT (not set; default: 60)\n"));
	free(text);
	unsetenv("NCCL_MESH_CONNECT_TIMEOUT");
	free(run("--jsn", &status));
	assert_int_equal(status, COMMAND_MISUSE);
	free(run("surplus", &status));
	assert_int_equal(status, COMMAND_MISUSE);
}

TEST(json)
{
	int status;
	char *text;

	text = run("--json", &status);
	assert_int_equal(status, COMMAND_FINE);
	assert_non_null(strstr(text, "\"name\": \"NCCL_MESH_CONNECT_TIMEOUT\""));
	assert_non_null(strstr(text, "\"value\": 60"));
	/* Each of the three units, and none for another kind of number. */
	assert_non_null(strstr(text, "\"max\": 86400,\n      \"unit\": \"seconds\""));
	assert_non_null(strstr(text, "\"max\": 65536,\n      \"unit\": \"bytes\""));
	assert_non_null(strstr(text, "\"max\": 8,\n      \"unit\": \"number\""));
	free(text);
}

TEST(lines_are_short)
{
	char *text = NULL, *line;
	FILE *file;
	size_t size;

	file = open_memstream(&text, &size);
	config_print_wrapped(file, "one two", "  ");
	fclose(file);
	assert_string_equal(text, "  one two\n");
	free(text);
	file = open_memstream(&text, &size);
	config_print_markdown(file);
	fclose(file);
	for (line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_in_range(strlen(line), 1, 100);
	free(text);
}

/* Tests run in the tree's top folder. */
TEST(reference_is_up_to_date)
{
	char *text = NULL, kept[65536];
	FILE *file = fopen("docs/settings.md", "r");
	size_t size, num;

	assert_non_null(file);
	num = fread(kept, 1, sizeof(kept) - 1, file);
	kept[num] = 0;
	fclose(file);
	file = open_memstream(&text, &size);
	config_print_markdown(file);
	fclose(file);
	if (strcmp(text, kept))
		fail_msg("run: build/fi_mesh config --markdown >docs/settings.md");
	free(text);
}
