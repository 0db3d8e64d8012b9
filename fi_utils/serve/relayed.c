/* SPDX-License-Identifier: Apache-2.0 */
/* relayed.c - `fi_mesh serve` starts a child for a measurement over relays. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer/wire.h"
#include "serve/relayed.h"
#include "serve/state.h"

bool serve_relayed_runs(struct serve *serve)
{
	if (serve->relayed_pid > 0 && waitpid(serve->relayed_pid, NULL, WNOHANG))
		serve->relayed_pid = 0;
	return serve->relayed_pid > 0;
}

/* In the child: other threads held what locks they held, so only system calls are made. */
__attribute__((noreturn)) static void child_become(int fd, char *const *argv)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (!fcntl(fd, F_SETFD, 0))
		execv("/proc/self/exe", argv);
	_exit(127);
}

int serve_relayed_begin(struct serve *serve, const struct serve_client *client,
			const struct mesh_check_frame *asked)
{
	char fd[16], number[16], job[32], program[] = "fi_mesh", command[] = "serve-relayed";
	char *const argv[] = {program, command, fd, number, job, NULL};
	pid_t pid;

	/* What was read, or is to be written, is in this process. */
	if (client->stream.in_size != client->stream.in_taken || client->stream.out_size)
		return -EPROTO;
	snprintf(fd, sizeof(fd), "%d", client->stream.fd);
	snprintf(number, sizeof(number), "%" PRIu32, asked->header.number);
	snprintf(job, sizeof(job), "%" PRIu64, asked->relayed.job);
	pid = fork();
	if (!pid)
		child_become(client->stream.fd, argv);
	if (pid < 0)
		return -errno;
	serve->relayed_pid = pid;
	return 0;
}
