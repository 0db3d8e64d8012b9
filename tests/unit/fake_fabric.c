/* SPDX-License-Identifier: Apache-2.0 */
/* fake_fabric.c - a libfabric that a test controls. */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "check.h"
#include "fake_fabric.h"
#include "fake_object.h"

struct fake_fabric fake;

static const struct fake_offer tcp_offer[] = {{"tcp", "eth7", "10.7.0.1"}, {0}};

/* ---- what the test asks for -------------------------------------------------------------- */

void fake_reset(void)
{
	fake_hints_forget();
	memset(&fake, 0, sizeof(fake));
	fake.offers = tcp_offer;
	fake.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED;
	fake.mr_flags_known = FAKE_MR_NOCACHE;
	fake.rx_size = 1024;
	fake.tx_size = 1024;
	fake.cq_data_size = 8;
	fake.mr_key_size = 8;
	fake.max_msg_size = 1 << 30;
	fake.payload_max = 8192;
}

void fake_teardown(void)
{
	fake_hints_forget();
	if (fake_open_objects() || fake.busy_closes)
		fprintf(stderr, "%d objects are open, %d were closed too early\n",
			fake_open_objects(), fake.busy_closes);
	check_equal(fake_open_objects(), 0);
	check_equal(fake.busy_closes, 0);
}

void fake_fail(enum fake_call call, int skip, int times, int error)
{
	fake.on[call].skip = skip;
	fake.on[call].times = times;
	fake.on[call].error = error;
}

static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER; /* two connectors may be inside */

int fake_called(enum fake_call call)
{
	int ret = 0;

	if (fake.before)
		fake.before(call);
	pthread_mutex_lock(&counting);
	fake.on[call].calls++;
	if (fake.on[call].skip) {
		fake.on[call].skip--;
	} else if (fake.on[call].times) {
		fake.on[call].times--;
		ret = fake.on[call].error;
	}
	pthread_mutex_unlock(&counting);
	return ret;
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
	static struct mesh_nic nic = {
		.netdev = "eth7", .name = "mesh-eth7", .state = MESH_NIC_RUNS, .mtu = 9000};

	strcpy(nic.rdma.device, "mlx5_7");
	nic.rdma.port = 1;
	nic.rdma.link_layer = MESH_LINK_LAYER_ETHERNET;
	check_equal(mesh_addr_parse("10.7.0.1/24", &nic.source), 0);
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
		.nic = fake_nic(), .provider = provider, .payload_max = fake.payload_max};
	struct mesh_domain *domain = NULL;

	fake.offers = offers;
	check_equal(mesh_domain_open(&options, &domain), 0);
	check(domain);
	return domain;
}

struct mesh_remote *fake_remote_open(struct mesh_domain *domain, uint16_t port)
{
	struct sockaddr_storage name;
	struct mesh_remote *remote;
	struct mesh_addr addr;
	size_t len;

	check_equal(mesh_addr_parse("10.7.0.2", &addr), 0);
	len = mesh_addr_to_sockaddr(&addr, port, &name);
	check_equal(mesh_remote_open(domain, &name, len, &remote), 0);
	remote->flow->connected = true;
	return remote;
}

/* ---- objects ----------------------------------------------------------------------------- */

/* True while something must be closed before. */
static bool object_is_busy(const struct fake_object *object)
{
	if (object->kind == FAKE_AV || object->kind == FAKE_CQ)
		return object->owner->num_endpoints;
	return object->num_owned;
}

static void mr_lock_look(void)
{
	fake.mr_locked += fake.mr_lock && mesh_lock_held(fake.mr_lock);
}

/* The connector's thread opens and closes endpoints while the test closes other objects. */
static void object_count(const struct fake_object *object, int more)
{
	__atomic_fetch_add(&fake.open[object->kind], more, __ATOMIC_RELAXED);
	if (!object->owner)
		return;
	__atomic_fetch_add(&object->owner->num_owned, more, __ATOMIC_RELAXED);
	if (object->kind == FAKE_ENDPOINT)
		__atomic_fetch_add(&object->owner->num_endpoints, more, __ATOMIC_RELAXED);
}

static int object_close(struct fid *fid)
{
	struct fake_object *object = (struct fake_object *)fid;

	if (object->kind == FAKE_ENDPOINT)
		fake_called(FAKE_ENDPOINT_CLOSE);
	if (object_is_busy(object)) {
		fake.busy_closes++;
		return -FI_EBUSY;
	}
	if (object->kind == FAKE_MR) {
		mr_lock_look();
		fake.mrs[object->index].open = false;
	}
	object_count(object, -1);
	free(object);
	return 0;
}

static int object_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	return fake_called(FAKE_BIND);
}

static int object_control(struct fid *fid, int command, void *arg)
{
	check_equal(command, FI_ENABLE);
	return fake_called(FAKE_ENABLE);
}

static struct fi_ops object_ops = {
	.size = sizeof(struct fi_ops),
	.close = object_close,
	.bind = object_bind,
	.control = object_control,
};

/* Returns 0 and an open object, or what the test wants to see. */
static int object_open(enum fake_call kind, void *owner, struct fake_object **object)
{
	int ret = fake_called(kind);

	if (ret)
		return ret;
	*object = calloc(1, sizeof(**object));
	check(*object);
	(*object)->kind = kind;
	(*object)->fid.ops = &object_ops;
	(*object)->owner = owner;
	object_count(*object, 1);
	return 0;
}

/* ---- address vector ------------------------------------------------------------------------- */

static int av_insert(struct fid_av *av, const void *addr, size_t count, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	int ret = fake_called(FAKE_AV_INSERT);

	check_equal(count, 1);
	if (ret)
		return ret == -FI_EADDRNOTAVAIL ? 0 : ret; /* libfabric: none was inserted */
	check(fake.num_addrs < FAKE_ADDRS_MAX);
	memcpy(&fake.addrs[fake.num_addrs], addr, sizeof(struct sockaddr_in));
	*fi_addr = (fi_addr_t)(FAKE_ADDR_FIRST + fake.num_addrs++);
	return 1;
}

/* As libfabric's, whose number of an address that is not there is another's, or nobody's. */
static int av_remove(struct fid_av *av, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct sockaddr_in *addr;

	check_equal(count, 1);
	check(*fi_addr >= FAKE_ADDR_FIRST &&
	      *fi_addr < (fi_addr_t)(FAKE_ADDR_FIRST + fake.num_addrs));
	addr = &fake.addrs[*fi_addr - FAKE_ADDR_FIRST];
	check(addr->sin_family == AF_INET);
	addr->sin_family = AF_UNSPEC;
	return fake_called(FAKE_AV_REMOVE);
}

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.remove = av_remove,
};

/* ---- endpoint ------------------------------------------------------------------------------ */

static struct fake_post *post_add(struct fake_posts *posts, const struct fid_ep *ep, void *context,
				  const void *buffer, size_t size)
{
	int i = __atomic_fetch_add(&posts->num, 1, __ATOMIC_RELAXED);
	struct fake_post *post = &posts->posts[i];

	check(i < FAKE_POSTS_MAX);
	post->domain = ((const struct fake_object *)ep)->owner;
	post->context = context;
	post->buffer = (uint8_t *)(uintptr_t)buffer;
	post->size = size;
	return post;
}

static ssize_t ep_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
		       void *context)
{
	int ret = fake_called(FAKE_RECV);

	check(src_addr == FI_ADDR_UNSPEC);
	if (ret)
		return ret;
	post_add(&fake.receives, ep, context, buf, len)->desc = desc;
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
	int ret = fake_called(FAKE_SEND);

	check_equal(msg->iov_count, 1);
	if (ret)
		return ret;
	post_fill(post_add(&fake.sends, ep, msg->context, msg->msg_iov->iov_base,
			   msg->msg_iov->iov_len),
		  msg->addr, msg->desc, flags);
	return 0;
}

static ssize_t ep_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	int ret = fake_called(FAKE_INJECT);

	check(len <= fake.inject_size);
	if (ret)
		return ret;
	post_fill(post_add(&fake.injects, ep, NULL, (void *)(uintptr_t)buf, len), dest_addr, NULL,
		  0);
	return 0;
}

static ssize_t ep_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fake_post *post;
	int ret = fake_called(FAKE_WRITE);

	check_equal(msg->iov_count, 1);
	check_equal(msg->rma_iov_count, 1);
	check_equal(msg->rma_iov->len, msg->msg_iov->iov_len);
	if (ret)
		return ret;
	post = post_add(&fake.writes, ep, msg->context, msg->msg_iov->iov_base,
			msg->msg_iov->iov_len);
	post_fill(post, msg->addr, msg->desc, flags);
	post->address = msg->rma_iov->addr;
	post->key = msg->rma_iov->key;
	post->data = msg->data;
	if (fake.writes_end_with < 0)
		fake_complete(post);
	else if (fake.writes_end_with)
		fake_write_fail(post, fake.writes_end_with);
	return 0;
}

static int ep_getname(fid_t fid, void *name, size_t *len)
{
	struct sockaddr_storage storage;
	struct mesh_addr addr;
	size_t room = *len;
	int ret = fake_called(FAKE_GETNAME);

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
	int ret;

	check_equal(offset, 0);
	mr_lock_look();
	if (flags & ~fake.mr_flags_known)
		return -FI_EINVAL;
	ret = object_open(FAKE_MR, fid, &object);
	if (ret)
		return ret;
	check(fake.num_mrs < (int)(sizeof(fake.mrs) / sizeof(fake.mrs[0])));
	object->index = fake.num_mrs++;
	object->mr.key = fake.mr_mode & FI_MR_PROV_KEY ? FAKE_PROV_KEY + (uint64_t)object->index
						       : requested_key;
	object->mr.mem_desc = fake.mr_mode & FI_MR_LOCAL ? object : NULL;
	fake.mrs[object->index] = (struct fake_mr){buf, len, access, requested_key, flags, true};
	*mr = &object->mr;
	return 0;
}

static int domain_av(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		     void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_AV, domain, &object);

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
	int ret = object_open(FAKE_CQ, domain, &object);

	check_equal(attr->format, FI_CQ_FORMAT_DATA);
	fake.cq_size = attr->size;
	if (ret)
		return ret;
	object->cq.ops = &fake_queue_ops;
	*cq = &object->cq;
	return 0;
}

static int domain_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			   void *context)
{
	struct fake_object *object;
	int ret = object_open(FAKE_ENDPOINT, domain, &object);

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
	int ret = object_open(FAKE_DOMAIN, fabric, &object);

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
	int ret = object_open(FAKE_FABRIC, NULL, &object);

	if (ret)
		return ret;
	object->fabric.ops = &fabric_ops;
	*fabric = &object->fabric;
	return 0;
}
