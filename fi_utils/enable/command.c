/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh enable` and `fi_mesh disable`: NCCL's configuration files. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "commands.h"
#include "common/nccl_setting.h"
#include "common/options.h"
#include "common/output.h"
#include "enable/enable.h"
#include "system/sysfs.h"

static const char who_enable[] = "fi_mesh enable";
static const char who_disable[] = "fi_mesh disable";

static const char enable_usage[] =
	"usage: fi_mesh enable [--system | --user] [--rccl] [--strict] [--ifname NAME]\n"
	"\n"
	"Adds the settings that select this plugin to NCCL's configuration file, between\n"
	"two markers. Programs then need no environment variable. Existing lines are\n"
	"kept; if one conflicts, nothing is written.\n"
	"\n";

static const char disable_usage[] =
	"usage: fi_mesh disable [--system | --user] [--rccl]\n"
	"\n"
	"Removes the settings that `fi_mesh enable` has added to NCCL's and RCCL's\n"
	"configuration files.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Without --system and --user: --system for root, --user for others.\n"
	"Exit status: 0 done, 1 a file could not be changed, 2 usage error.\n";

enum scope {
	SCOPE_BY_USER, /* root: the system's file, others: their own */
	SCOPE_SYSTEM,
	SCOPE_USER,
};

struct options {
	int scope;
	bool rccl;
	struct enable_choice choice;
};

#define SCOPE_ROWS                                                                                 \
	{"system", 0, NULL, "/etc/nccl.conf: every program of this node",                          \
	 OPTION_CONSTANT(struct options, scope, SCOPE_SYSTEM)},                                    \
	{                                                                                          \
		"user", 0, NULL, "~/.nccl.conf: the programs of this user",                        \
			OPTION_CONSTANT(struct options, scope, SCOPE_USER)                         \
	}

static const struct option_row enable_rows[] = {
	SCOPE_ROWS,
	{"rccl", 0, NULL, "rccl.conf as well, because RCCL does not read nccl.conf",
	 OPTION_FLAG(struct options, rccl)},
	{"strict", 0, NULL,
	 "NCCL_NET=Mesh as well: a program that cannot load the plugin\n"
	 "fails, instead of using another network",
	 OPTION_FLAG(struct options, choice.strict)},
	{"ifname", 0, "NAME",
	 "the NIC where ranks meet (NCCL_SOCKET_IFNAME); \"none\" writes\n"
	 "none. Default: the only NIC with a default route",
	 OPTION_TEXT(struct options, choice.ifname)},
	{.name = NULL},
};

static const struct option_row disable_rows[] = {
	SCOPE_ROWS,
	{"rccl", 0, NULL, "rccl.conf only", OPTION_FLAG(struct options, rccl)},
	{.name = NULL},
};

static const struct option_table enable_table = {who_enable, enable_usage, notes_text, enable_rows};
static const struct option_table disable_table = {who_disable, disable_usage, notes_text,
						  disable_rows};

/* The file that @scope means. False (reported) if the user has no home folder. */
static bool path_make(const char *who, int scope, bool is_rccl, char *path)
{
	if (scope == SCOPE_SYSTEM || (scope == SCOPE_BY_USER && !geteuid())) {
		strcpy(path, nccl_conf_system_file(is_rccl));
		return true;
	}
	if (nccl_conf_home_file(is_rccl, path))
		return true;
	fprintf(stderr, "%s: user %u has no home folder; use --system\n", who,
		(unsigned int)getuid());
	return false;
}

/* What to do about an error of the functions on the file at @path. */
static const char *remedy(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
		return "the file or its folder is read-only for this user; nothing was changed. "
		       "--system needs root, --user does not";
	case -EROFS:
		return "nothing was changed";
	case -EBUSY:
		return "another program has changed the file meanwhile; nothing was changed. Try "
		       "again";
	case -EINVAL:
		return "it is not a regular file";
	case -ENOENT:
		return "it is a dangling symbolic link, or its folder is missing";
	default:
		return "nothing was changed";
	}
}

static int file_failed(const char *who, const char *path, int error)
{
	fprintf(stderr, "%s: cannot change %s: %s: %s\n", who, path, strerror(-error),
		remedy(error));
	return COMMAND_PROBLEM;
}

/* Why the text was refused. */
static int text_refused(const char *who, const char *path, int error,
			const struct conf_obstacle *obstacle)
{
	if (error == -EEXIST)
		fprintf(stderr,
			"%s: %s: line %d has \"%s\", which `fi_mesh enable` does not change; "
			"nothing was written. Remove that line, or keep it and do not enable\n",
			who, path, obstacle->line, obstacle->text);
	else if (error == -EBADMSG)
		fprintf(stderr,
			"%s: %s: near line %d one of the two markers of `fi_mesh enable` is "
			"missing; nothing was written. Remove the lines that begin with \"# "
			"fi_mesh enable\", and what is between them\n",
			who, path, obstacle->line);
	else
		return output_failure(who, error);
	return COMMAND_PROBLEM;
}

/* ---- enable ------------------------------------------------------------------------------ */

/* A value that NCCL sees before ours, here and now: the environment's, or another file's. */
static void winners_show(bool is_rccl, const struct conf_value *values, int num)
{
	struct nccl_setting setting;
	struct mesh_sysfs files;
	int i;

	mesh_sysfs_open("/", &files);
	for (i = 0; i < num; i++) {
		if (!nccl_setting_find(&files, is_rccl, values[i].name, &setting))
			continue;
		if (values[i].any_case ? !strcasecmp(setting.value, values[i].value)
				       : !strcmp(setting.value, values[i].value))
			continue;
		printf("But %s has %s=%s, which takes precedence here.\n", setting.origin,
		       values[i].name, output_clean(setting.value));
	}
	mesh_sysfs_close(&files);
}

static int file_enable(const char *path, const struct conf_value *values, int num)
{
	struct conf_obstacle obstacle;
	struct conf_text made;
	struct conf_file file;
	int ret = conf_file_read(path, &file), status = COMMAND_FINE;

	if (ret)
		return file_failed(who_enable, path, ret);
	ret = conf_block_put(&file.text, !file.exists, values, num, &made, &obstacle);
	if (ret) {
		status = text_refused(who_enable, path, ret, &obstacle);
	} else {
		ret = conf_file_replace(&file, &made);
		if (ret)
			status = file_failed(who_enable, path, ret);
		free(made.bytes);
	}
	conf_file_free(&file);
	return status;
}

static void values_show(const char *path, const struct conf_value *values, int num)
{
	int i;

	printf("%s:\n", path);
	for (i = 0; i < num; i++)
		if (values[i].kind != CONF_WATCHED)
			printf("    %s=%s\n", values[i].name, values[i].value);
}

/* One library's file. */
static int library_enable(const struct options *options, bool is_rccl)
{
	struct conf_value values[CONF_VALUES_MAX];
	char path[PATH_MAX];
	int num, status;

	if (!path_make(who_enable, options->scope, is_rccl, path))
		return COMMAND_PROBLEM;
	num = enable_values_make(who_enable, is_rccl, &options->choice, values);
	if (num < 0)
		return COMMAND_PROBLEM;
	status = file_enable(path, values, num);
	if (status == COMMAND_FINE) {
		values_show(path, values, num);
		winners_show(is_rccl, values, num);
	}
	return status;
}

int command_enable(int argc, char **argv)
{
	struct options options = {.scope = SCOPE_BY_USER};
	int status = option_table_parse(&enable_table, argc, argv, &options, NULL);

	if (status >= 0)
		return status;
	if (options.choice.ifname && strpbrk(options.choice.ifname, " \t\r\n,^="))
		return arguments_misuse(who_enable, "--ifname: \"%s\" is not the name of one NIC",
					options.choice.ifname);
	status = library_enable(&options, false);
	if (status == COMMAND_FINE && options.rccl)
		status = library_enable(&options, true);
	if (status == COMMAND_FINE)
		printf("Programs that start from now on use the plugin; `fi_mesh check` says "
		       "whether it can work.\n"
		       "PyTorch's Gloo does not read this file: export GLOO_SOCKET_IFNAME where a "
		       "program uses it and\nthe host name does not resolve to the management "
		       "address.\n");
	return output_finish(who_enable, status);
}

/* ---- disable ----------------------------------------------------------------------------- */

static int text_disable(const char *path, struct conf_file *file)
{
	struct conf_obstacle obstacle;
	struct conf_text made;
	bool unmake;
	int ret = conf_block_remove(&file->text, &made, &unmake, &obstacle);

	if (ret < 0)
		return text_refused(who_disable, path, ret, &obstacle);
	if (!ret)
		return COMMAND_FINE;
	ret = unmake ? conf_file_remove(file) : conf_file_replace(file, &made);
	free(made.bytes);
	if (ret)
		return file_failed(who_disable, path, ret);
	printf("%s: %s\n", path, unmake ? "removed" : "the lines of `fi_mesh enable` are removed");
	return COMMAND_FINE;
}

static int library_disable(const struct options *options, bool is_rccl)
{
	struct conf_file file;
	char path[PATH_MAX];
	int ret, status;

	if (!path_make(who_disable, options->scope, is_rccl, path))
		return COMMAND_PROBLEM;
	ret = conf_file_read(path, &file);
	if (ret)
		return file_failed(who_disable, path, ret);
	status = text_disable(path, &file);
	conf_file_free(&file);
	return status;
}

int command_disable(int argc, char **argv)
{
	struct options options = {.scope = SCOPE_BY_USER};
	int status = option_table_parse(&disable_table, argc, argv, &options, NULL), other;

	if (status >= 0)
		return status;
	status = library_disable(&options, true);
	if (!options.rccl) {
		other = library_disable(&options, false);
		status = other > status ? other : status;
	}
	return output_finish(who_disable, status);
}
