/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_driver.c - runs a script of plugin calls, in NCCL's order or not, and checks how each one
 * ends. The functional tests about faults are made of such scripts.
 *
 * Usage: fault_driver PLUGIN SCRIPT
 *
 * A line of the script is one command (see the table); "#" starts a comment. In front of it:
 *	within MS COMMAND	it must end within so many milliseconds
 *	moved NIC COMMAND	prints how many bytes the NIC sent or received meanwhile, whichever
 *				is more
 *	! COMMAND		it must end with an error of NCCL's
 *	? COMMAND		success or an error, but an end
 *	thread N COMMAND	runs beside the rest until "join N", or "join N MS" with a limit
 * Objects have numbers that the script chooses. Exit status 0 if every command ended as it must.
 */
#include <signal.h>
#include <sys/stat.h>

#include "fault_driver/connection.h"
#include "fault_driver/driver.h"
#include "fault_driver/noise.h"
#include "fault_driver/placement.h"
#include "fault_driver/resources.h"
#include "fault_driver/transfer.h"

#define LIMIT_MS 60000
#define AWAIT_MS 800000
#define THREADS 16
#define LINE_BYTES 1024

/* ---- commands that are about the process itself ------------------------------------------ */

/* limit MS: for calls that are repeated until they are done. */
static int command_limit(struct driver *d, int argc, char **argv)
{
	d->limit_ms = number(argv[1]);
	return OUTCOME_OK;
}

static int command_die(struct driver *d, int argc, char **argv)
{
	fflush(stdout);
	raise(SIGKILL);
	return wrong("alive after SIGKILL");
}

/* stop: until SIGCONT. */
static int command_stop(struct driver *d, int argc, char **argv)
{
	raise(SIGSTOP);
	return OUTCOME_OK;
}

static int command_touch(struct driver *d, int argc, char **argv)
{
	bool lent = descriptor_lend(d);
	int ret = file_write(argv[1], "", 0);

	descriptor_return(d, lent);
	return ret ? wrong("cannot touch %s", argv[1]) : OUTCOME_OK;
}

/* await FILE: no plugin call meanwhile. The test makes it, after whatever it does until then. */
static int command_await(struct driver *d, int argc, char **argv)
{
	uint64_t deadline = clock_ms() + AWAIT_MS;

	while (access(argv[1], F_OK)) {
		if (clock_ms() > deadline)
			return OUTCOME_LATE;
		pause_us(1000);
	}
	return OUTCOME_OK;
}

/* fork FILE: a child that keeps what it inherited, and does nothing until FILE exists. */
static int command_fork(struct driver *d, int argc, char **argv)
{
	pid_t child = fork();

	if (child)
		return child > 0 ? OUTCOME_OK : wrong("cannot fork");
	command_await(d, argc, argv);
	_exit(0);
}

static int command_pause(struct driver *d, int argc, char **argv)
{
	pause_us((unsigned int)number(argv[1]) * 1000);
	return OUTCOME_OK;
}

static const struct command {
	const char *name;
	int words; /* with the name */
	int (*run)(struct driver *d, int argc, char **argv);
} commands[] = {
	{"load", 2, command_load},
	{"init", 2, command_init},
	{"use", 2, command_use},
	{"device", 2, command_device},
	{"finalize", 2, command_finalize},
	{"listen", 3, command_listen},
	{"connect", 3, command_connect},
	{"connect-calls", 4, command_connect_calls},
	{"accept", 3, command_accept},
	{"close-listen", 2, command_close_listen},
	{"close", 2, command_close},
	{"buffer", 3, command_buffer},
	{"remap", 2, command_remap},
	{"poison", 2, command_poison},
	{"clean", 3, command_clean},
	{"written", 3, command_written},
	{"reg", 4, command_reg},
	{"dereg", 2, command_dereg},
	{"post", 5, command_post},
	{"test", 2, command_test},
	{"pending", 3, command_pending},
	{"transfer", 5, command_transfer},
	{"transfer_into", 6, command_transfer},
	{"stream", 5, command_stream},
	{"placement", 6, command_placement},
	{"fds", 2, command_fds},
	{"fds-back", 3, command_fds_back},
	{"memory", 2, command_memory},
	{"memory-back", 3, command_memory_back},
	{"idle", 3, command_idle},
	{"longest", 1, command_longest},
	{"exhaust", 2, command_exhaust},
	{"release", 1, command_release},
	{"forge", 5, command_forge},
	{"noise", 5, command_noise},
	{"claim", 4, command_claim},
	{"disconnected", 2, command_disconnected},
	{"hush", 1, command_hush},
	{"limit", 2, command_limit},
	{"die", 1, command_die},
	{"stop", 1, command_stop},
	{"touch", 2, command_touch},
	{"await", 2, command_await},
	{"fork", 2, command_fork},
	{"pause", 2, command_pause},
};

/* ---- the script ---------------------------------------------------------------------------- */

struct line {
	struct driver *driver;
	char text[LINE_BYTES];
	char *words[WORDS_MAX];
	int num_words, first; /* first: of the command itself */
	int context;
	bool error_wanted, error_allowed;
	uint64_t within_ms; /* 0: any time */
	const char *nic;    /* of "moved"; NULL: none */
	bool bad;
};

struct worker {
	pthread_t thread;
	struct line line;
};

static const struct command *command_find(const struct line *line)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (line->first < line->num_words &&
		    !strcmp(commands[i].name, line->words[line->first]) &&
		    commands[i].words == line->num_words - line->first)
			return &commands[i];
	}
	printf("WRONG: no such command\n");
	exit(2);
}

static void prefixes_read(struct line *line)
{
	for (; line->first < line->num_words; line->first++) {
		const char *word = line->words[line->first];

		if (!strcmp(word, "!"))
			line->error_wanted = true;
		else if (!strcmp(word, "?"))
			line->error_allowed = true;
		else if (!strcmp(word, "within") && line->first + 1 < line->num_words)
			line->within_ms = number(line->words[++line->first]);
		else if (!strcmp(word, "moved") && line->first + 1 < line->num_words)
			line->nic = line->words[++line->first];
		else
			return;
	}
}

/* One of the counters of a NIC of this node, "tx_bytes" or "rx_bytes"; 0 without @nic. */
static uint64_t nic_counter(const char *nic, const char *name)
{
	char path[PATH_BYTES];
	unsigned long long value = 0;
	FILE *file;

	if (!nic)
		return 0;
	snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", nic, name);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%llu", &value) != 1) {
		printf("WRONG: cannot read %s\n", path);
		exit(2);
	}
	fclose(file);
	return value;
}

static bool outcome_is_good(const struct line *line, int outcome, uint64_t ms)
{
	if (outcome < 0 || (line->within_ms && ms > line->within_ms))
		return false;
	if (line->error_allowed)
		return true;
	return line->error_wanted ? outcome > 0 : outcome == 0;
}

static void *line_run(void *arg)
{
	struct line *line = arg;
	const struct command *command;
	uint64_t started, ms, sent, received;
	int outcome;

	context_used = line->context;
	prefixes_read(line);
	command = command_find(line);
	sent = nic_counter(line->nic, "tx_bytes");
	received = nic_counter(line->nic, "rx_bytes");
	started = clock_ms();
	outcome = command->run(line->driver, line->num_words - line->first,
			       line->words + line->first);
	ms = clock_ms() - started;
	sent = nic_counter(line->nic, "tx_bytes") - sent;
	received = nic_counter(line->nic, "rx_bytes") - received;
	line->bad = !outcome_is_good(line, outcome, ms);
	printf("%s %s: %s %d, %" PRIu64 " ms\n", line->bad ? "BAD" : "ok", command->name,
	       outcome == OUTCOME_LATE	  ? "no end"
	       : outcome == OUTCOME_WRONG ? "a check failed"
					  : "result",
	       outcome, ms);
	if (line->nic)
		printf("moved %s: %" PRIu64 " ms, %" PRIu64 " bytes\n", command->name, ms,
		       sent > received ? sent : received);
	return NULL;
}

static bool line_read(struct line *line, struct driver *d, FILE *script)
{
	char *word, *rest = NULL;

	memset(line, 0, sizeof(*line));
	line->driver = d;
	line->context = context_used;
	if (!fgets(line->text, sizeof(line->text), script))
		return false;
	line->text[strcspn(line->text, "#\n")] = '\0';
	printf("> %s\n", line->text);
	for (word = strtok_r(line->text, " \t", &rest); word && line->num_words < WORDS_MAX;
	     word = strtok_r(NULL, " \t", &rest))
		line->words[line->num_words++] = word;
	return true;
}

/* Waits until the thread ends, at most @limit_ms if that is not 0. True if it ended well. */
static bool worker_join(struct worker *worker, uint64_t limit_ms)
{
	uint64_t started = clock_ms(), ms;

	pthread_join(worker->thread, NULL);
	ms = clock_ms() - started;
	printf("%s join: %" PRIu64 " ms\n", limit_ms && ms > limit_ms ? "BAD" : "ok", ms);
	return !worker->line.bad && (!limit_ms || ms <= limit_ms);
}

/* thread N ... and join N; true if the line was one of them. */
static bool worker_line(struct worker *workers, struct line *line, bool *bad)
{
	struct worker *worker;

	if (line->num_words < 2 ||
	    (strcmp(line->words[0], "thread") != 0 && strcmp(line->words[0], "join") != 0))
		return false;
	worker = &workers[slot(line->words[1]) % THREADS];
	if (!strcmp(line->words[0], "join")) {
		*bad |= !worker_join(worker, line->num_words > 2 ? number(line->words[2]) : 0);
		return true;
	}
	worker->line = *line;
	/* The words point into the copy. */
	for (int i = 0; i < line->num_words; i++)
		worker->line.words[i] = worker->line.text + (line->words[i] - line->text);
	worker->line.first = 2;
	*bad |= pthread_create(&worker->thread, NULL, line_run, &worker->line) != 0;
	return true;
}

static int script_run(struct driver *d, FILE *script)
{
	struct worker *workers = calloc(THREADS, sizeof(*workers));
	struct line line;
	bool bad = !workers;

	while (!bad && line_read(&line, d, script)) {
		if (!line.num_words || worker_line(workers, &line, &bad))
			continue;
		line_run(&line);
		bad = line.bad;
	}
	free(workers);
	return bad;
}

int main(int argc, char **argv)
{
	struct driver *d = calloc(1, sizeof(*d));
	char *load[] = {(char *)"load", argc == 3 ? argv[1] : NULL};
	FILE *script;
	int status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3 || !d || !(script = fopen(argv[2], "r"))) {
		fprintf(stderr, "usage: fault_driver PLUGIN SCRIPT\n");
		return 2;
	}
	d->limit_ms = LIMIT_MS;
	status = command_load(d, 2, load) ? 2 : script_run(d, script);
	fclose(script);
	printf("end %d\n", status);
	free(d);
	return status;
}
