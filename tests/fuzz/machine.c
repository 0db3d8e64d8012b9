/* SPDX-License-Identifier: Apache-2.0 */
/* machine.c - the machine of fuzz targets that run whole parts of the plugin. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "check.h"
#include "machine.h"

/* Looks at the clock that closing may take. */
#define CLOSE_LOOKS 20000
/* Nanoseconds between two looks, and while something closes. */
#define STEP_NS 1000
#define CLOSE_STEP_NS 10000000

struct fuzz_machine machine;

ssize_t __real_send(int fd, const void *bytes, size_t size, int flags);

/* Closing must end, whatever has come: it may wait, so time passes fast. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	machine.now_ns += machine.step_ns;
	machine.looks++;
	check(!machine.closing || machine.looks < CLOSE_LOOKS);
	now->tv_sec = (time_t)(machine.now_ns / 1000000000);
	now->tv_nsec = (long)(machine.now_ns % 1000000000);
	return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
	machine.now_ns += (uint64_t)time->tv_sec * 1000000000 + (uint64_t)time->tv_nsec;
	return 0;
}

/* There is no other thread. */
int __wrap_sched_yield(void)
{
	return 0;
}

/* A target reads the peers' ends of all control connections only after one of these. */
ssize_t __wrap_send(int fd, const void *bytes, size_t size, int flags)
{
	machine.said = true;
	return __real_send(fd, bytes, size, flags);
}

int __wrap_mesh_random(void *bytes, size_t size)
{
	uint8_t *to = bytes;

	for (; size; size--)
		*to++ = (uint8_t)((machine.random = machine.random * 1103515245u + 12345u) >> 16);
	return 0;
}

/* The links come back when a step says so. */
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	errno = ENETUNREACH;
	return -1;
}

void machine_begin(const uint8_t *data, size_t size)
{
	machine = (struct fuzz_machine){
		.at = data, .left = size, .now_ns = 1000000000000, .step_ns = STEP_NS};
}

void machine_hurry(bool fast)
{
	machine.closing = fast;
	machine.looks = 0;
	machine.step_ns = fast ? CLOSE_STEP_NS : STEP_NS;
}

uint32_t take(size_t bytes)
{
	uint32_t value = 0;

	if (bytes > machine.left)
		bytes = machine.left;
	memcpy(&value, machine.at, bytes);
	machine.at += bytes;
	machine.left -= bytes;
	return value;
}

void take_bytes(void *to, size_t bytes)
{
	if (bytes > machine.left)
		bytes = machine.left;
	memcpy(to, machine.at, bytes);
	machine.at += bytes;
	machine.left -= bytes;
}

/*
 * Freed memory is in quarantine for longer than an input runs, and then used again: with ASan's
 * 256 MB each input would get pages that the kernel has to clear. Large blocks are poisoned in
 * place for the same reason.
 */
const char *__asan_default_options(void)
{
	return "quarantine_size_mb=16:clear_shadow_mmap_threshold=1048576";
}

/* ---- operations end ------------------------------------------------------------------------ */

void post_end(struct fake_post *post, bool fails)
{
	if (!post->context)
		return; /* it has ended */
	if (fails) {
		fake_complete_error(post->context, FI_ECONNRESET);
		fake.completions[fake.completed - 1].domain = post->domain;
	} else {
		fake_complete(post);
	}
	post->context = NULL;
}

void posts_end(struct fake_posts *posts, bool fails)
{
	for (int i = 0; i < posts->num; i++)
		post_end(&posts->posts[i], fails);
}

/* What has ended, and was read, makes room for more. */
void posts_forget(struct fake_posts *posts, int *seen)
{
	int i, kept = 0;

	for (i = 0; i < posts->num; i++) {
		if (posts->posts[i].context)
			posts->posts[kept++] = posts->posts[i];
	}
	posts->num = *seen = kept;
}
