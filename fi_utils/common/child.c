/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - runs something, or another program, in a child process and reads what it writes. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#include "common/child.h"

#define CHUNK 65536

struct child {
	pid_t pid;
	int out, err; /* read ends; -1 once closed */
	struct child_result *result;
	size_t complaint_size;
};

__attribute__((noreturn)) static void child_become(void (*body)(void *arg), void *arg, int out,
						   int err)
{
	int null;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	body(arg);
	_exit(0);
}

static int child_start(void (*body)(void *arg), void *arg, struct child *child)
{
	int out[2], err[2], ret = 0;

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		ret = -errno;
		close(out[0]);
		close(out[1]);
		return ret;
	}
	child->pid = fork();
	if (!child->pid)
		child_become(body, arg, out[1], err[1]);
	if (child->pid < 0)
		ret = -errno;
	close(out[1]);
	close(err[1]);
	child->out = out[0];
	child->err = err[0];
	return ret;
}

static void end_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Reads once; the end, and an error, close the pipe. Returns the number of bytes. */
static size_t pipe_read(int *fd, char *bytes, size_t size)
{
	ssize_t n = read(*fd, bytes, size);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n <= 0)
		end_close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* Returns 0, or -EOVERFLOW, -ENOMEM. */
static int output_read(struct child *child)
{
	struct child_result *result = child->result;
	char *grown = realloc(result->output, result->size + CHUNK + 1);

	if (!grown)
		return -ENOMEM;
	result->output = grown;
	result->size += pipe_read(&child->out, grown + result->size, CHUNK);
	grown[result->size] = '\0';
	return result->size > CHILD_OUTPUT_MAX ? -EOVERFLOW : 0;
}

static void complaint_read(struct child *child)
{
	char rest[512];
	size_t n = pipe_read(&child->err, rest, sizeof(rest));
	size_t room = CHILD_COMPLAINT_MAX - 1 - child->complaint_size;

	n = n < room ? n : room;
	memcpy(child->result->complaint + child->complaint_size, rest, n);
	child->complaint_size += n;
}

/* Reads until both pipes end. */
static int child_read(struct child *child, int timeout_ms)
{
	uint64_t end = mesh_clock_ms() + (uint64_t)timeout_ms, now;
	struct pollfd fds[2];
	int ret = 0;

	while (!ret && (child->out >= 0 || child->err >= 0)) {
		now = mesh_clock_ms();
		if (now >= end)
			return -ETIMEDOUT;
		fds[0] = (struct pollfd){.fd = child->out, .events = POLLIN};
		fds[1] = (struct pollfd){.fd = child->err, .events = POLLIN};
		if (poll(fds, 2, (int)(end - now)) < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (fds[0].revents)
			ret = output_read(child);
		if (fds[1].revents)
			complaint_read(child);
	}
	return ret;
}

/* Reaps the child, which is killed first if reading it failed. */
static int child_end(struct child *child, int error)
{
	if (error)
		kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &child->result->status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return error;
}

int child_run(void (*body)(void *arg), void *arg, int timeout_ms, struct child_result *result)
{
	struct child child = {.out = -1, .err = -1, .result = result};
	int ret;

	memset(result, 0, sizeof(*result));
	ret = child_start(body, arg, &child);
	if (!ret)
		ret = child_end(&child, child_read(&child, timeout_ms));
	end_close(&child.out);
	end_close(&child.err);
	result->complaint[strcspn(result->complaint, "\n")] = '\0';
	if (ret) {
		free(result->output);
		result->output = NULL;
	}
	return ret;
}

/* ---- programs --------------------------------------------------------------------------- */

#define NOT_FOUND_STATUS 127

/* In the child. */
static void program_become(void *arg)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin"};
	char *const *argv = arg;
	char path[256];
	size_t i;

	execvp(argv[0], argv);
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], argv[0]);
		execv(path, argv);
	}
	_exit(NOT_FOUND_STATUS);
}

static int status_judge(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND_STATUS)
		return -ENOENT;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

static const char *error_words(int error)
{
	if (error == -ENOENT)
		return "not installed";
	return error == -ECHILD ? "it failed" : strerror(-error);
}

int run_program(char *const argv[], int timeout_ms, char **output, char *complaint)
{
	struct child_result result;
	int ret = child_run(program_become, (void *)argv, timeout_ms, &result);

	if (!ret)
		ret = status_judge(result.status);
	snprintf(complaint, RUN_PROGRAM_COMPLAINT_MAX, "%s",
		 ret && !*result.complaint ? error_words(ret) : result.complaint);
	if (ret)
		free(result.output);
	else
		*output = result.output;
	return ret;
}
