/* SPDX-License-Identifier: Apache-2.0 */
/* fake_fabric.c - a libfabric that does what a test tells it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fake_fabric.h"

/* Every object that libfabric hands out; the fid is first in each, so it is first here. */
struct fake_object {
	union {
		struct fid fid;
		struct fid_fabric fabric;
		struct fid_domain domain;
		struct fid_av av;
		struct fid_cq cq;
		struct fid_ep endpoint;
		struct fid_mr mr;
	};
	enum fake_call kind;
	int index; /* in fake.mrs */
};

struct fake_fabric fake;

static const struct fake_offer tcp_offer[] = {{"tcp", "eth7", "10.7.0.1"}, {0}};

/* ---- what the test asks for -------------------------------------------------------------- */

void fake_reset(void)
{
	if (fake.hints)
		fi_freeinfo(fake.hints);
	memset(&fake, 0, sizeof(fake));
	fake.offers = tcp_offer;
	fake.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	fake.rx_size = 1024;
}

int fake_teardown(void **state)
{
	(void)state;
	if (fake.hints)
		fi_freeinfo(fake.hints);
	fake.hints = NULL;
	if (fake_open_objects() || fake.busy_closes)
		fprintf(stderr, "%d objects are open, %d were closed too early\n",
			fake_open_objects(), fake.busy_closes);
	return fake_open_objects() || fake.busy_closes;
}

void fake_fail(enum fake_call call, int skip, int times, int error)
{
	fake.on[call].skip = skip;
	fake.on[call].times = times;
	fake.on[call].error = error;
}

/* Counts the call; what it is to return. */
static int fake_call(enum fake_call call)
{
	fake.on[call].calls++;
	if (fake.on[call].skip) {
		fake.on[call].skip--;
		return 0;
	}
	if (!fake.on[call].times)
		return 0;
	fake.on[call].times--;
	return fake.on[call].error;
}

int fake_open_objects(void)
{
	int i, count = 0;

	for (i = 0; i < FAKE_CALLS; i++)
		count += fake.open[i];
	return count;
}

const struct mesh_nic *fake_nic(void)
{
	static struct mesh_nic nic = {.netdev = "eth7", .name = "mesh-eth7", .carrier = true};

	strcpy(nic.rdma.device, "mlx5_7");
	assert_int_equal(mesh_addr_parse("10.7.0.1/24", &nic.source), 0);
	return &nic;
}

struct mesh_domain *fake_domain_open(enum mesh_provider_id provider)
{
	static const struct fake_offer offers[] = {
		{"tcp", "eth7", "10.7.0.1"},
		{"tcp;ofi_rxm", "eth7", "10.7.0.1"},
		{"verbs;ofi_rxm", "mlx5_7", "10.7.0.1"},
		{0},
	};
	struct mesh_domain_options options = {
		.nic = fake_nic(), .provider = provider, .payload_max = 4096};
	struct mesh_domain *domain = NULL;

	fake.offers = offers;
	assert_int_equal(mesh_domain_open(&options, &domain), 0);
	assert_non_null(domain);
	return domain;
}

static struct fake_completion *completion_add(void)
{
	assert_true(fake.completed < FAKE_POSTS_MAX);
	return &fake.completions[fake.completed++];
}

void fake_complete(const struct fake_post *post)
{
	struct fake_completion *completion = completion_add();

	completion->entry.op_context = post->context;
	completion->entry.flags = FI_MSG | FI_SEND;
	completion->entry.len = post->size;
}

void fake_complete_error(void *context, int error)
{
	struct fake_completion *completion = completion_add();

	completion->entry.op_context = context;
	completion->error = error;
}

void fake_deliver(const void *bytes, size_t size)
{
	struct fake_completion *completion = completion_add();
	struct fake_post *receive;

	assert_true(fake.receives_taken < fake.receives.num);
	receive = &fake.receives.posts[fake.receives_taken++];
	assert_true(size <= receive->size);
	memcpy(receive->buffer, bytes, size);
	completion->entry.op_context = receive->context;
	completion->entry.flags = FI_MSG | FI_RECV;
	completion->entry.len = size;
}

void fake_deliver_immediate(uint32_t immediate)
{
	struct fake_completion *completion = completion_add();

	completion->entry.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
	completion->entry.data = immediate;
}

/* ---- objects ----------------------------------------------------------------------------- */

/* What must be closed before an object of this kind. */
static bool object_is_busy(enum fake_call kind)
{
	switch (kind) {
	case FAKE_FABRIC:
		return fake.open[FAKE_DOMAIN];
	case FAKE_DOMAIN:
		return fake.open[FAKE_AV] || fake.open[FAKE_CQ] || fake.open[FAKE_ENDPOINT] ||
		       fake.open[FAKE_MR];
	case FAKE_AV:
	case FAKE_CQ:
		return fake.open[FAKE_ENDPOINT];
	default:
		return false;
	}
}

static int object_close(struct fid *fid)
{
	struct fake_object *object = (struct fake_object *)fid;

	if (object_is_busy(object->kind)) {
		fake.busy_closes++;
		return -FI_EBUSY;
	}
	if (object->kind == FAKE_MR)
		fake.mrs[object->index].open = false;
	fake.open[object->kind]--;
	free(object);
	return 0;
}

static int object_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid;
	(void)other;
	(void)flags;
	return fake_call(FAKE_BIND);
}

static int object_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	(void)arg;
	assert_int_equal(command, FI_ENABLE);
	return fake_call(FAKE_ENABLE);
}

static struct fi_ops object_ops = {
	.size = sizeof(struct fi_ops),
	.close = object_close,
	.bind = object_bind,
	.control = object_control,
};

/* Returns 0 and an open object, or what the test wants to see. */
static int object_open(enum fake_call kind, struct fake_object **object)
{
	int ret = fake_call(kind);

	if (ret)
		return ret;
	*object = calloc(1, sizeof(**object));
	assert_non_null(*object);
	(*object)->kind = kind;
	(*object)->fid.ops = &object_ops;
	fake.open[kind]++;
	return 0;
}

/* ---- completion queue and address vector --------------------------------------------------- */

static ssize_t cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	struct fi_cq_data_entry *entries = buf;
	size_t n = 0;
	int ret = fake_call(FAKE_CQ_READ);

	(void)cq;
	if (ret)
		return ret;
	while (n < count && fake.read < fake.completed) {
		if (fake.completions[fake.read].error)
			return n ? (ssize_t)n : -FI_EAVAIL;
		entries[n++] = fake.completions[fake.read++].entry;
	}
	return n ? (ssize_t)n : -FI_EAGAIN;
}

static ssize_t cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *entry, uint64_t flags)
{
	const struct fake_completion *completion = &fake.completions[fake.read];

	(void)cq;
	(void)flags;
	if (fake.read == fake.completed || !completion->error)
		return -FI_EAGAIN;
	entry->op_context = completion->entry.op_context;
	entry->err = completion->error;
	fake.read++;
	return 1;
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readerr = cq_readerr,
};

static int av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	int ret = fake_call(FAKE_AV_INSERT);

	(void)av;
	(void)addr;
	(void)flags;
	(void)context;
	assert_int_equal(count, 1);
	if (ret)
		return ret == -FI_EADDRNOTAVAIL ? 0 : ret; /* libfabric: none was inserted */
	*fi_addr = (fi_addr_t)(100 + fake.num_addrs++);
	return 1;
}

static struct fi_ops_av av_ops = {.size = sizeof(struct fi_ops_av), .insert = av_insert};

/* ---- endpoint ------------------------------------------------------------------------------ */

static struct fake_post *post_add(struct fake_posts *posts, void *context, const void *buffer,
				  size_t size)
{
	struct fake_post *post = &posts->posts[posts->num];

	assert_true(posts->num < FAKE_POSTS_MAX);
	posts->num++;
	post->context = context;
	post->buffer = (uint8_t *)(uintptr_t)buffer;
	post->size = size;
	return post;
}

static ssize_t ep_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
		       void *context)
{
	int ret = fake_call(FAKE_RECV);

	(void)ep;
	assert_true(src_addr == FI_ADDR_UNSPEC);
	if (ret)
		return ret;
	post_add(&fake.receives, context, buf, len)->desc = desc;
	return 0;
}

static void post_fill(struct fake_post *post, fi_addr_t to, void *const *desc, uint64_t flags)
{
	size_t kept = post->size < FAKE_BYTES_MAX ? post->size : FAKE_BYTES_MAX;

	post->to = to;
	post->desc = desc ? *desc : NULL;
	post->flags = flags;
	memcpy(post->bytes, post->buffer, kept);
}

static ssize_t ep_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	int ret = fake_call(FAKE_SEND);

	(void)ep;
	assert_int_equal(msg->iov_count, 1);
	if (ret)
		return ret;
	post_fill(
		post_add(&fake.sends, msg->context, msg->msg_iov->iov_base, msg->msg_iov->iov_len),
		msg->addr, msg->desc, flags);
	return 0;
}

static ssize_t ep_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	int ret = fake_call(FAKE_INJECT);

	(void)ep;
	assert_true(len <= fake.inject_size);
	if (ret)
		return ret;
	post_fill(post_add(&fake.injects, NULL, (void *)(uintptr_t)buf, len), dest_addr, NULL, 0);
	return 0;
}

static ssize_t ep_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fake_post *post;
	int ret = fake_call(FAKE_WRITE);

	(void)ep;
	assert_int_equal(msg->iov_count, 1);
	assert_int_equal(msg->rma_iov_count, 1);
	assert_int_equal(msg->rma_iov->len, msg->msg_iov->iov_len);
	if (ret)
		return ret;
	post = post_add(&fake.writes, msg->context, msg->msg_iov->iov_base, msg->msg_iov->iov_len);
	post_fill(post, msg->addr, msg->desc, flags);
	post->address = msg->rma_iov->addr;
	post->key = msg->rma_iov->key;
	post->data = msg->data;
	return 0;
}

static int ep_getname(fid_t fid, void *name, size_t *len)
{
	struct sockaddr_storage storage;
	struct mesh_addr addr;
	size_t room = *len;
	int ret = fake_call(FAKE_GETNAME);

	(void)fid;
	if (ret)
		return ret;
	mesh_addr_parse("10.7.0.1", &addr);
	*len = mesh_addr_to_sockaddr(&addr, FAKE_PORT, &storage);
	if (fake.name) {
		*len = strlen(fake.name);
		memcpy(&storage, fake.name, *len);
	}
	memcpy(name, &storage, *len < room ? *len : room);
	return *len > room ? -FI_ETOOSMALL : 0;
}

static struct fi_ops_msg msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = ep_recv,
	.sendmsg = ep_sendmsg,
	.inject = ep_inject,
};
static struct fi_ops_rma rma_ops = {.size = sizeof(struct fi_ops_rma), .writemsg = ep_writemsg};
static struct fi_ops_cm cm_ops = {.size = sizeof(struct fi_ops_cm), .getname = ep_getname};

/* ---- domain and fabric --------------------------------------------------------------------- */

static int domain_mr(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
		     uint64_t requested_key, uint64_t flags, struct fid_mr **mr, void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_MR, &object);

	(void)fid;
	(void)flags;
	(void)context;
	assert_int_equal(offset, 0);
	if (ret)
		return ret;
	assert_true(fake.num_mrs < (int)(sizeof(fake.mrs) / sizeof(fake.mrs[0])));
	object->index = fake.num_mrs++;
	object->mr.key = fake.mr_mode & FI_MR_PROV_KEY ? FAKE_PROV_KEY + (uint64_t)object->index
						       : requested_key;
	object->mr.mem_desc = fake.mr_mode & FI_MR_LOCAL ? object : NULL;
	fake.mrs[object->index] = (struct fake_mr){buf, len, access, requested_key, true};
	*mr = &object->mr;
	return 0;
}

static int domain_av(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		     void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_AV, &object);

	(void)domain;
	(void)attr;
	(void)context;
	if (ret)
		return ret;
	object->av.ops = &av_ops;
	*av = &object->av;
	return 0;
}

static int domain_cq(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		     void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_CQ, &object);

	(void)domain;
	(void)context;
	assert_int_equal(attr->format, FI_CQ_FORMAT_DATA);
	if (ret)
		return ret;
	object->cq.ops = &cq_ops;
	*cq = &object->cq;
	return 0;
}

static int domain_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			   void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_ENDPOINT, &object);

	(void)domain;
	(void)info;
	(void)context;
	if (ret)
		return ret;
	object->endpoint.msg = &msg_ops;
	object->endpoint.rma = &rma_ops;
	object->endpoint.cm = &cm_ops;
	*ep = &object->endpoint;
	return 0;
}

static struct fi_ops_mr mr_ops = {.size = sizeof(struct fi_ops_mr), .reg = domain_mr};
static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = domain_av,
	.cq_open = domain_cq,
	.endpoint = domain_endpoint,
};

static int fabric_domain(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_DOMAIN, &object);

	(void)fabric;
	(void)info;
	(void)context;
	if (ret)
		return ret;
	object->domain.ops = &domain_ops;
	object->domain.mr = &mr_ops;
	*domain = &object->domain;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = fabric_domain,
};

int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_FABRIC, &object);

	(void)attr;
	(void)context;
	if (ret)
		return ret;
	object->fabric.ops = &fabric_ops;
	*fabric = &object->fabric;
	return 0;
}

/* ---- fi_getinfo ---------------------------------------------------------------------------- */

static struct fi_info *info_make(const struct fake_offer *offer)
{
	struct fi_info *info = fi_allocinfo();
	struct sockaddr_storage storage;
	struct mesh_addr addr;

	assert_non_null(info);
	info->fabric_attr->prov_name = strdup(offer->provider);
	if (offer->domain)
		info->domain_attr->name = strdup(offer->domain);
	info->domain_attr->mr_mode = (int)fake.mr_mode;
	info->rx_attr->size = fake.rx_size;
	info->tx_attr->inject_size = fake.inject_size;
	info->ep_attr->max_msg_size = 1 << 30;
	if (!offer->source)
		return info;
	assert_int_equal(mesh_addr_parse(offer->source, &addr), 0);
	info->src_addrlen = mesh_addr_to_sockaddr(&addr, 0, &storage);
	info->src_addr = malloc(info->src_addrlen);
	assert_non_null(info->src_addr);
	memcpy(info->src_addr, &storage, info->src_addrlen);
	return info;
}

static void query_note(const char *node, const struct fi_info *hints)
{
	int i = fake.on[FAKE_GETINFO].calls;

	assert_true(i < (int)(sizeof(fake.queried) / sizeof(fake.queried[0])));
	snprintf(fake.queried[i], sizeof(fake.queried[0]), "%s %s", hints->fabric_attr->prov_name,
		 node);
	if (fake.hints)
		fi_freeinfo(fake.hints);
	fake.hints = fi_dupinfo(hints);
}

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info)
{
	const struct fake_offer *offer;
	struct fi_info **end = info;
	int ret;

	assert_true(FI_VERSION_GE(version, FI_VERSION(1, 17)));
	assert_null(service);
	assert_true(flags == FI_SOURCE);
	query_note(node, hints);
	ret = fake_call(FAKE_GETINFO);
	if (ret)
		return ret;
	*info = NULL;
	for (offer = fake.offers; offer->provider; offer++) {
		if (strcmp(offer->provider, hints->fabric_attr->prov_name))
			continue;
		*end = info_make(offer);
		end = &(*end)->next;
	}
	return *info ? 0 : -FI_ENODATA;
}
