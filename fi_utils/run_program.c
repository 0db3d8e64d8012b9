/* SPDX-License-Identifier: Apache-2.0 */
/* run_program.c - runs another program and reads what it prints. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mesh/base/clock.h>

#include "run_program.h"

#define NOT_FOUND_STATUS 127
#define CHUNK 65536

struct child {
	pid_t pid;
	int out, err; /* read ends; -1 once closed */
	char *text;
	size_t len;
	char *complaint;
	size_t complaint_len;
};

/* Never returns. */
__attribute__((noreturn)) static void child_exec(char *const argv[], int out, int err)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin"};
	char path[256];
	size_t i;
	int null;

	/* Whatever ends us, Ctrl-C too, ends it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	execvp(argv[0], argv);
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], argv[0]);
		execv(path, argv);
	}
	_exit(NOT_FOUND_STATUS);
}

static int child_start(char *const argv[], struct child *child)
{
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(err, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return -errno;
	}
	child->pid = fork();
	if (!child->pid)
		child_exec(argv, out[1], err[1]);
	close(out[1]);
	close(err[1]);
	child->out = out[0];
	child->err = err[0];
	return child->pid < 0 ? -errno : 0;
}

static void end_close(int *fd)
{
	close(*fd);
	*fd = -1;
}

/* Returns 0, or -EOVERFLOW, -ENOMEM. */
static int output_read(struct child *child)
{
	char *grown = realloc(child->text, child->len + CHUNK + 1);
	ssize_t n;

	if (!grown)
		return -ENOMEM;
	child->text = grown;
	n = read(child->out, grown + child->len, CHUNK);
	if (n <= 0)
		end_close(&child->out);
	else
		child->len += (size_t)n;
	grown[child->len] = '\0';
	return child->len > RUN_PROGRAM_OUTPUT_MAX ? -EOVERFLOW : 0;
}

static void complaint_read(struct child *child)
{
	char rest[512];
	ssize_t n = read(child->err, rest, sizeof(rest));
	size_t room = RUN_PROGRAM_COMPLAINT_MAX - 1 - child->complaint_len;

	if (n <= 0) {
		end_close(&child->err);
		return;
	}
	room = (size_t)n < room ? (size_t)n : room;
	memcpy(child->complaint + child->complaint_len, rest, room);
	child->complaint_len += room;
	child->complaint[child->complaint_len] = '\0';
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
		if (poll(fds, 2, (int)(end - now)) < 0 && errno != EINTR)
			return -errno;
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
	int status;

	if (error)
		kill(child->pid, SIGKILL);
	while (waitpid(child->pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (error)
		return error;
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND_STATUS)
		return -ENOENT;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

int run_program(char *const argv[], int timeout_ms, char **output, char *complaint)
{
	struct child child = {.out = -1, .err = -1, .complaint = complaint};
	int ret;

	*complaint = '\0';
	ret = child_start(argv, &child);
	if (!ret)
		ret = child_end(&child, child_read(&child, timeout_ms));
	if (child.out >= 0)
		close(child.out);
	if (child.err >= 0)
		close(child.err);
	complaint[strcspn(complaint, "\n")] = '\0';
	if (!ret && !child.text)
		child.text = strdup("");
	if (!ret && !child.text)
		ret = -ENOMEM;
	if (ret) {
		free(child.text);
		if (!*complaint)
			snprintf(complaint, RUN_PROGRAM_COMPLAINT_MAX, "%s",
				 ret == -ENOENT	  ? "not installed"
				 : ret == -ECHILD ? "it failed"
						  : strerror(-ret));
		return ret;
	}
	*output = child.text;
	return 0;
}
