/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - libfabric alone as a net plugin: the yardstick for ours. Each message is one tagged
 * send to one tagged receive, over one endpoint of the first NIC with an IPv4 address; no grants,
 * no recovery, no second path. For one thread; an error ends the program.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include <nccl/net_abi.h>

#define NAME_MAX_BYTES 64
#define CQ_BATCH 16
/* rxm over verbs injects up to 16384 bytes, by a copy that large messages should not pay for. */
#define INJECT_MAX 256

/* What the listener's handle says. */
struct place {
	uint64_t tag; /* of the comm's messages */
	uint8_t name[NAME_MAX_BYTES];
};
NCCL_ASSERT_SIZE(struct place, 72);

struct request {
	struct fi_context2 context; /* first: what the CQ gives back is the request */
	bool used, done;
	size_t size; /* bytes */
};

struct comm {
	fi_addr_t peer; /* of a sending one */
	uint64_t tag;
	struct request requests[NCCL_REQUESTS_MAX];
};

/* The one NIC and its endpoint. */
static struct {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	uint64_t next; /* tag, or key of a registration */
} own;

static void must(long ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "plugin_fabric: %s: %s (%ld)\n", call, fi_strerror((int)-ret), ret);
	exit(1);
}

/* Returns NULL if this provider has no NIC with an IPv4 address but the loopback. */
static struct fi_info *find_nic(const char *provider)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL, *at;
	const struct sockaddr_in *source;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = FI_SOCKADDR_IN;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->fabric_attr->prov_name = strdup(provider);
	if (fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list))
		list = NULL;
	fi_freeinfo(hints);
	for (at = list; at; at = at->next) {
		source = at->src_addr;
		if (source && !strcmp(at->fabric_attr->prov_name, provider) &&
		    ntohl(source->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
			break;
	}
	at = at ? fi_dupinfo(at) : NULL;
	fi_freeinfo(list);
	return at;
}

static enum nccl_result init(nccl_logger logger)
{
	const char *provider = getenv("NCCL_MESH_PROVIDER");
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};

	provider = provider ? provider : "tcp";
	/* Native RDM over TCP is called "net" in 1.16 and 1.17, and "tcp" from 1.18 on. */
	own.info = strcmp(provider, "tcp") ? NULL : find_nic("net");
	if (!own.info)
		own.info = find_nic(provider);
	if (!own.info)
		return NCCL_RESULT_SYSTEM_ERROR;
	cq.size = own.info->tx_attr->size + own.info->rx_attr->size;
	must(fi_fabric(own.info->fabric_attr, &own.fabric, NULL), "fi_fabric");
	must(fi_domain(own.fabric, own.info, &own.domain, NULL), "fi_domain");
	must(fi_av_open(own.domain, &av, &own.av, NULL), "fi_av_open");
	must(fi_cq_open(own.domain, &cq, &own.cq, NULL), "fi_cq_open");
	must(fi_endpoint(own.domain, own.info, &own.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(own.ep, &own.av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(own.ep, &own.cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(own.ep), "fi_enable");
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result devices(int *num_devices)
{
	*num_devices = 1;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result get_properties(int dev, struct nccl_net_properties_v8 *properties)
{
	*properties = (struct nccl_net_properties_v8){
		.identity.name = own.info->domain_attr->name,
		.identity.guid = 1,
		.pointer_support = NCCL_POINTER_HOST,
		.link = {.speed = 10000, .port = 1, .max_comms = 65536, .max_receives = 1},
	};
	return NCCL_RESULT_SUCCESS;
}

static struct comm *new_comm(const struct place *place)
{
	struct comm *comm = calloc(1, sizeof(*comm));

	if (!comm)
		must(-FI_ENOMEM, "comm");
	comm->tag = place->tag;
	return comm;
}

static enum nccl_result listen_at(int dev, void *handle, void **listen_comm)
{
	struct place place = {.tag = own.next++};
	size_t size = sizeof(place.name);

	must(fi_getname(&own.ep->fid, place.name, &size), "fi_getname");
	memcpy(handle, &place, sizeof(place));
	*listen_comm = new_comm(&place);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result connect_to(int dev, void *handle, void **send_comm,
				   struct nccl_device_handle **send_device)
{
	struct comm *comm;
	struct place place;

	memcpy(&place, handle, sizeof(place));
	comm = new_comm(&place);
	if (fi_av_insert(own.av, place.name, 1, &comm->peer, 0, NULL) != 1)
		must(-FI_EINVAL, "fi_av_insert");
	*send_comm = comm;
	return NCCL_RESULT_SUCCESS;
}

/* Nothing is to be agreed on: a tagged receive waits for whoever sends. */
static enum nccl_result accept_from(void *listen_comm, void **receive_comm,
				    struct nccl_device_handle **receive_device)
{
	const struct comm *listener = listen_comm;
	const struct place place = {.tag = listener->tag};

	*receive_comm = new_comm(&place);
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result reg_mr(void *comm, void *data, size_t size, int type, void **registration)
{
	struct fid_mr *mr = NULL;

	must(fi_mr_reg(own.domain, data, size, FI_SEND | FI_RECV, 0, own.next++, 0, &mr, NULL),
	     "fi_mr_reg");
	*registration = mr;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result dereg_mr(void *comm, void *registration)
{
	struct fid_mr *mr = registration;

	must(fi_close(&mr->fid), "fi_close");
	return NCCL_RESULT_SUCCESS;
}

static void poll_completions(void)
{
	struct fi_cq_data_entry entries[CQ_BATCH];
	struct fi_cq_err_entry error = {0};
	ssize_t n = fi_cq_read(own.cq, entries, CQ_BATCH);
	struct request *request;

	if (n == -FI_EAVAIL)
		must(fi_cq_readerr(own.cq, &error, 0) > 0 ? -error.err : -FI_EIO, "a message");
	if (n != -FI_EAGAIN)
		must(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++) {
		request = entries[i].op_context;
		request->done = true;
		if (entries[i].flags & FI_RECV)
			request->size = entries[i].len;
	}
}

static struct request *take_request(struct comm *comm, size_t size)
{
	for (int i = 0; i < NCCL_REQUESTS_MAX; i++) {
		if (comm->requests[i].used)
			continue;
		comm->requests[i].used = true;
		comm->requests[i].done = false;
		comm->requests[i].size = size;
		return &comm->requests[i];
	}
	return NULL;
}

/* What libfabric said to the operation of @request, which NCCL gets if there was room for it. */
static enum nccl_result posted(struct request *request, ssize_t ret, void **out)
{
	*out = ret ? NULL : request;
	if (!ret)
		return NCCL_RESULT_SUCCESS;
	request->used = false;
	if (ret != -FI_EAGAIN)
		must(ret, "post");
	poll_completions();
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result isend(void *send_comm, void *data, int size, int tag, void *registration,
			      void **out)
{
	struct comm *comm = send_comm;
	struct request *request = take_request(comm, (size_t)size);
	const bool inject = size <= INJECT_MAX && (size_t)size <= own.info->tx_attr->inject_size;

	*out = NULL;
	if (!request)
		return NCCL_RESULT_SUCCESS;
	request->done = inject;
	if (inject)
		return posted(request,
			      fi_tinject(own.ep, data, (size_t)size, comm->peer, comm->tag), out);
	return posted(request,
		      fi_tsend(own.ep, data, (size_t)size, fi_mr_desc(registration), comm->peer,
			       comm->tag, &request->context),
		      out);
}

static enum nccl_result irecv(void *receive_comm, int n, void **data, int *sizes, int *tags,
			      void **registrations, void **out)
{
	struct comm *comm = receive_comm;
	struct request *request = take_request(comm, 0);

	*out = NULL;
	if (!request)
		return NCCL_RESULT_SUCCESS;
	return posted(request,
		      fi_trecv(own.ep, data[0], (size_t)sizes[0], fi_mr_desc(registrations[0]),
			       FI_ADDR_UNSPEC, comm->tag, 0, &request->context),
		      out);
}

/* Host memory needs none; a request that is not there is done. */
static enum nccl_result iflush(void *comm, int n, void **data, int *sizes, void **registrations,
			       void **out)
{
	*out = NULL;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result test(void *of, int *done, int *sizes)
{
	struct request *request = of;

	if (!request->done)
		poll_completions();
	*done = request->done;
	if (!request->done)
		return NCCL_RESULT_SUCCESS;
	if (sizes)
		sizes[0] = (int)request->size;
	request->used = false;
	return NCCL_RESULT_SUCCESS;
}

static enum nccl_result close_comm(void *comm)
{
	free(comm);
	return NCCL_RESULT_SUCCESS;
}

const struct nccl_net_v8 ncclNetPlugin_v8 = {
	.name = "libfabric",
	.init = init,
	.devices = devices,
	.get_properties = get_properties,
	.listen = listen_at,
	.connect = connect_to,
	.accept = accept_from,
	.reg_mr = reg_mr,
	.dereg_mr = dereg_mr,
	.isend = isend,
	.irecv = irecv,
	.iflush = iflush,
	.test = test,
	.close_send = close_comm,
	.close_receive = close_comm,
	.close_listen = close_comm,
};
