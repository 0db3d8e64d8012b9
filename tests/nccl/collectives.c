/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c - nccl_collectives: NCCL itself over a net plugin, checked and timed. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"

#include "lifecycle.h"
#include "list.h"
#include "sweep.h"

#define WHO "nccl_collectives"
#define EXIT_SKIP 77

static const char *only_operation;

static int test_operations(struct job *job)
{
	struct sweep sweep;
	ncclComm_t comm;
	int error = job_communicator(job, &comm);

	if (!error)
		error = sweep_open(&sweep, job, comm);
	if (error)
		return error;
	if (!only_operation)
		error = sweep_all(&sweep);
	for (size_t i = 0; only_operation && i < num_operations && !error; i++)
		if (!strcmp(operations[i].name, only_operation))
			error = sweep_operation(&sweep, &operations[i]);
	sweep_close(&sweep);
	if (error && error != -EBADMSG)
		return error;
	return job_say(job, "ncclCommDestroy", job->api.ncclCommDestroy(comm)) ? -EIO : error;
}

static const struct test {
	const char *name;
	int (*run)(struct job *job);
} tests[] = {
	{"operations", test_operations},      {"split", lifecycle_split},
	{"repeat", lifecycle_repeat},	      {"two", lifecycle_two},
	{"registered", lifecycle_registered}, {"first", lifecycle_first},
	{"death", lifecycle_death},
};

struct arguments {
	struct job job;
	const char *tests, *library;
	bool check_gpu;
};

/* --min and --max. */
static int take_bytes(const struct option_row *row, const char *text, void *arg)
{
	struct job *job = &((struct arguments *)arg)->job;
	uint64_t bytes;

	if (!list_read(text, sizeof(uint32_t), SIZE_MAX, &bytes, 1))
		return arguments_misuse(WHO, "--%s '%s'", row->name, text);
	*(row->name[1] == 'i' ? &job->min_bytes : &job->max_bytes) = bytes;
	return -1;
}

static int take_only(const struct option_row *row, const char *text, void *arg)
{
	only_operation = text;
	return -1;
}

static const struct option_row rows[] = {
	{"tests", 0, "LIST",
	 "of first, operations, split, repeat, two, registered, death\n"
	 "(default: all but death, which ends the run; put it last)",
	 OPTION_TEXT(struct arguments, tests)},
	{"only", 0, "NAME",
	 "one operation: all_reduce, all_gather, reduce_scatter, broadcast,\n"
	 "reduce, all_to_all, pair",
	 OPTION_HANDLER(take_only)},
	{"min", 0, "BYTES", "smallest size, with K, M or G (default 4)",
	 OPTION_HANDLER(take_bytes)},
	{"max", 0, "BYTES", "largest size (default 256M)", OPTION_HANDLER(take_bytes)},
	{"iterations", 0, "N", "calls that are timed for each size (default 20)",
	 OPTION_NUMBER(struct arguments, job.iterations, 1, INT_MAX)},
	{"repeats", 0, "N", "communicators of the test repeat (default 100)",
	 OPTION_NUMBER(struct arguments, job.repeats, 1, INT_MAX)},
	{"timeout", 0, "S", "longest time of one operation (default 120)",
	 OPTION_NUMBER(struct arguments, job.timeout_s, 1, INT_MAX)},
	{"bound", 0, "S", "longest time until a death is noticed, and for an abort (default 30)",
	 OPTION_NUMBER(struct arguments, job.bound_s, 1, INT_MAX)},
	{"victim", 0, "RANK", "who dies (default 1)",
	 OPTION_NUMBER(struct arguments, job.victim, 0, INT_MAX)},
	{"nccl", 0, "FILE", "the library (default libnccl.so.2 or librccl.so.1 of the loader)",
	 OPTION_TEXT(struct arguments, library)},
	{"check-gpu", 0, NULL, "only say whether there is a GPU",
	 OPTION_FLAG(struct arguments, check_gpu)},
	{"idle-gpu", 0, NULL, "kernels do not run (tests/nccl/fake_gpu): make communicators only",
	 OPTION_FLAG(struct arguments, job.idle_gpu)},
	{.name = NULL},
};

static const struct option_table table = {
	.who = WHO,
	.usage = "Usage: RANK=r WORLD_SIZE=n MASTER_ADDR=a MASTER_PORT=p nccl_collectives "
		 "[option...]\n"
		 "One process for each rank; tests/nccl/run.sh starts them.\n\n",
	.notes = "\nExit status 0, 1, 2 for a wrong command line, 77 if there is no GPU.\n",
	.rows = rows,
};

/* Runs the tests whose names are in @list, in its order. */
static int run_tests(struct job *job, const char *list)
{
	char *names = strdup(list), *rest = names, *name;
	int error = 0, failed = 0;
	size_t i;

	while ((name = strsep(&rest, ","))) {
		for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
			if (!strcmp(tests[i].name, name))
				break;
		if (i == sizeof(tests) / sizeof(tests[0])) {
			fprintf(stderr, "nccl_collectives: there is no test '%s'\n", name);
			failed = -EINVAL;
			break;
		}
		error = tests[i].run(job);
		if (job_prints(job) || error)
			printf("%s %s (rank %d)\n",
			       error == -EOPNOTSUPP ? "SKIP"
			       : error		    ? "FAIL"
						    : "PASS",
			       name, job->ranks.rank);
		fflush(stdout);
		if (error && error != -EOPNOTSUPP)
			failed = error;
		/* After any other error the other ranks may wait without end. */
		if (error && error != -EOPNOTSUPP && error != -EBADMSG)
			break;
	}
	free(names);
	return failed;
}

static int local_rank(void)
{
	const char *text = getenv("LOCAL_RANK");

	return text ? atoi(text) : 0;
}

static int run(struct job *job, const struct arguments *arguments)
{
	char why[256];

	if (gpu_open(&job->gpu, local_rank(), why, sizeof(why))) {
		printf("SKIP: %s\nskipped: no GPU\n", why);
		return EXIT_SKIP;
	}
	if (arguments->check_gpu)
		return EXIT_SUCCESS;
	if (api_open(&job->api, arguments->library) || ranks_meet(&job->ranks, 60))
		return EXIT_FAILURE;
	if (job_prints(job))
		printf("# NCCL %s, %d ranks, %s\n", job->api.version, job->ranks.world,
		       job->gpu.kind);
	if (run_tests(job, arguments->tests))
		return EXIT_FAILURE;
	ranks_part(&job->ranks);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct arguments arguments = {
		.job =
			{
				.min_bytes = sizeof(uint32_t),
				.max_bytes = (size_t)256 << 20,
				.iterations = 20,
				.repeats = 100,
				.timeout_s = 120,
				.bound_s = 30,
				.victim = 1,
			},
		.tests = "first,operations,split,repeat,two,registered",
	};
	int status = option_table_parse(&table, argc, argv, &arguments, NULL);

	return status < 0 ? run(&arguments.job, &arguments) : status;
}
