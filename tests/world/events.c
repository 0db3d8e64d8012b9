/* SPDX-License-Identifier: Apache-2.0 */
/* events.c - epoll, poll, eventfd and socketpair. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kernel.h"

WORLD_REAL_OF(poll)

/* What ppoll() is with _FORTIFY_SOURCE. */
int world_ppoll_chk(struct pollfd *fds, nfds_t num, const struct timespec *timeout,
		    const sigset_t *mask, size_t size) WORLD_AS(__ppoll_chk);

/* ---- eventfd, and ends of socketpair() ------------------------------------------------------ */

struct eventfd_file {
	struct world_file file;
	uint64_t count;
};

static uint32_t eventfd_events(struct world_file *file)
{
	return (((struct eventfd_file *)file)->count ? EPOLLIN : 0) | EPOLLOUT;
}

static ssize_t eventfd_receive(struct world_file *file, struct msghdr *message, int flags)
{
	struct eventfd_file *eventfd = (struct eventfd_file *)file;
	int ret = world_file_await(file, EPOLLIN, flags);

	if (ret)
		return ret;
	world_message_put(message, &eventfd->count, sizeof(eventfd->count));
	eventfd->count = 0;
	return sizeof(eventfd->count);
}

static ssize_t eventfd_send(struct world_file *file, const struct msghdr *message, int flags)
{
	uint64_t add;

	memcpy(&add, message->msg_iov[0].iov_base, sizeof(add));
	((struct eventfd_file *)file)->count += add;
	return sizeof(add);
}

static const struct world_file_kind eventfd_kind = {
	.name = "anon_inode:[eventfd]",
	.events = eventfd_events,
	.receive = eventfd_receive,
	.send = eventfd_send,
	.close = world_file_free,
};

int eventfd(unsigned int count, int flags)
{
	struct eventfd_file *file = world_file_new(&eventfd_kind, world_acting(), sizeof(*file));

	file->count = count;
	file->file.nonblocking = flags & O_NONBLOCK;
	return world_result(world_file_open(&file->file));
}

#define PAIR_BYTES 4096

struct pair_file {
	struct world_file file;
	struct pair_file *other;
	size_t size;
	uint8_t bytes[PAIR_BYTES];
};

static uint32_t pair_events(struct world_file *file)
{
	struct pair_file *pair = (struct pair_file *)file;

	return (pair->size || !pair->other ? EPOLLIN : 0) |
	       (pair->other && pair->other->size < PAIR_BYTES ? EPOLLOUT : 0);
}

static ssize_t pair_receive(struct world_file *file, struct msghdr *message, int flags)
{
	struct pair_file *pair = (struct pair_file *)file;
	int ret = world_file_await(file, EPOLLIN, flags);
	size_t size;

	if (ret)
		return ret;
	size = world_message_put(message, pair->bytes, pair->size);
	pair->size -= size;
	memmove(pair->bytes, pair->bytes + size, pair->size);
	return (ssize_t)size;
}

static ssize_t pair_send(struct world_file *file, const struct msghdr *message, int flags)
{
	struct pair_file *other = ((struct pair_file *)file)->other;
	size_t size = message->msg_iov[0].iov_len;

	if (!other)
		return -EPIPE;
	if (size > PAIR_BYTES - other->size)
		size = PAIR_BYTES - other->size;
	if (!size)
		return -EAGAIN;
	memcpy(other->bytes + other->size, message->msg_iov[0].iov_base, size);
	other->size += size;
	return (ssize_t)size;
}

static void pair_close(struct world_file *file)
{
	struct pair_file *pair = (struct pair_file *)file;

	if (pair->other)
		pair->other->other = NULL;
	free(pair);
}

static const struct world_file_kind pair_kind = {
	.name = "socket:[pair]",
	.events = pair_events,
	.receive = pair_receive,
	.send = pair_send,
	.close = pair_close,
};

int socketpair(int domain, int type, int protocol, int fds[2])
{
	struct pair_file *a = world_file_new(&pair_kind, world_acting(), sizeof(*a));
	struct pair_file *b = world_file_new(&pair_kind, world_acting(), sizeof(*b));

	a->other = b;
	b->other = a;
	a->file.nonblocking = b->file.nonblocking = type & SOCK_NONBLOCK;
	fds[0] = world_file_open(&a->file);
	if (fds[0] < 0) {
		b->other = NULL;
		world_file_free(&b->file);
		return world_result(fds[0]);
	}
	fds[1] = world_file_open(&b->file);
	if (fds[1] >= 0)
		return 0;
	close(fds[0]);
	return world_result(-EMFILE);
}

/* ---- epoll and poll ------------------------------------------------------------------------ */

#define WATCHES_MAX 1024

struct epoll_watch {
	int fd;
	uint64_t cookie; /* of the file that the descriptor stood for */
	struct epoll_event event;
};

struct epoll_file {
	struct world_file file;
	struct epoll_watch watches[WATCHES_MAX];
	int num;
	int next; /* where the next look begins */
};

/* A file that has been closed is no longer watched. */
static uint32_t watch_events(struct epoll_file *epoll, int i)
{
	struct epoll_watch *watch = &epoll->watches[i];
	struct world_file *file = epoll->file.node->files[watch->fd - WORLD_FD_FIRST];

	if (!file || file->cookie != watch->cookie)
		return 0;
	return file->kind->events(file) & (watch->event.events | EPOLLERR | EPOLLHUP);
}

static uint32_t epoll_events(struct world_file *file)
{
	struct epoll_file *epoll = (struct epoll_file *)file;

	for (int i = 0; i < epoll->num; i++) {
		if (watch_events(epoll, i))
			return EPOLLIN;
	}
	return 0;
}

static const struct world_file_kind epoll_kind = {
	.name = "anon_inode:[eventpoll]",
	.events = epoll_events,
	.close = world_file_free,
};

int epoll_create1(int flags)
{
	struct epoll_file *file = world_file_new(&epoll_kind, world_acting(), sizeof(*file));

	return world_result(world_file_open(&file->file));
}

int epoll_create(int size)
{
	return epoll_create1(0);
}

static struct epoll_file *epoll_of(int fd)
{
	struct world_file *file = world_file_of(fd);

	return file && file->kind == &epoll_kind ? (struct epoll_file *)file : NULL;
}

static struct epoll_watch *watch_find(struct epoll_file *epoll, int fd, uint64_t cookie)
{
	for (int i = 0; i < epoll->num; i++) {
		if (epoll->watches[i].fd == fd && epoll->watches[i].cookie == cookie)
			return &epoll->watches[i];
	}
	return NULL;
}

/* Those of closed files make room. */
static void watches_clean(struct epoll_file *epoll)
{
	struct world_file *file;
	int i, kept = 0;

	for (i = 0; i < epoll->num; i++) {
		file = epoll->file.node->files[epoll->watches[i].fd - WORLD_FD_FIRST];
		if (file && file->cookie == epoll->watches[i].cookie)
			epoll->watches[kept++] = epoll->watches[i];
	}
	epoll->num = kept;
}

int epoll_ctl(int fd, int what, int of, struct epoll_event *event)
{
	struct epoll_file *epoll = epoll_of(fd);
	struct world_file *file = world_file_of(of);
	struct epoll_watch *watch;

	if (!epoll || !file)
		return world_result(-EBADF);
	watches_clean(epoll);
	watch = watch_find(epoll, of, file->cookie);
	if ((what == EPOLL_CTL_ADD) == !!watch)
		return world_result(watch ? -EEXIST : -ENOENT);
	if (what == EPOLL_CTL_DEL) {
		*watch = epoll->watches[--epoll->num];
		return 0;
	}
	if (!watch) {
		if (epoll->num == WATCHES_MAX)
			world_die("epoll_ctl: too many");
		watch = &epoll->watches[epoll->num++];
	}
	if (event->events & ~(uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
		world_die("epoll_ctl: events %x", event->events);
	*watch = (struct epoll_watch){of, file->cookie, *event};
	return 0;
}

static uint64_t until(int timeout_ms)
{
	return timeout_ms < 0 ? WORLD_NEVER : world.now_ns + (uint64_t)timeout_ms * WORLD_MS;
}

static bool epoll_is_ready(void *arg)
{
	return epoll_events(arg);
}

int epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
	struct epoll_file *epoll;
	int i, at, num = 0, seen;
	uint32_t ready;

	world_enter();
	epoll = epoll_of(fd);
	if (!epoll)
		return world_result(-EBADF);
	if (timeout_ms && !epoll_events(&epoll->file))
		world_wait(epoll_is_ready, epoll, until(timeout_ms));
	for (i = 0, seen = epoll->num; i < seen && num < room; i++) {
		at = (epoll->next + i) % seen;
		ready = watch_events(epoll, at);
		if (ready)
			events[num++] = (struct epoll_event){ready, epoll->watches[at].event.data};
	}
	epoll->next = seen ? (epoll->next + i) % seen : 0;
	return num;
}

static int polled_look(struct pollfd *fds, nfds_t num)
{
	struct world_file *file;
	int ready = 0;
	nfds_t i;

	for (i = 0; i < num; i++) {
		fds[i].revents = 0;
		if (fds[i].fd < 0)
			continue;
		file = world_file_of(fds[i].fd);
		if (!file)
			fds[i].revents = POLLNVAL;
		else /* the numbers of poll() are those of epoll */
			fds[i].revents = (short)(file->kind->events(file) &
						 ((uint32_t)fds[i].events | EPOLLERR | EPOLLHUP));
		ready += !!fds[i].revents;
	}
	return ready;
}

/* Whichever thread looks acts for the one that waits: a descriptor belongs to a process. */
struct poll_wait {
	struct world_node *node;
	struct pollfd *fds;
	nfds_t num;
};

static bool polled_ready(void *arg)
{
	struct poll_wait *wait = arg;
	struct world_node *acting = world_acting();
	bool ready;

	world_act_for(wait->node);
	ready = polled_look(wait->fds, wait->num);
	world_act_for(acting);
	return ready;
}

static int polled_await(struct pollfd *fds, nfds_t num, uint64_t until_ns)
{
	struct poll_wait wait = {world_acting(), fds, num};

	world_enter();
	if (!polled_look(fds, num) && until_ns > world.now_ns)
		world_wait(polled_ready, &wait, until_ns);
	return polled_look(fds, num);
}

int poll(struct pollfd *fds, nfds_t num, int timeout_ms)
{
	if (!world_acting())
		return WORLD_REAL(poll)(fds, num, timeout_ms);
	return polled_await(fds, num, until(timeout_ms));
}

int ppoll(struct pollfd *fds, nfds_t num, const struct timespec *timeout, const sigset_t *mask)
{
	return polled_await(fds, num,
			    timeout ? world.now_ns + (uint64_t)timeout->tv_sec * WORLD_S +
					      (uint64_t)timeout->tv_nsec
				    : WORLD_NEVER);
}

int world_ppoll_chk(struct pollfd *fds, nfds_t num, const struct timespec *timeout,
		    const sigset_t *mask, size_t size)
{
	return ppoll(fds, num, timeout, mask);
}
