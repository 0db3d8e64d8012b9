/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - what descriptors stand for. Between the files of this folder. */
#ifndef TESTS_WORLD_KERNEL_H
#define TESTS_WORLD_KERNEL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "world.h"

/* Descriptors of this kernel; those below are the real one's. */
#define WORLD_FD_FIRST 1024

/* A function of the C library's under another name: the header's has a union for addresses. */
#define WORLD_AS(name) __asm__(#name)

/* The C library's own function. */
#define WORLD_REAL(name) ((__typeof__(&name))real_##name())
#define WORLD_REAL_OF(name)                                                                        \
	static void *real_##name(void)                                                             \
	{                                                                                          \
		static void *found;                                                                \
                                                                                                   \
		if (!found)                                                                        \
			found = dlsym(RTLD_NEXT, #name);                                           \
		return found;                                                                      \
	}

/*
 * What a kind of file does. Each function returns as the system call, with a negative errno; NULL
 * where the kind has no such call.
 */
struct world_file_kind {
	const char *name;
	uint32_t (*events)(struct world_file *file); /* EPOLLIN and so on */
	ssize_t (*receive)(struct world_file *file, struct msghdr *message, int flags);
	ssize_t (*send)(struct world_file *file, const struct msghdr *message, int flags);
	void (*close)(struct world_file *file); /* frees it */
	int (*bind)(struct world_file *file, const struct sockaddr *name, socklen_t len);
	int (*listen)(struct world_file *file, int backlog);
	int (*accept)(struct world_file *file, struct world_file **accepted);
	int (*connect)(struct world_file *file, const struct sockaddr *name, socklen_t len);
	int (*shutdown)(struct world_file *file);
	int (*name_of)(struct world_file *file, bool peer, struct sockaddr_in *name);
	int (*get)(struct world_file *file, int level, int option, void *value, socklen_t *len);
	int (*set)(struct world_file *file, int level, int option, const void *value);
	int (*ioctl)(struct world_file *file, unsigned long request, void *arg);
};

/* The head of each file. */
struct world_file {
	const struct world_file_kind *kind;
	struct world_node *node;
	int references; /* descriptors */
	bool nonblocking;
	uint64_t limit_ns; /* SO_RCVTIMEO; 0: none */
	uint64_t cookie;
};

/** Zeroed, with this head and no descriptor yet; @size: of what the head begins. */
void *world_file_new(const struct world_file_kind *kind, struct world_node *node, size_t size);

/** A close() for files without more. */
void world_file_free(struct world_file *file);

/** A descriptor of the acting process for the file; -EMFILE closes the file. */
int world_file_open(struct world_file *file);

/** What a call returns for a negative errno, and errno. */
int world_result(ssize_t ret);

/** The file of a descriptor of the acting process; NULL: it is the real kernel's, or none. */
struct world_file *world_file_of(int fd);

/** All descriptors of a process that has ended. */
void world_files_close(struct world_node *node);

/** Waits, unless the file or the flags say not to, until one of @events or an error is there. */
int world_file_await(struct world_file *file, uint32_t events, int flags);

/** The bytes of a message, from its first to its last piece. */
size_t world_message_size(const struct msghdr *message);
size_t world_message_put(struct msghdr *message, const void *bytes, size_t size);

/** Sockets: TCP, UDP, netlink's for news of links, and one from which nothing ever comes. */
struct world_file *world_tcp_new(struct world_node *node);
struct world_file *world_datagram_new(struct world_node *node);
struct world_file *world_news_new(struct world_node *node);
struct world_file *world_quiet_new(struct world_node *node);

/** A descriptor of the folder of the acting process's descriptors, or -1. */
int world_folder_open(void);

/**
 * Sends a packet of @size bytes from this NIC over its cable. @arrive is called once, at the time
 * of arrival; its @arrived is 0 if the packet was lost. It frees @arg.
 */
void world_packet_send(const struct world_nic *nic, size_t size,
		       void (*arrive)(void *arg, uint64_t arrived), void *arg);

/** The NIC of a node with this address; NULL: none. */
struct world_nic *world_nic_find(struct world_node *node, struct in_addr addr);

/** The NIC by which a packet from one address leaves for the other; NULL: no route. */
struct world_nic *world_route(struct world_node *node, struct in_addr from, struct in_addr to);

/** At the other end of the cable; lo is its own. */
struct world_nic *world_nic_other(const struct world_nic *nic, struct world_node *node,
				  struct world_node **other);

/** True if the carrier is there. */
bool world_nic_runs(const struct world_nic *nic);

/** Tells the process that a link has changed. */
void world_links_changed(struct world_node *node);

#endif
