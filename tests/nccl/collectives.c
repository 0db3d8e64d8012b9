/* SPDX-License-Identifier: Apache-2.0 */
/* collectives.c - nccl_collectives: NCCL itself over a net plugin, checked and timed. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lifecycle.h"
#include "sweep.h"

#define EXIT_SKIP 77

static const char usage[] =
	"Usage: RANK=r WORLD_SIZE=n MASTER_ADDR=a MASTER_PORT=p nccl_collectives [option...]\n"
	"One process for each rank; tests/nccl/run.sh starts them.\n"
	"\n"
	"  --tests LIST     of first, operations, split, repeat, two, registered, death\n"
	"                   (default: all but death, which ends the run; put it last)\n"
	"  --only NAME      one operation: all_reduce, all_gather, reduce_scatter, broadcast,\n"
	"                   reduce, all_to_all, pair\n"
	"  --min BYTES, --max BYTES   sizes, with K, M or G (default 4, 256M)\n"
	"  --iterations N   calls that are timed for each size (default 20)\n"
	"  --repeats N      communicators of the test repeat (default 100)\n"
	"  --timeout S      longest time of one operation (default 120)\n"
	"  --bound S        longest time until a death is noticed, and for an abort (default 30)\n"
	"  --victim RANK    who dies (default 1)\n"
	"  --nccl FILE      the library (default libnccl.so.2 or librccl.so.1 of the loader)\n"
	"  --check-gpu      only say whether there is a GPU\n"
	"  --idle-gpu       kernels do not run (tests/nccl/fake_gpu): make communicators only\n"
	"\n"
	"Exit status 0, 1, 2 for a wrong command line, 77 if there is no GPU.\n";

static const char *only_operation;

static int test_operations(struct job *job)
{
	struct sweep sweep;
	ncclComm_t comm;
	size_t i;
	int error = job_communicator(job, &comm);

	if (!error)
		error = sweep_open(&sweep, job, comm);
	if (error)
		return error;
	if (!only_operation)
		error = sweep_all(&sweep);
	for (i = 0; only_operation && i < num_operations && !error; i++)
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

/* Bytes with K, M or G; 0 if it is no size. */
static size_t size_of(const char *text)
{
	static const char units[] = "KMG";
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;

	if (unit) {
		number <<= 10 * (unit - units + 1);
		end++;
	}
	return *end ? 0 : (size_t)number;
}

static const struct option options[] = {
	{"tests", required_argument, NULL, 't'},
	{"only", required_argument, NULL, 'o'},
	{"min", required_argument, NULL, 'b'},
	{"max", required_argument, NULL, 'e'},
	{"iterations", required_argument, NULL, 'n'},
	{"timeout", required_argument, NULL, 's'},
	{"bound", required_argument, NULL, 'd'},
	{"victim", required_argument, NULL, 'v'},
	{"nccl", required_argument, NULL, 'l'},
	{"idle-gpu", no_argument, NULL, 'i'},
	{"check-gpu", no_argument, NULL, 'g'},
	{"repeats", required_argument, NULL, 'r'},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

struct arguments {
	const char *tests;
	const char *library;
	bool help;
	bool check_gpu;
};

static bool take(int option, struct job *job, struct arguments *arguments)
{
	switch (option) {
	case 't':
		arguments->tests = optarg;
		return true;
	case 'o':
		only_operation = optarg;
		return true;
	case 'b':
		job->min_bytes = size_of(optarg);
		return job->min_bytes >= sizeof(uint32_t);
	case 'e':
		job->max_bytes = size_of(optarg);
		return job->max_bytes >= sizeof(uint32_t);
	case 'n':
		job->iterations = atoi(optarg);
		return job->iterations > 0;
	case 's':
		job->timeout_s = (unsigned int)atoi(optarg);
		return job->timeout_s > 0;
	case 'd':
		job->bound_s = (unsigned int)atoi(optarg);
		return job->bound_s > 0;
	case 'v':
		job->victim = atoi(optarg);
		return job->victim >= 0;
	case 'l':
		arguments->library = optarg;
		return true;
	case 'r':
		job->repeats = atoi(optarg);
		return job->repeats > 0;
	case 'g':
		arguments->check_gpu = true;
		return true;
	case 'i':
		job->idle_gpu = true;
		return true;
	default:
		arguments->help = option == 'h';
		return arguments->help;
	}
}

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
	struct arguments arguments = {.tests = "first,operations,split,repeat,two,registered"};
	struct job job = {
		.min_bytes = sizeof(uint32_t),
		.max_bytes = (size_t)256 << 20,
		.iterations = 20,
		.repeats = 100,
		.timeout_s = 120,
		.bound_s = 30,
		.victim = 1,
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (take(option, &job, &arguments) && !arguments.help)
			continue;
		fputs(usage, arguments.help ? stdout : stderr);
		return arguments.help ? EXIT_SUCCESS : 2;
	}
	return run(&job, &arguments);
}
