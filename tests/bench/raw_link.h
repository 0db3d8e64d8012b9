/* SPDX-License-Identifier: Apache-2.0 */
/* One libfabric RDM endpoint to one peer, by source address, and the TCP side channel beside it. */
#ifndef MESH_BENCH_RAW_LINK_H
#define MESH_BENCH_RAW_LINK_H

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#define RAW_MAGIC 0x6d657368
#define RAW_VERSION 4
#define RAW_MAX_SIZES 32
#define RAW_MAX_WINDOW 128
#define RAW_NAME_MAX 64
/* No answer for this long ends a program: libfabric itself retries a dead peer without end. */
#define RAW_DEADLINE_S 20

/* What the client asks for; the server takes it as it is. Both ends must have one byte order. */
struct raw_params {
	uint32_t magic;
	uint32_t version;
	uint32_t mode;
	uint32_t window; /* messages in flight */
	uint32_t size_count;
	uint32_t yield_polls; /* idle polls between two sched_yield() */
	uint64_t sizes[RAW_MAX_SIZES];
};

/* What each end sends to the other about its endpoint. */
struct raw_hello {
	char provider[RAW_NAME_MAX];
	uint8_t name[RAW_NAME_MAX];
	uint64_t name_len;
};

struct raw_link {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_mr *mr;
	void *desc; /* local descriptor of the arena, NULL where the provider wants none */
	char *arena;
	size_t arena_size;
	fi_addr_t peer;
	struct raw_hello mine;
	struct raw_hello theirs;
};

static inline uint64_t raw_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int raw_failed(const char *what, long ret)
{
	fprintf(stderr, "fabric_raw: %s: %s (%ld)\n", what, fi_strerror((int)-ret), ret);
	return ret < 0 ? (int)ret : -EIO;
}

/* --- side channel: a plain TCP connection between the two programs --- */

static int raw_side_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL);

		if (n <= 0)
			return raw_failed("side channel: write", n < 0 ? -errno : -EPIPE);
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int raw_side_read(int fd, void *data, size_t len)
{
	ssize_t n = recv(fd, data, len, MSG_WAITALL);

	if (n == (ssize_t)len)
		return 0;
	return raw_failed("side channel: read", n < 0 ? -errno : -ECONNRESET);
}

static int raw_resolve(const char *address, const char *port, int flags, struct addrinfo **found)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = flags | AI_NUMERICHOST};
	int ret = getaddrinfo(address, port, &hints, found);

	if (!ret)
		return 0;
	fprintf(stderr, "fabric_raw: %s port %s: %s\n", address, port, gai_strerror(ret));
	return -EINVAL;
}

static int raw_side_accept(const char *source, const char *port)
{
	struct addrinfo *at;
	int listener, fd = -1, one = 1;
	int ret = raw_resolve(source, port, AI_PASSIVE, &at);

	if (ret)
		return ret;
	listener = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, at->ai_addr, at->ai_addrlen) || listen(listener, 1))
		ret = raw_failed("side channel: listen", -errno);
	else if ((fd = accept(listener, NULL, NULL)) < 0)
		ret = raw_failed("side channel: accept", -errno);
	close(listener);
	freeaddrinfo(at);
	return ret ? ret : fd;
}

/* The server may still be starting: a refused connection is tried again until the deadline. */
static int raw_side_connect(const char *peer, const char *port)
{
	uint64_t deadline = raw_now_ns() + RAW_DEADLINE_S * 1000000000ull;
	struct timespec pause = {.tv_nsec = 2000000};
	struct addrinfo *to;
	int fd, ret = raw_resolve(peer, port, 0, &to);

	if (ret)
		return ret;
	for (;;) {
		fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(fd, to->ai_addr, to->ai_addrlen))
			break;
		ret = -errno;
		close(fd);
		fd = -1;
		if (ret != -ECONNREFUSED || raw_now_ns() > deadline)
			break;
		nanosleep(&pause, NULL);
	}
	freeaddrinfo(to);
	return fd >= 0 ? fd : raw_failed("side channel: connect", ret);
}

static int raw_side_open(const char *source, const char *peer, const char *port)
{
	int one = 1, fd = peer ? raw_side_connect(peer, port) : raw_side_accept(source, port);

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* --- libfabric --- */

/* Native RDM over TCP is called "net" in 1.16 and 1.17, and "tcp" from 1.18 on. */
static bool raw_is_native_tcp(const char *provider)
{
	return !strcmp(provider, "net") || !strcmp(provider, "tcp");
}

static bool raw_same_provider(const char *a, const char *b)
{
	return !strcmp(a, b) || (raw_is_native_tcp(a) && raw_is_native_tcp(b));
}

static struct fi_info *raw_hints(const char *provider)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

/*
 * Takes the entry with exactly this provider. An address that is not local yields an entry whose
 * domain is named after the provider, so that one is refused.
 */
static int raw_find_provider(const char *provider, const char *source, struct fi_info **chosen)
{
	struct fi_info *list = NULL, *at, *hints = raw_hints(provider);
	int ret;

	if (!hints)
		return -ENOMEM;
	ret = fi_getinfo(FI_VERSION(1, 17), source, NULL, FI_SOURCE, hints, &list);
	fi_freeinfo(hints);
	if (ret)
		return ret;
	for (at = list; at; at = at->next)
		if (!strcmp(at->fabric_attr->prov_name, provider) && at->src_addr &&
		    strcmp(at->domain_attr->name, provider))
			break;
	*chosen = at ? fi_dupinfo(at) : NULL;
	fi_freeinfo(list);
	return *chosen ? 0 : -FI_ENODATA;
}

static int raw_link_getinfo(struct raw_link *link, const char *provider, const char *source)
{
	int ret = raw_find_provider(provider, source, &link->info);

	if (ret && raw_is_native_tcp(provider))
		ret = raw_find_provider(strcmp(provider, "net") ? "net" : "tcp", source,
					&link->info);
	if (!ret)
		return 0;
	fprintf(stderr, "fabric_raw: no provider '%s' with the local address %s: %s\n", provider,
		source, fi_strerror(-ret));
	return ret;
}

static int raw_link_open_endpoint(struct raw_link *link)
{
	struct fi_info *info = link->info;
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = 1};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
	int ret;

	cq_attr.size = info->tx_attr->size + info->rx_attr->size;
	ret = fi_fabric(info->fabric_attr, &link->fabric, NULL);
	if (ret)
		return raw_failed("fi_fabric", ret);
	ret = fi_domain(link->fabric, info, &link->domain, NULL);
	if (ret)
		return raw_failed("fi_domain", ret);
	ret = fi_av_open(link->domain, &av_attr, &link->av, NULL);
	if (ret)
		return raw_failed("fi_av_open", ret);
	ret = fi_cq_open(link->domain, &cq_attr, &link->cq, NULL);
	if (ret)
		return raw_failed("fi_cq_open", ret);
	ret = fi_endpoint(link->domain, info, &link->ep, NULL);
	if (ret)
		return raw_failed("fi_endpoint", ret);
	ret = fi_ep_bind(link->ep, &link->av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(link->ep, &link->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(link->ep);
	return ret ? raw_failed("fi_enable", ret) : 0;
}

static int raw_link_register(struct raw_link *link)
{
	const int mr_mode = link->info->domain_attr->mr_mode;
	int ret = fi_mr_reg(link->domain, link->arena, link->arena_size, FI_SEND | FI_RECV, 0, 1, 0,
			    &link->mr, NULL);

	if (!ret && (mr_mode & FI_MR_ENDPOINT)) {
		ret = fi_mr_bind(link->mr, &link->ep->fid, 0);
		if (!ret)
			ret = fi_mr_enable(link->mr);
	}
	if (ret)
		return raw_failed("fi_mr_reg", ret);
	link->desc = fi_mr_desc(link->mr);
	return 0;
}

static int raw_link_meet(struct raw_link *link, int side)
{
	size_t len = sizeof(link->mine.name);
	int ret = fi_getname(&link->ep->fid, link->mine.name, &len);

	if (ret)
		return raw_failed("fi_getname", ret);
	link->mine.name_len = len;
	snprintf(link->mine.provider, sizeof(link->mine.provider), "%s",
		 link->info->fabric_attr->prov_name);
	ret = raw_side_write(side, &link->mine, sizeof(link->mine));
	if (!ret)
		ret = raw_side_read(side, &link->theirs, sizeof(link->theirs));
	if (ret)
		return ret;
	link->theirs.provider[RAW_NAME_MAX - 1] = '\0';
	if (!raw_same_provider(link->mine.provider, link->theirs.provider)) {
		fprintf(stderr, "fabric_raw: this end has provider '%s', the other '%s'\n",
			link->mine.provider, link->theirs.provider);
		return -EPROTO;
	}
	if (fi_av_insert(link->av, link->theirs.name, 1, &link->peer, 0, NULL) != 1)
		return raw_failed("fi_av_insert", -EINVAL);
	return 0;
}

static void raw_link_close(struct raw_link *link)
{
	struct fid *const objects[] = {
		link->ep ? &link->ep->fid : NULL,	  link->mr ? &link->mr->fid : NULL,
		link->cq ? &link->cq->fid : NULL,	  link->av ? &link->av->fid : NULL,
		link->domain ? &link->domain->fid : NULL, link->fabric ? &link->fabric->fid : NULL,
	};

	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (objects[i])
			fi_close(objects[i]);
	if (link->info)
		fi_freeinfo(link->info);
	if (link->arena)
		munmap(link->arena, link->arena_size);
}

/* Opens everything for one peer. On an error the caller still calls raw_link_close(). */
static int raw_link_open(struct raw_link *link, const char *provider, const char *source,
			 size_t arena_size, int side)
{
	int ret = raw_link_getinfo(link, provider, source);

	if (ret)
		return ret;
	ret = raw_link_open_endpoint(link);
	if (ret)
		return ret;
	link->arena = mmap(NULL, arena_size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (link->arena == MAP_FAILED) {
		link->arena = NULL;
		return raw_failed("mmap", -errno);
	}
	link->arena_size = arena_size;
	ret = raw_link_register(link);
	if (ret)
		return ret;
	return raw_link_meet(link, side);
}

#endif
