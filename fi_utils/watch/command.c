/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - `fi_mesh watch`: shows the counters periodically, or once for Prometheus. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#include "commands.h"
#include "common/file.h"
#include "common/interrupt.h"
#include "common/options.h"
#include "common/output.h"
#include "watch/print.h"
#include "watch/sample.h"

static const char who[] = "fi_mesh watch";

static const char usage_text[] =
	"usage: fi_mesh watch [--interval SECONDS] [--count N] [--json] [--user USER]\n"
	"                     [--pid PID] [--stats-dir DIR] [--sysfs DIR]\n"
	"       fi_mesh watch --prometheus [--output FILE] [--user USER] [--pid PID]\n"
	"                     [--stats-dir DIR] [--sysfs DIR]\n"
	"\n"
	"Shows the traffic of each NIC and to each peer, and whether it is RDMA: the\n"
	"counters of the RDMA port and of the netdev, and those that the plugin keeps in\n"
	"each process.\n"
	"\n";

static const char notes_text[] =
	"\n"
	"Exit status: 0 fine, also after Ctrl-C; 1 the counters cannot be read, or the\n"
	"output cannot be written; 2 usage error.\n";

#define COUNT_MAX 1000000000UL

struct options {
	bool json, prometheus;
	uint64_t interval_ms;
	unsigned long count; /* 0: no end */
	const char *output, *stats_dir, *sysfs;
	struct watch_filter filter;
};

static bool seconds_parse(const char *text, uint64_t *ms)
{
	double seconds;
	char *end;

	seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.1 && seconds <= 3600))
		return false;
	*ms = (uint64_t)(seconds * 1000);
	return true;
}

static int misuse(const char *what)
{
	return arguments_misuse(who, "%s", what);
}

static int interval_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;

	(void)row;
	return seconds_parse(text, &options->interval_ms)
		       ? -1
		       : misuse("--interval takes seconds from 0.1 to 3600");
}

/* A name, or the number of a user. */
static int user_take(const struct option_row *row, const char *text, void *arg)
{
	struct options *options = arg;
	const struct passwd *user = getpwnam(text);
	unsigned long number;

	(void)row;
	options->filter.by_user = true;
	if (user)
		options->filter.uid = user->pw_uid;
	else if (argument_number(text, 0, UINT32_MAX, &number))
		options->filter.uid = (uint32_t)number;
	else
		return arguments_misuse(who, "--user: unknown user \"%.40s\"", text);
	return -1;
}

static const struct option_row option_rows[] = {
	{"interval", 0, "SECONDS", "time between two samples (default 1; 0.1 to 3600)",
	 OPTION_HANDLER(interval_take)},
	{"count", 0, "N", "end after N samples",
	 OPTION_NUMBER(struct options, count, 1, COUNT_MAX)},
	{"json", 0, NULL, "one JSON object a line", OPTION_FLAG(struct options, json)},
	{"prometheus", 0, NULL, "print the totals once, in Prometheus' text format",
	 OPTION_FLAG(struct options, prometheus)},
	{"output", 0, "FILE",
	 "write them to FILE, which is replaced atomically (for\n"
	 "node_exporter)",
	 OPTION_TEXT(struct options, output)},
	{"user", 0, "USER", "only this user's processes: a name or a number",
	 OPTION_HANDLER(user_take)},
	{"pid", 0, "PID", "only this process",
	 OPTION_NUMBER(struct options, filter.pid, 1, INT32_MAX)},
	{"stats-dir", 0, "DIR", "folder of the plugin's counters, as NCCL_MESH_STATS_DIR",
	 OPTION_TEXT(struct options, stats_dir)},
	{"sysfs", 0, "DIR", "read DIR instead of /sys", OPTION_FOLDER(struct options, sysfs)},
	{.name = NULL},
};

static const struct option_table option_table = {who, usage_text, notes_text, option_rows};

/* Returns an exit status, or -1 to go on. */
static int options_parse(int argc, char **argv, struct options *options)
{
	int status;

	*options = (struct options){.interval_ms = 1000, .sysfs = "/sys"};
	status = option_table_parse(&option_table, argc, argv, options, NULL);
	if (status >= 0)
		return status;
	if (options->output && !options->prometheus)
		return misuse("--output belongs to --prometheus");
	if (options->prometheus && (options->json || options->count))
		return misuse("--prometheus cannot be combined with --json or --count");
	return -1;
}

/* ---- Prometheus --------------------------------------------------------------------------- */

/* Writes the whole file and closes @fd. */
static int sample_write(int fd, const struct watch_sample *sample)
{
	FILE *file = fchmod(fd, 0644) ? NULL : fdopen(fd, "w");
	int ret = -errno;

	if (!file) {
		close(fd);
		return ret;
	}
	watch_print_prometheus(file, sample);
	return file_close(file);
}

/*
 * Replaces the file atomically: a reader finds the old file or the new one. Returns 0 or a negative
 * errno.
 */
static int file_replace(const char *path, const struct watch_sample *sample)
{
	char temporary[PATH_MAX];
	int fd, ret;

	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = sample_write(fd, sample);
	if (!ret && rename(temporary, path))
		ret = -errno;
	if (ret)
		unlink(temporary);
	return ret;
}

static int prometheus_show(const struct options *options, const struct mesh_config *config)
{
	struct watch_sample sample;
	int ret;

	ret = watch_sample_read(options->sysfs, config, &options->filter, &sample);
	if (ret)
		return output_failure(who, ret);
	if (!options->output)
		watch_print_prometheus(stdout, &sample);
	else
		ret = file_replace(options->output, &sample);
	if (ret)
		fprintf(stderr, "%s: cannot write %s: %s\n", who, options->output, strerror(-ret));
	watch_sample_free(&sample);
	return ret ? COMMAND_PROBLEM : COMMAND_FINE;
}

/* ---- again and again ---------------------------------------------------------------------- */

/* Returns 0, or -1 if the output has no reader. */
static int sample_show(const struct options *options, const struct watch_sample *now,
		       const struct watch_sample *before, bool first)
{
	if (options->json)
		return watch_print_json(stdout, now, before) || fflush(stdout) ? -1 : 0;
	/* Moves the cursor to the corner and erases the screen (ECMA-48 CUP, ED). */
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	else if (!first)
		fputc('\n', stdout);
	watch_print(stdout, now, before);
	return fflush(stdout) ? -1 : 0;
}

static int watch_run(const struct options *options, const struct mesh_config *config)
{
	struct watch_sample now, before;
	uint64_t due_ms = mesh_clock_ms();
	int ret, status = COMMAND_FINE;
	unsigned long shown;

	interrupt_catch();
	/* The first sample is only the base of the first rates. */
	ret = watch_sample_read(options->sysfs, config, &options->filter, &before);
	if (ret)
		return output_failure(who, ret);
	for (shown = 0; !options->count || shown < options->count; shown++) {
		due_ms += options->interval_ms;
		if (interrupt_wait(-1, 0, due_ms) == -EINTR)
			break;
		ret = watch_sample_read(options->sysfs, config, &options->filter, &now);
		if (ret) {
			status = output_failure(who, ret);
			break;
		}
		if (sample_show(options, &now, &before, !shown)) {
			watch_sample_free(&now);
			status = COMMAND_PROBLEM; /* output_finish() says why */
			break;
		}
		watch_sample_free(&before);
		before = now;
	}
	watch_sample_free(&before);
	return status;
}

int command_watch(int argc, char **argv)
{
	struct mesh_config config;
	struct options options;
	int status;

	status = options_parse(argc, argv, &options);
	if (status >= 0)
		return status;
	mesh_config_load(NULL, NULL, &config);
	if (options.stats_dir && snprintf(config.stats_dir, sizeof(config.stats_dir), "%s",
					  options.stats_dir) >= (int)sizeof(config.stats_dir))
		return misuse("--stats-dir: that path is too long");
	status = options.prometheus ? prometheus_show(&options, &config)
				    : watch_run(&options, &config);
	return output_finish(who, status);
}
