/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - the bytes of a frame, buffered reading and writing, queues. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "clock.h"
#include "frame.h"

#define FRAME_MAGIC 0x66707031u /* "fpp1" */
#define FRAME_HEADER 20
#define LINK_READ 65536

static void *need_memory(void *memory)
{
	if (!memory) {
		fputs("fabric_pingpong: out of memory\n", stderr);
		exit(1);
	}
	return memory;
}

void frame_put_u32(uint8_t *at, uint32_t value)
{
	uint32_t big = htonl(value);

	memcpy(at, &big, sizeof(big));
}

uint32_t frame_get_u32(const uint8_t *at)
{
	uint32_t big;

	memcpy(&big, at, sizeof(big));
	return ntohl(big);
}

void frame_put_u64(uint8_t *at, uint64_t value)
{
	frame_put_u32(at, (uint32_t)(value >> 32));
	frame_put_u32(at + 4, (uint32_t)value);
}

uint64_t frame_get_u64(const uint8_t *at)
{
	return (uint64_t)frame_get_u32(at) << 32 | frame_get_u32(at + 4);
}

struct frame *frame_new(enum frame_type type, uint16_t from, uint16_t to, uint32_t pair,
			const void *body, size_t size)
{
	struct frame *frame = need_memory(calloc(1, sizeof(*frame) + size + 1));

	frame->type = (uint16_t)type;
	frame->from = from;
	frame->to = to;
	frame->pair = pair;
	frame->size = (uint32_t)size;
	if (body && size)
		memcpy(frame->body, body, size);
	return frame;
}

struct frame *frame_new_text(enum frame_type type, uint16_t from, uint16_t to, uint32_t pair,
			     const char *text)
{
	return frame_new(type, from, to, pair, text, strlen(text));
}

void link_open(struct link *link, int fd)
{
	memset(link, 0, sizeof(*link));
	link->fd = fd;
	link->heard_ns = now_ns();
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void link_close(struct link *link)
{
	if (link->fd >= 0)
		close(link->fd);
	free(link->in);
	free(link->out);
	memset(link, 0, sizeof(*link));
	link->fd = -1;
}

static void reserve(uint8_t **buffer, size_t *capacity, size_t size)
{
	if (size <= *capacity)
		return;
	*capacity = size + LINK_READ;
	*buffer = need_memory(realloc(*buffer, *capacity));
}

void link_send(struct link *link, const struct frame *frame)
{
	uint8_t *at;

	if (link->fd < 0)
		return;
	if (link->out_sent == link->out_size)
		link->out_sent = link->out_size = 0;
	reserve(&link->out, &link->out_capacity, link->out_size + FRAME_HEADER + frame->size);
	at = link->out + link->out_size;
	frame_put_u32(at, FRAME_MAGIC);
	frame_put_u32(at + 4, frame->type);
	frame_put_u32(at + 8, (uint32_t)frame->from << 16 | frame->to);
	frame_put_u32(at + 12, frame->pair);
	frame_put_u32(at + 16, frame->size);
	memcpy(at + FRAME_HEADER, frame->body, frame->size);
	link->out_size += FRAME_HEADER + frame->size;
}

int link_flush(struct link *link)
{
	ssize_t n;

	while (link->fd >= 0 && link->out_sent < link->out_size) {
		n = send(link->fd, link->out + link->out_sent, link->out_size - link->out_sent,
			 MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		link->out_sent += (size_t)n;
	}
	return 0;
}

bool link_pending(const struct link *link)
{
	return link->fd >= 0 && link->out_sent < link->out_size;
}

int link_fill(struct link *link)
{
	ssize_t n;

	for (;;) {
		reserve(&link->in, &link->in_capacity, link->in_size + LINK_READ);
		n = recv(link->fd, link->in + link->in_size, LINK_READ, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (!n)
			return -ECONNRESET;
		link->in_size += (size_t)n;
		link->heard_ns = now_ns();
		if (link->in_size > FRAME_BODY_MAX)
			return 0;
	}
}

/* Where the words of a frame from another rank begin, or NULL. */
static char *words_of(struct frame *frame)
{
	switch (frame->type) {
	case FRAME_HELLO:
		return frame->size > 8 ? (char *)frame->body + 8 : NULL;
	case FRAME_LOADED:
	case FRAME_BYE:
	case FRAME_FAIL:
	case FRAME_ABORT:
	case FRAME_PAIR_FAIL:
		return (char *)frame->body;
	default:
		return NULL;
	}
}

int link_next(struct link *link, struct frame **frame)
{
	uint32_t type, ranks, size;
	char *words;

	*frame = NULL;
	if (link->in_size < FRAME_HEADER)
		return 0;
	type = frame_get_u32(link->in + 4);
	ranks = frame_get_u32(link->in + 8);
	size = frame_get_u32(link->in + 16);
	if (frame_get_u32(link->in) != FRAME_MAGIC || !type || type >= FRAME_TYPES ||
	    size > FRAME_BODY_MAX)
		return -EPROTO;
	if (link->in_size < FRAME_HEADER + size)
		return 0;
	*frame = frame_new((enum frame_type)type, (uint16_t)(ranks >> 16), (uint16_t)ranks,
			   frame_get_u32(link->in + 12), link->in + FRAME_HEADER, size);
	words = words_of(*frame);
	if (words)
		mesh_text_clean(words);
	link->in_size -= FRAME_HEADER + size;
	memmove(link->in, link->in + FRAME_HEADER + size, link->in_size);
	return 0;
}

int mailbox_init(struct mailbox *box, bool with_event)
{
	pthread_condattr_t attributes;

	memset(box, 0, sizeof(*box));
	box->event = with_event ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
	if (with_event && box->event < 0)
		return -errno;
	pthread_mutex_init(&box->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&box->filled, &attributes);
	pthread_condattr_destroy(&attributes);
	box->last = &box->first;
	return 0;
}

void mailbox_destroy(struct mailbox *box)
{
	struct frame *frame;

	while ((frame = mailbox_take(box)))
		free(frame);
	if (box->event >= 0)
		close(box->event);
	pthread_cond_destroy(&box->filled);
	pthread_mutex_destroy(&box->lock);
}

void mailbox_put(struct mailbox *box, struct frame *frame)
{
	uint64_t one = 1;

	pthread_mutex_lock(&box->lock);
	frame->next = NULL;
	*box->last = frame;
	box->last = &frame->next;
	atomic_fetch_add(&box->count, 1);
	pthread_cond_signal(&box->filled);
	pthread_mutex_unlock(&box->lock);
	/* The counter cannot overflow, and a full one is readable anyway. */
	if (box->event >= 0 && write(box->event, &one, sizeof(one)) < 0)
		return;
}

/* The lock is held. */
static struct frame *take_locked(struct mailbox *box)
{
	struct frame *frame = box->first;

	if (!frame)
		return NULL;
	box->first = frame->next;
	if (!box->first)
		box->last = &box->first;
	atomic_fetch_sub(&box->count, 1);
	return frame;
}

struct frame *mailbox_take(struct mailbox *box)
{
	struct frame *frame;

	if (!atomic_load_explicit(&box->count, memory_order_relaxed))
		return NULL;
	pthread_mutex_lock(&box->lock);
	frame = take_locked(box);
	pthread_mutex_unlock(&box->lock);
	return frame;
}

void mailbox_sleep(struct mailbox *box, int timeout_ms)
{
	uint64_t until_ns = now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	struct timespec until = {
		.tv_sec = (time_t)(until_ns / NS_PER_S),
		.tv_nsec = (long)(until_ns % NS_PER_S),
	};
	int rc = 0;

	pthread_mutex_lock(&box->lock);
	while (!box->first && !rc)
		rc = pthread_cond_timedwait(&box->filled, &box->lock, &until);
	pthread_mutex_unlock(&box->lock);
}

struct frame *mailbox_wait(struct mailbox *box, int timeout_ms)
{
	mailbox_sleep(box, timeout_ms);
	return mailbox_take(box);
}
