/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c - finds the libfabric entry that serves one NIC, or explains why there is none. */
#include <dlfcn.h>
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "base/descriptors.h"
#include "base/log.h"
#include "fabric/provider.h"
#include "nic/nic.h"
#include "nic/rdma_port.h"
#include "system/this_process.h"

/* ---- the host program's memory and code, which libfabric must not harm ---------------------- */

/*
 * Keeps libfabric from changing libc's code while threads run it.
 *
 * libfabric's verbs caches registrations (1.17 to 2.6 at least) and must know when memory is
 * unmapped. Its default monitor, "memhooks", overwrites the first 13 bytes of libc's mmap(),
 * munmap(), mremap(), madvise(), shmat(), shmdt() and brk() when the first domain is opened. On
 * x86-64 that is the whole function: another thread that is inside munmap() at that moment returns
 * from the system call into the middle of a new instruction, and the process ends with SIGSEGV.
 * glibc calls munmap() when a thread first allocates memory, so threads that start while a domain
 * is opened are the likely victims (3 of 100 processes in the virtual machine).
 *
 * The plugin's registrations bypass that cache (domain_open.c), so it is switched off as a whole:
 * the monitor never starts then. libfabric offers only its environment variables for this. setenv()
 * is not safe beside another thread's getenv() before glibc 2.41, but NCCL itself calls setenv()
 * for each line of nccl.conf before it initializes a network plugin. A process that sets
 * FI_MR_CACHE_MONITOR or FI_MR_CACHE_MAX_COUNT keeps its own choice.
 */
static void memory_hooks_prevent(void)
{
	/* fi_mr(3): a cache without entries is not opened, and starts no monitor. */
	if (!getenv("FI_MR_CACHE_MONITOR") && setenv("FI_MR_CACHE_MAX_COUNT", "0", 0))
		mesh_info("cannot switch off libfabric's cache of registrations: set "
			  "FI_MR_CACHE_MAX_COUNT=0 before the program starts");
}

/*
 * Protects RDMA memory if the host program forks, as PyTorch's data loaders do.
 *
 * After fork() parent and child share each page until one of them writes to it; the writer gets a
 * copy. On Linux before 5.12 the parent may get the copy, while the NIC still uses the page that it
 * had pinned: it sends old data, and the parent does not see what it receives. ibv_fork_init(3)
 * prevents this. NCCL's own network calls it; libfabric's verbs does not. On newer kernels it does
 * nothing.
 */
static void verbs_fork_protect(void)
{
	/* Never closed: libfabric uses it. If it is missing, libfabric has no verbs either. */
	void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*fork_init)(void) = NULL;
	int ret;

	if (!library)
		return;
	*(void **)&fork_init = dlsym(library, "ibv_fork_init");
	if (!fork_init) {
		dlclose(library);
		return;
	}
	ret = fork_init();
	/* EINVAL: another library, such as MPI, has already registered memory. */
	if (ret)
		mesh_info(
			"RDMA memory may be damaged if this program forks (ibv_fork_init: %s): set "
			"RDMAV_FORK_SAFE=1 before it starts",
			strerror(ret));
}

/* ---- what libfabric offers ------------------------------------------------------------------ */

int mesh_info_list(const struct mesh_nic *nic, const struct fi_info *hints, uint64_t flags,
		   struct fi_info **list)
{
	static pthread_once_t hooks = PTHREAD_ONCE_INIT, forks = PTHREAD_ONCE_INIT;
	const char *provider = hints->fabric_attr->prov_name;
	char node[MESH_ADDR_TEXT_MAX + IF_NAMESIZE];
	struct mesh_addr bare = nic->source;

	/* libfabric reads its variables at the process's first call. */
	pthread_once(&hooks, memory_hooks_prevent);
	if (provider && strstr(provider, "verbs")) /* before the first registration */
		pthread_once(&forks, verbs_fork_protect);
	bare.scope_id = 0;
	mesh_addr_text(&bare, node);
	if (nic->source.scope_id) {
		strcat(node, "%");
		strcat(node, nic->netdev);
	}
	return fi_getinfo(MESH_FI_VERSION, node, NULL, FI_SOURCE | flags, hints, list);
}

_Static_assert(MESH_NIC_REASON_MAX >= MESH_PROVIDER_REASON_MAX + 9, "\"skipped: \", a reason");

/* libfabric's names of a provider; both have the same wire protocol. */
static const char *const provider_fi_names[][2] = {
	[MESH_PROVIDER_VERBS_RXM] = {"verbs;ofi_rxm", NULL},
	[MESH_PROVIDER_TCP] = {"net",
			       "tcp"}, /* 1.16 and 1.17 call it net; their "tcp" is MSG only */
	[MESH_PROVIDER_TCP_RXM] = {"tcp;ofi_rxm", NULL},
};

static struct fi_info *hints_alloc(const char *fi_name, const struct mesh_addr *source)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->addr_format = source->family == MESH_FAMILY_IPV4 ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	/* A message that announces a write must not overtake it. */
	hints->tx_attr->msg_order = FI_ORDER_SAW;
	hints->rx_attr->msg_order = FI_ORDER_SAW;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->cq_data_size = sizeof(uint32_t);
	hints->fabric_attr->prov_name = strdup(fi_name);
	if (!hints->fabric_attr->prov_name) {
		fi_freeinfo(hints);
		return NULL;
	}
	return hints;
}

/* True when @info serves exactly this NIC with exactly this provider. */
static bool info_matches(const struct fi_info *info, const char *fi_name,
			 const struct mesh_nic *nic, enum mesh_provider_id id)
{
	struct mesh_addr source = {.family = MESH_FAMILY_NONE};
	const char *domain = info->domain_attr->name;

	if (strcmp(info->fabric_attr->prov_name, fi_name) || !info->src_addr || !domain)
		return false;
	if (mesh_addr_from_sockaddr(info->src_addr, info->src_addrlen, &source, NULL))
		return false;
	source.scope_id = nic->source.scope_id; /* only some providers fill it in */
	if (!mesh_addr_equal(&source, &nic->source))
		return false;
	if (id == MESH_PROVIDER_VERBS_RXM)
		return !strcmp(domain, nic->rdma.device);
	return !strcmp(domain, nic->netdev);
}

static int info_query(const struct mesh_nic *nic, const char *fi_name, enum mesh_provider_id id,
		      struct fi_info **info)
{
	struct fi_info *hints, *list = NULL, *entry;
	int ret;

	hints = hints_alloc(fi_name, &nic->source);
	if (!hints)
		return -ENOMEM;
	ret = mesh_info_list(nic, hints, 0, &list);
	fi_freeinfo(hints);
	if (ret)
		return ret == -FI_ENODATA ? -ENODEV : ret;
	for (entry = list; entry; entry = entry->next) {
		if (info_matches(entry, fi_name, nic, id))
			break;
	}
	*info = entry ? fi_dupinfo(entry) : NULL;
	fi_freeinfo(list);
	return *info ? 0 : -ENODEV;
}

static int provider_query(const struct mesh_nic *nic, enum mesh_provider_id id,
			  struct fi_info **info)
{
	int i, ret = -ENODEV;

	for (i = 0; i < 2 && ret && provider_fi_names[id][i]; i++)
		ret = info_query(nic, provider_fi_names[id][i], id, info);
	return ret;
}

/*
 * Before 2.2 libfabric does not know the flag. From then on its verbs protects the list of devices
 * by a mutex, so endpoints of other NICs may be opened and connected meanwhile.
 */
void mesh_provider_rescan(const struct mesh_nic *nic)
{
	struct fi_info *hints, *list = NULL;

	if (!nic->rdma.device[0] || FI_VERSION_LT(fi_version(), FI_VERSION(2, 2)))
		return;
	hints = hints_alloc(provider_fi_names[MESH_PROVIDER_VERBS_RXM][0], &nic->source);
	if (!hints)
		return;
	if (!mesh_info_list(nic, hints, FI_RESCAN, &list))
		fi_freeinfo(list);
	fi_freeinfo(hints);
}

/*
 * Checks the devices that libfabric's verbs needs. Returns NULL if both can be used; else the
 * remedy, with the device in @path and with errno set.
 */
static const char *unusable_device(const struct mesh_rdma_port *port, char *path, size_t size)
{
	snprintf(path, size, "/dev/infiniband/rdma_cm");
	if (access(path, R_OK | W_OK))
		return "; in a container, pass /dev/infiniband into it; else load the module "
		       "rdma_ucm";
	snprintf(path, size, "/dev/infiniband/%s", port->uverbs);
	if (port->uverbs[0] && access(path, R_OK | W_OK))
		return "; in a container, pass /dev/infiniband into it; else load the module "
		       "ib_uverbs";
	return NULL;
}

/* This libfabric's name of the provider that has RDM endpoints over TCP. */
static const char *tcp_fi_name(void)
{
	return FI_VERSION_LT(fi_version(), FI_VERSION(1, 18)) ? "net" : "tcp";
}

/*
 * The first of libfabric's own variables that is set and hides NICs from this provider, often set
 * for MPI; NULL if none is. (fi_provider(7), fi_verbs(7), fi_tcp(7); net's are like tcp's.)
 */
static const char *limiting_variable(enum mesh_provider_id id)
{
	const char *const of_verbs[] = {"FI_PROVIDER", "FI_VERBS_IFACE", "FI_VERBS_DEVICE_NAME",
					NULL};
	const char *const of_tcp[] = {"FI_PROVIDER", "FI_TCP_IFACE", NULL};
	const char *const of_net[] = {"FI_PROVIDER", "FI_NET_IFACE", NULL};
	const char *const *name = of_tcp;

	if (id == MESH_PROVIDER_VERBS_RXM)
		name = of_verbs;
	else if (id == MESH_PROVIDER_TCP && !strcmp(tcp_fi_name(), "net"))
		name = of_net;
	while (*name && !getenv(*name))
		name++;
	return *name;
}

/* Explains why libfabric may have no verbs entry for an RDMA port; the likeliest cause first. */
static void verbs_missing_explain(const struct mesh_nic *nic, char *reason)
{
	const char *limiting = limiting_variable(MESH_PROVIDER_VERBS_RXM), *remedy;
	char words[MESH_RDMA_PORT_TEXT_MAX], path[64], memlock[MESH_MEMLOCK_HINT_MAX];

	if (!nic->rdma.device[0])
		snprintf(reason, MESH_PROVIDER_REASON_MAX, "no RDMA device is behind %s",
			 nic->netdev);
	else if ((remedy = unusable_device(&nic->rdma, path, sizeof(path))))
		snprintf(reason, MESH_PROVIDER_REASON_MAX,
			 "no RDMA with %s: %s cannot be opened (%s)%s", nic->rdma.device, path,
			 strerror(errno), remedy);
	else if (!mesh_rdma_port_is_active(&nic->rdma))
		snprintf(reason, MESH_PROVIDER_REASON_MAX, "no RDMA with %s port %d: %s",
			 nic->rdma.device, nic->rdma.port,
			 mesh_rdma_state_explain(&nic->rdma, words));
	else
		snprintf(reason, MESH_PROVIDER_REASON_MAX,
			 "libfabric has no verbs;ofi_rxm for %s: is its verbs provider installed "
			 "(fi_info -p verbs)%s%s%s?%s",
			 nic->rdma.device, limiting ? ", and does " : "", limiting ? limiting : "",
			 limiting ? " allow it" : "", mesh_memlock_hint(memlock));
}

static void tcp_missing_explain(const struct mesh_nic *nic, enum mesh_provider_id id, int error,
				char *reason)
{
	const char *name = mesh_provider_id_text(id), *limiting = limiting_variable(id);
	char address[MESH_ADDR_TEXT_MAX];

	mesh_addr_text(&nic->source, address);
	if (mesh_descriptors_exhausted())
		snprintf(reason, MESH_PROVIDER_REASON_MAX, "libfabric cannot open %s for %s (%s)%s",
			 name, nic->netdev, address, mesh_descriptors_hint());
	else if (limiting)
		snprintf(reason, MESH_PROVIDER_REASON_MAX,
			 "libfabric offers no %s for %s (%s): %s=%.64s is set; unset it or add the "
			 "%s",
			 name, nic->netdev, address, limiting, getenv(limiting),
			 strcmp(limiting, "FI_PROVIDER") ? "NIC" : "provider");
	else
		snprintf(reason, MESH_PROVIDER_REASON_MAX,
			 "libfabric offers no %s for %s (%s): %s; see `fi_info -p \"%s\" -s %s`",
			 name, nic->netdev, address, fi_strerror(error < 0 ? -error : error),
			 id == MESH_PROVIDER_TCP ? tcp_fi_name() : name, address);
}

static void missing_explain(const struct mesh_nic *nic, enum mesh_provider_id id, int error,
			    char *reason)
{
	unsigned int version = fi_version();

	if (FI_VERSION_LT(version, MESH_FI_VERSION))
		snprintf(reason, MESH_PROVIDER_REASON_MAX,
			 "libfabric %u.%u is too old: %u.%u or later is needed", FI_MAJOR(version),
			 FI_MINOR(version), FI_MAJOR(MESH_FI_VERSION), FI_MINOR(MESH_FI_VERSION));
	else if (id == MESH_PROVIDER_VERBS_RXM)
		verbs_missing_explain(nic, reason);
	else
		tcp_missing_explain(nic, id, error, reason);
}

int mesh_provider_find(const struct mesh_nic *nic, enum mesh_provider_id wanted,
		       struct fi_info **info, enum mesh_provider_id *id, char *reason)
{
	enum mesh_provider_id order[] = {MESH_PROVIDER_VERBS_RXM, MESH_PROVIDER_TCP};
	size_t i = nic->rdma.device[0] ? 0 : 1, end = 2;
	int ret = -ENODEV;

	reason[0] = '\0';
	if (wanted != MESH_PROVIDER_NONE) {
		order[0] = wanted;
		i = 0;
		end = 1;
	}
	for (; i < end; i++) {
		ret = provider_query(nic, order[i], info);
		if (!ret) {
			*id = order[i];
			return 0;
		}
		missing_explain(nic, order[i], ret, reason);
	}
	return -ENODEV;
}

int mesh_provider_assign(enum mesh_provider_id wanted, struct mesh_nic_table *table, int index,
			 struct mesh_provider_verdict *verdict)
{
	struct mesh_nic *nic = &table->nics[index];
	struct fi_info *info;
	int ret;

	ret = mesh_provider_find(nic, wanted, &info, &verdict->id, verdict->note);
	if (!ret) {
		fi_freeinfo(info);
		return 0;
	}
	mesh_nic_leave(nic, MESH_NIC_NO_PROVIDER, "%s", verdict->note);
	mesh_nic_table_sort(table);
	return ret;
}

int mesh_providers_assign(const char *setting, struct mesh_nic_table *table,
			  struct mesh_provider_verdict *verdicts)
{
	enum mesh_provider_id wanted = mesh_provider_id_parse(setting);
	int dev = 0;

	if (*setting && wanted == MESH_PROVIDER_NONE && !mesh_provider_list_falls_back(setting)) {
		mesh_warn("NCCL_MESH_PROVIDER=\"%.64s\" is not known; use verbs;ofi_rxm, tcp, "
			  "tcp;ofi_rxm or \"verbs;ofi_rxm,tcp\", or leave it unset",
			  setting);
		return -EINVAL;
	}
	while (dev < table->num_taken) {
		struct mesh_provider_verdict *verdict = &verdicts[dev];

		if (!mesh_provider_assign(wanted, table, dev, verdict))
			dev++;
	}
	return 0;
}

bool mesh_tcp_endpoints_are_small(void)
{
	return FI_VERSION_LT(fi_version(), FI_VERSION(1, 18));
}

const char *mesh_libfabric_version(char *text)
{
	/* FI_TYPE_VERSION takes no value, but fi_tostr_r() writes nothing for NULL. */
	snprintf(text, MESH_LIBFABRIC_VERSION_MAX, "?");
	fi_tostr_r(text, MESH_LIBFABRIC_VERSION_MAX, "", FI_TYPE_VERSION);
	return text;
}
