/* SPDX-License-Identifier: Apache-2.0 */
/* interrupt.c - makes the first Ctrl-C visible to poll(). */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#include "common/interrupt.h"

/* Global, because a signal handler has no argument. */
static int interrupt_fd = -1;
static volatile sig_atomic_t interrupt_seen;

static void on_signal(int number)
{
	const uint64_t one = 1;
	int saved_errno = errno;

	(void)number;
	interrupt_seen = 1;
	if (write(interrupt_fd, &one, sizeof(one)) < 0)
		interrupt_seen = 1; /* the flag has to do */
	errno = saved_errno;
}

void interrupt_catch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
	size_t i;

	if (interrupt_fd < 0)
		interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (interrupt_fd < 0)
		return;
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
}

bool interrupt_happened(void)
{
	return interrupt_seen;
}

int interrupt_poll(struct pollfd *fds, int num, uint64_t deadline_ms)
{
	uint64_t now, left;

	fds[num] = (struct pollfd){.fd = interrupt_fd, .events = POLLIN};
	for (;;) {
		if (interrupt_seen)
			return -EINTR;
		now = mesh_clock_ms();
		if (now >= deadline_ms)
			return -ETIMEDOUT;
		left = deadline_ms - now;
		/* After an error of poll() itself, trying again is the only remedy. */
		if (poll(fds, (nfds_t)num + 1, left > INT_MAX ? INT_MAX : (int)left) > 0 &&
		    !fds[num].revents)
			return 0;
	}
}

int interrupt_wait(int fd, short events, uint64_t deadline_ms)
{
	struct pollfd fds[2] = {{.fd = fd, .events = events}};

	return interrupt_poll(fds, 1, deadline_ms);
}
