/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - the simulated kernel's files, and its network below sockets. Internal. */
#ifndef TESTS_WORLD_KERNEL_H
#define TESTS_WORLD_KERNEL_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "world.h"

/* The simulated kernel's descriptors begin here; lower ones belong to the real kernel. */
#define WORLD_FD_FIRST 1024

/*
 * Defines a function of the C library under another C name, where its header declares it with
 * another type than ours.
 */
#define WORLD_AS(name) __asm__(#name)

/* The C library's function of which ours has the name, for threads outside of the simulation. */
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

/* The first member of each file's own struct. */
struct world_file {
	const struct world_file_kind *kind;
	struct world_node *node;
	int references; /* how many descriptors stand for it */
	bool nonblocking;
	bool by_provider;  /* libfabric has accepted it: the plugin uses accept4() */
	uint64_t limit_ns; /* SO_RCVTIMEO; 0: none */
	uint64_t cookie;   /* unique: SO_COOKIE */
};

/** Allocates a file of @size bytes, zeroed but for its first member, without a descriptor. */
void *world_file_new(const struct world_file_kind *kind, struct world_node *node, size_t size);

/** The close function of a kind that holds nothing else. */
void world_file_free(struct world_file *file);

/** Opens a descriptor for the file. On -EMFILE, a file without another descriptor is closed. */
int world_file_open(struct world_file *file);

/** Turns a negative errno into -1 and errno, as system calls return it. */
int world_result(ssize_t ret);

/** The file of the acting process's descriptor; NULL: the real kernel's, or not open. */
struct world_file *world_file_of(int fd);

/** Closes all descriptors of a process that has ended. */
void world_files_close(struct world_node *node);

/** Waits for @events, an error or a hang-up. -EAGAIN: nonblocking, or SO_RCVTIMEO is over. */
int world_file_await(struct world_file *file, uint32_t events, int flags);

/** The sum of the sizes of a message's pieces. */
size_t world_message_size(const struct msghdr *message);

/** Copies bytes into a message's pieces; returns how many fit. */
size_t world_message_put(struct msghdr *message, const void *bytes, size_t size);

/** Sockets: TCP, UDP, netlink for news of links, and one that never receives anything. */
struct world_file *world_tcp_new(struct world_node *node);
struct world_file *world_datagram_new(struct world_node *node);
struct world_file *world_news_new(struct world_node *node);
struct world_file *world_quiet_new(struct world_node *node);

/** Opens /proc/self/fd of the acting process: a descriptor, or -1 and errno. */
int world_folder_open(void);

/**
 * Sends a packet of @size bytes from this NIC over its cable. @arrive is called once, at the time
 * of arrival; its @arrived is 0 if the packet was lost. It frees @arg.
 */
void world_packet_send(const struct world_nic *nic, size_t size,
		       void (*arrive)(void *arg, uint64_t arrived), void *arg);

/** The NIC of a node with this address; NULL: none. */
struct world_nic *world_nic_find(struct world_node *node, struct in_addr addr);

/** The NIC by which a packet to @to leaves; @from may be 0. NULL: no route. */
struct world_nic *world_route(struct world_node *node, struct in_addr from, struct in_addr to);

/** The NIC at the other end of the cable, and its node; lo is its own other end. */
struct world_nic *world_nic_other(const struct world_nic *nic, struct world_node *node,
				  struct world_node **other);

/** True if the NIC has a carrier. */
bool world_nic_runs(const struct world_nic *nic);

/** Tells the process that a link has changed. */
void world_links_changed(struct world_node *node);

#endif
