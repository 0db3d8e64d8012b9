/* SPDX-License-Identifier: Apache-2.0 */
/* test_child.c - work and programs in child processes: their output, and when they are killed. */
#include <signal.h>
#include <sys/wait.h>

#include "common/child.h"

#include "unit.h"

/* Whatever takes longer than this has failed. */
#define LIMIT_MS 60000

static void put(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		_exit(99);
}

static void talk(void *arg)
{
	put(STDOUT_FILENO, arg);
	put(STDERR_FILENO, "first\nsecond\n");
	if (read(STDIN_FILENO, &(char){0}, 1)) /* /dev/null */
		_exit(98);
}

static void end_with(void *arg)
{
	_exit(*(int *)arg);
}

static void crash(void *arg)
{
	raise(SIGKILL);
}

static void hang(void *arg)
{
	put(STDOUT_FILENO, arg);
	put(STDERR_FILENO, "it hangs\n");
	for (;;)
		pause();
}

TEST(talks)
{
	char word[] = "one\ntwo";
	struct child_result result;

	assert_int_equal(child_run(talk, word, LIMIT_MS, &result), 0);
	assert_string_equal(result.output, word);
	assert_int_equal(result.size, strlen(word));
	assert_string_equal(result.complaint, "first");
	assert_int_equal(result.status, 0);
	free(result.output);
}

TEST(ends)
{
	struct child_result result;
	int status = 7;

	assert_int_equal(child_run(end_with, &status, LIMIT_MS, &result), 0);
	assert_true(WIFEXITED(result.status));
	assert_int_equal(WEXITSTATUS(result.status), 7);
	assert_string_equal(result.output, "");
	free(result.output);
	assert_int_equal(child_run(crash, NULL, LIMIT_MS, &result), 0);
	assert_true(WIFSIGNALED(result.status));
	assert_int_equal(WTERMSIG(result.status), SIGKILL);
	free(result.output);
}

TEST(hangs)
{
	struct child_result result;
	char word[] = "x";

	assert_int_equal(child_run(hang, word, 200, &result), -ETIMEDOUT);
	assert_null(result.output);
	assert_string_equal(result.complaint, "it hangs");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* it was reaped */
	assert_int_equal(errno, ECHILD);
}

/* A signal that has a handler cuts no answer short. */
static void on_alarm(int number)
{
}

static void talk_and_disturb(void *arg)
{
	for (int i = 0; i < 1000; i++) {
		kill(getppid(), SIGALRM);
		put(STDOUT_FILENO, arg);
	}
}

TEST(signals_meanwhile)
{
	struct sigaction action = {.sa_handler = on_alarm}; /* without SA_RESTART */
	struct child_result result;
	char word[] = "word";

	sigaction(SIGALRM, &action, NULL);
	assert_int_equal(child_run(talk_and_disturb, word, LIMIT_MS, &result), 0);
	signal(SIGALRM, SIG_DFL);
	assert_int_equal(result.size, 1000 * strlen(word));
	free(result.output);
}

TEST(programs)
{
	char complaint[RUN_PROGRAM_COMPLAINT_MAX], *output;
	char sh[] = "sh", c[] = "-c", echo[] = "echo out; echo err >&2",
	     bad[] = "echo why >&2; exit 3", slow[] = "exec sleep 100",
	     none[] = "no-such-program-here", much[] = "yes", quiet[] = "exit 4";
	char *good_argv[] = {sh, c, echo, NULL}, *bad_argv[] = {sh, c, bad, NULL},
	     *slow_argv[] = {sh, c, slow, NULL}, *none_argv[] = {none, NULL},
	     *much_argv[] = {much, NULL}, *quiet_argv[] = {sh, c, quiet, NULL};

	assert_int_equal(run_program(good_argv, LIMIT_MS, &output, complaint), 0);
	assert_string_equal(output, "out\n");
	assert_string_equal(complaint, "err"); /* a warning, as iptables-save gives */
	free(output);
	assert_int_equal(run_program(bad_argv, LIMIT_MS, &output, complaint), -ECHILD);
	assert_string_equal(complaint, "why");
	assert_int_equal(run_program(quiet_argv, LIMIT_MS, &output, complaint), -ECHILD);
	assert_string_equal(complaint, "it failed");
	assert_int_equal(run_program(slow_argv, 50, &output, complaint), -ETIMEDOUT);
	assert_int_equal(run_program(none_argv, LIMIT_MS, &output, complaint), -ENOENT);
	assert_string_equal(complaint, "not installed");
	assert_int_equal(run_program(much_argv, LIMIT_MS, &output, complaint), -EOVERFLOW);
}
