/* SPDX-License-Identifier: Apache-2.0 */
/* test_descriptors.c - a lack of file descriptors, and those that a forked child does not have. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/descriptors.h"

#include "unit.h"

#define LIMIT 64

TEST(exhausted)
{
	struct rlimit before, low;
	int fds[LIMIT], n = 0;

	assert_false(mesh_descriptors_exhausted());
	assert_string_equal(mesh_descriptors_hint(), "");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	low = before;
	low.rlim_cur = LIMIT;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	while (n < LIMIT && (fds[n] = eventfd(0, 0)) >= 0)
		n++;
	errno = EDOM;
	assert_true(mesh_descriptors_exhausted());
	assert_int_equal(errno, EDOM); /* the caller is explaining another error */
	assert_string_not_equal(mesh_descriptors_hint(), "");
	while (n--)
		close(fds[n]);
	/* It gave back what it tried with. */
	assert_false(mesh_descriptors_exhausted());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* Enough for the list to grow several times. */
#define MANY 20

static int file_open(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* How many of these a child has. */
static int open_in_child(const int *fds, int count)
{
	int status, i, n = 0;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		for (i = 0; i < count; i++)
			n += is_open(fds[i]);
		_exit(n);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(hidden)
{
	int hidden[MANY], open[MANY], i;

	for (i = 0; i < MANY; i++) {
		hidden[i] = mesh_descriptor_hide(file_open());
		open[i] = file_open();
	}
	assert_int_equal(open_in_child(hidden, MANY), 0);
	assert_int_equal(open_in_child(open, MANY), MANY);
	for (i = 0; i < MANY; i++) { /* the process itself keeps them */
		assert_true(is_open(hidden[i]));
		mesh_descriptor_close(hidden[i]);
		assert_false(is_open(hidden[i]));
		close(open[i]);
	}
}

/* The number of a closed one may be another file's next. */
TEST(number_reused)
{
	int first = mesh_descriptor_hide(file_open()), second = mesh_descriptor_hide(file_open());
	int again;

	mesh_descriptor_close(first);
	again = file_open();
	assert_int_equal(again, first);
	assert_int_equal(open_in_child(&again, 1), 1);
	assert_int_equal(open_in_child(&second, 1), 0);
	close(again);
	mesh_descriptor_close(second);
}

/* The purpose: the other end of a pipe sees that the process has closed it, despite the child. */
TEST(end_is_seen)
{
	int data[2], life[2], status;
	pid_t child;
	char byte;

	assert_int_equal(pipe2(data, O_CLOEXEC), 0);
	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	mesh_descriptor_hide(data[1]);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(life[1]);
		_exit(read(life[0], &byte, 1) != 0); /* until the parent closes it */
	}
	mesh_descriptor_close(data[1]);
	assert_int_equal(read(data[0], &byte, 1), 0);
	close(life[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(life[0]);
	close(data[0]);
}

TEST(none)
{
	assert_int_equal(mesh_descriptor_hide(-1), -1);
	errno = EDOM;
	mesh_descriptor_close(-1);
	assert_int_equal(errno, EDOM);
}
