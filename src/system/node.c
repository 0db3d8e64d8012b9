/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - who this node is, and its links, addresses and routes, as the kernel reports them over a
 * netlink socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/random.h"
#include "system/node.h"

const char *mesh_node_name(const char *setting, char *name, size_t size)
{
	if (*setting)
		snprintf(name, size, "%s", setting);
	else if (gethostname(name, size))
		snprintf(name, size, "(unnamed)");
	name[size - 1] = '\0';
	return name;
}

uint64_t mesh_node_id(void)
{
	uint64_t hash = MESH_HASH_START;
	char boot_id[64];
	struct stat ns;
	ssize_t n;
	int fd;

	fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, boot_id, sizeof(boot_id));
		if (n > 0)
			hash = mesh_hash_add(hash, boot_id, (size_t)n);
		close(fd);
	}
	if (!stat("/proc/self/ns/net", &ns))
		hash = mesh_hash_add(hash, &ns.st_ino, sizeof(ns.st_ino));
	return hash;
}

/* ---- netlink -------------------------------------------------------------------------------- */

/* The kernel marks a dump during which something changed; the most attempts to get a clean one. */
#define DUMP_ATTEMPTS 5

struct load {
	struct mesh_nic *nics;
	int num;
	int error; /* -ENOMEM from a callback; libnl cannot pass it on */
};

static struct mesh_nic *nic_find(struct load *load, unsigned int ifindex)
{
	return (struct mesh_nic *)mesh_nic_find(load->nics, load->num, ifindex);
}

/* The NIC @ifindex, added if missing; NULL if memory is short. */
static struct mesh_nic *nic_get(struct load *load, unsigned int ifindex)
{
	struct mesh_nic *nic = nic_find(load, ifindex);

	if (nic)
		return nic;
	nic = mesh_array_room(load->nics, (size_t)load->num, sizeof(*nic));
	if (!nic)
		return NULL;
	load->nics = nic;
	nic += load->num++;
	memset(nic, 0, sizeof(*nic));
	nic->ifindex = ifindex;
	return nic;
}

/* Stores the last bytes of a long hardware address: of IPoIB's 20, the port GUID. */
static void mac_store(struct mesh_nic *nic, const struct nlattr *attr)
{
	size_t len = (size_t)nla_len(attr), size = sizeof(nic->mac);
	const uint8_t *bytes = nla_data(attr);

	memset(nic->mac, 0, size);
	if (len > size)
		memcpy(nic->mac, bytes + len - size, size);
	else
		memcpy(nic->mac, bytes, len);
}

static void link_kind_store(struct mesh_nic *nic, struct nlattr *attr)
{
	static const struct nla_policy policy[IFLA_INFO_MAX + 1] = {
		[IFLA_INFO_KIND] = {.type = NLA_STRING},
	};
	struct nlattr *info[IFLA_INFO_MAX + 1];

	if (nla_parse_nested(info, IFLA_INFO_MAX, attr, policy) || !info[IFLA_INFO_KIND])
		return;
	/* No known name is that long, so a truncated one stays unknown. */
	snprintf(nic->link_kind, sizeof(nic->link_kind), "%s",
		 nla_get_string(info[IFLA_INFO_KIND]));
}

/*
 * IFLA_LINK of a veth pair is the other end, not a lower interface. With IFLA_LINK_NETNSID the
 * index belongs to another namespace.
 */
static unsigned int lower_of(const struct mesh_nic *nic, const struct nlattr *link,
			     const struct nlattr *netns)
{
	unsigned int lower = link && !netns ? nla_get_u32(link) : 0;

	if (!strcmp(nic->link_kind, "veth") || !strcmp(nic->link_kind, "netkit"))
		return 0;
	return lower == nic->ifindex ? 0 : lower;
}

static uint64_t attr_hash(uint64_t hash, const struct nlattr *attr)
{
	return mesh_hash_add(hash, nla_data(attr), (size_t)nla_len(attr));
}

/*
 * A port of a DGX Spark is two PCI functions of one card: they have the same switch id, which is
 * the card's, and port name. Both ends of a veth pair in this namespace are ports.
 */
static uint64_t port_id_of(const struct mesh_nic *nic, struct nlattr *const *attrs)
{
	if (attrs[IFLA_PHYS_PORT_ID])
		return attr_hash(MESH_HASH_START, attrs[IFLA_PHYS_PORT_ID]);
	if (attrs[IFLA_PHYS_SWITCH_ID] && attrs[IFLA_PHYS_PORT_NAME])
		return attr_hash(attr_hash(MESH_HASH_START, attrs[IFLA_PHYS_SWITCH_ID]),
				 attrs[IFLA_PHYS_PORT_NAME]);
	if (!strcmp(nic->link_kind, "veth") && attrs[IFLA_LINK] && !attrs[IFLA_LINK_NETNSID])
		return nic->ifindex;
	return attrs[IFLA_PHYS_PORT_NAME] ? MESH_NIC_PORT_UNSURE : MESH_NIC_PORT_NONE;
}

static enum mesh_nic_state state_of(unsigned int flags, const struct nlattr *carrier)
{
	if (!(flags & IFF_UP))
		return MESH_NIC_DOWN;
	if (carrier ? !nla_get_u8(carrier) : !(flags & IFF_RUNNING))
		return MESH_NIC_NO_CARRIER;
	/* The kernel sets IFF_RUNNING up to 1 s after the carrier (net/core/link_watch.c). */
	return flags & IFF_RUNNING ? MESH_NIC_RUNS : MESH_NIC_STARTING;
}

static int link_read(struct nl_msg *msg, void *arg)
{
	static const struct nla_policy policy[IFLA_MAX + 1] = {
		[IFLA_IFNAME] = {.type = NLA_STRING, .maxlen = IF_NAMESIZE},
		[IFLA_MTU] = {.type = NLA_U32},
		[IFLA_CARRIER] = {.type = NLA_U8},
		[IFLA_MASTER] = {.type = NLA_U32},
		[IFLA_LINK] = {.type = NLA_U32},
		[IFLA_LINKINFO] = {.type = NLA_NESTED},
	};
	struct nlmsghdr *header = nlmsg_hdr(msg);
	struct nlattr *attrs[IFLA_MAX + 1];
	struct load *load = arg;
	struct ifinfomsg *info;
	struct mesh_nic *nic;

	if (header->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse(header, sizeof(*info), attrs, IFLA_MAX, policy) || !attrs[IFLA_IFNAME])
		return NL_SKIP;
	info = nlmsg_data(header);
	if (info->ifi_index <= 0)
		return NL_SKIP;
	nic = nic_get(load, (unsigned int)info->ifi_index);
	if (!nic) {
		load->error = -ENOMEM;
		return NL_STOP;
	}
	snprintf(nic->netdev, sizeof(nic->netdev), "%s", nla_get_string(attrs[IFLA_IFNAME]));
	nic->link_type = info->ifi_type;
	nic->state = state_of(info->ifi_flags, attrs[IFLA_CARRIER]);
	nic->mtu = attrs[IFLA_MTU] ? (int)nla_get_u32(attrs[IFLA_MTU]) : 0;
	nic->master = attrs[IFLA_MASTER] ? nla_get_u32(attrs[IFLA_MASTER]) : 0;
	if (attrs[IFLA_ADDRESS])
		mac_store(nic, attrs[IFLA_ADDRESS]);
	if (attrs[IFLA_LINKINFO])
		link_kind_store(nic, attrs[IFLA_LINKINFO]);
	nic->port_id = port_id_of(nic, attrs);
	nic->lower = lower_of(nic, attrs[IFLA_LINK], attrs[IFLA_LINK_NETNSID]);
	return NL_OK;
}

/* Primary addresses precede the others; addresses that do not fit are dropped from the end. */
static void addr_store(struct mesh_nic *nic, const struct mesh_addr *addr, bool primary)
{
	int i, at = primary ? nic->num_primary : nic->num_addrs;

	for (i = 0; i < nic->num_addrs; i++)
		if (mesh_addr_equal(&nic->addrs[i], addr))
			return;
	if (at == MESH_NIC_ADDRS_MAX)
		return;
	nic->num_addrs -= nic->num_addrs == MESH_NIC_ADDRS_MAX;
	memmove(&nic->addrs[at + 1], &nic->addrs[at],
		(size_t)(nic->num_addrs - at) * sizeof(*addr));
	nic->addrs[at] = *addr;
	nic->num_addrs++;
	nic->num_primary += primary;
}

/* Fills @addr from the message; false for another family or a wrong size. @peer may be NULL. */
static bool addr_from_attr(const struct ifaddrmsg *info, const struct nlattr *attr,
			   const struct nlattr *peer, struct mesh_addr *addr)
{
	size_t size = (size_t)nla_len(attr);

	if (!mesh_addr_from_bytes(info->ifa_family, nla_data(attr), size, addr) ||
	    info->ifa_prefixlen > addr->prefix_len)
		return false;
	addr->prefix_len = info->ifa_prefixlen;
	if (peer && (size_t)nla_len(peer) == size && memcmp(nla_data(peer), addr->bytes, size)) {
		addr->has_peer = true;
		memcpy(addr->peer, nla_data(peer), size);
	}
	if (addr->family == MESH_FAMILY_IPV6 && mesh_addr_is_link_local(addr))
		addr->scope_id = info->ifa_index;
	return true;
}

static int addr_read(struct nl_msg *msg, void *arg)
{
	static const struct nla_policy policy[IFA_MAX + 1] = {
		[IFA_FLAGS] = {.type = NLA_U32},
	};
	struct nlmsghdr *header = nlmsg_hdr(msg);
	struct nlattr *attrs[IFA_MAX + 1], *attr;
	struct ifaddrmsg *info;
	struct mesh_addr addr;
	struct mesh_nic *nic;
	uint32_t flags;

	if (header->nlmsg_type != RTM_NEWADDR ||
	    nlmsg_parse(header, sizeof(*info), attrs, IFA_MAX, policy))
		return NL_SKIP;
	info = nlmsg_data(header);
	nic = nic_find(arg, info->ifa_index);
	/* IFA_ADDRESS is the peer of a point-to-point link, else equal to IFA_LOCAL or alone. */
	attr = attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS];
	if (!nic || !attr || !addr_from_attr(info, attr, attrs[IFA_ADDRESS], &addr))
		return NL_SKIP;
	flags = attrs[IFA_FLAGS] ? nla_get_u32(attrs[IFA_FLAGS]) : info->ifa_flags;
	/* bind() to these fails; an optimistic one is tentative too, but can be bound. */
	if (flags & IFA_F_DADFAILED || (flags & IFA_F_TENTATIVE && !(flags & IFA_F_OPTIMISTIC)))
		nic->num_unready++;
	else
		addr_store(nic, &addr, !(flags & (IFA_F_SECONDARY | IFA_F_DEPRECATED)));
	return NL_OK;
}

static void default_route_mark(struct load *load, unsigned int ifindex)
{
	struct mesh_nic *nic = nic_find(load, ifindex);

	if (nic)
		nic->management = MESH_NIC_DEFAULT_ROUTE;
}

static void next_hops_mark(struct load *load, const struct nlattr *attr)
{
	const struct rtnexthop *hop = nla_data(attr);
	int left = nla_len(attr);

	while (left >= (int)sizeof(*hop) && RTNH_OK(hop, left)) {
		default_route_mark(load, (unsigned int)hop->rtnh_ifindex);
		left -= (int)RTNH_ALIGN((unsigned int)hop->rtnh_len);
		hop = RTNH_NEXT(hop);
	}
}

static int route_read(struct nl_msg *msg, void *arg)
{
	static const struct nla_policy policy[RTA_MAX + 1] = {
		[RTA_OIF] = {.type = NLA_U32},
		[RTA_TABLE] = {.type = NLA_U32},
	};
	struct nlmsghdr *header = nlmsg_hdr(msg);
	struct nlattr *attrs[RTA_MAX + 1];
	struct rtmsg *route;
	uint32_t table;

	if (header->nlmsg_type != RTM_NEWROUTE || !nlmsg_valid_hdr(header, sizeof(*route)))
		return NL_SKIP;
	route = nlmsg_data(header); /* most routes of a large table are skipped here, unparsed */
	if (route->rtm_dst_len || route->rtm_type != RTN_UNICAST ||
	    nlmsg_parse(header, sizeof(*route), attrs, RTA_MAX, policy))
		return NL_SKIP;
	table = attrs[RTA_TABLE] ? nla_get_u32(attrs[RTA_TABLE]) : route->rtm_table;
	if (table != RT_TABLE_MAIN)
		return NL_SKIP;
	if (attrs[RTA_OIF])
		default_route_mark(arg, nla_get_u32(attrs[RTA_OIF]));
	if (attrs[RTA_MULTIPATH])
		next_hops_mark(arg, attrs[RTA_MULTIPATH]);
	return NL_OK;
}

/* One whole dump. Returns libnl's 0 or negative error. */
static int dump(struct nl_sock *sock, int type, void *header, size_t size,
		nl_recvmsg_msg_cb_t callback, struct load *load)
{
	int ret;

	nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, callback, load);
	ret = nl_send_simple(sock, type, NLM_F_DUMP, header, size);
	return ret < 0 ? ret : nl_recvmsgs_default(sock);
}

/* Requests all dumps once. Returns libnl's 0 or negative error; the caller checks load->error. */
static int load_once(struct nl_sock *sock, struct load *load)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	struct ifaddrmsg addr = {.ifa_family = AF_UNSPEC};
	struct rtmsg route4 = {.rtm_family = AF_INET}, route6 = {.rtm_family = AF_INET6};
	const struct {
		int type;
		void *header;
		size_t size;
		nl_recvmsg_msg_cb_t callback;
	} dumps[] = {
		{RTM_GETLINK, &link, sizeof(link), link_read},
		{RTM_GETADDR, &addr, sizeof(addr), addr_read},
		{RTM_GETROUTE, &route4, sizeof(route4), route_read},
		{RTM_GETROUTE, &route6, sizeof(route6), route_read},
	};
	int ret, changed = 0;
	size_t i;

	load->num = 0;
	for (i = 0; i < sizeof(dumps) / sizeof(dumps[0]); i++) {
		ret = dump(sock, dumps[i].type, dumps[i].header, dumps[i].size, dumps[i].callback,
			   load);
		if (ret == -NLE_DUMP_INTR)
			changed = ret;
		else if (ret < 0 && dumps[i].type != RTM_GETROUTE)
			return ret;
		else if (ret < 0) /* sandboxes have no routes; only a hint is lost */
			mesh_trace("no list of routes: %s", nl_geterror(ret));
		if (load->error)
			return 0;
	}
	return changed;
}

int mesh_netlink_load(struct mesh_nic **nics, int *num_nics)
{
	struct load load = {0};
	struct nl_sock *sock;
	int ret, attempt;

	sock = nl_socket_alloc();
	if (!sock)
		return -ENOMEM;
	/* Without this libnl fails on a message longer than a page. */
	nl_socket_enable_msg_peek(sock);
	ret = nl_connect(sock, NETLINK_ROUTE);
	for (attempt = 0; !ret && attempt < DUMP_ATTEMPTS; attempt++) {
		ret = load_once(sock, &load);
		if (ret != -NLE_DUMP_INTR)
			break;
		ret = 0; /* use the answer of the last attempt */
	}
	if (ret < 0) {
		mesh_warn("the kernel does not list its network interfaces over netlink: %s",
			  nl_geterror(ret));
		ret = ret == -NLE_NOMEM ? -ENOMEM : -EIO;
	} else {
		ret = load.error;
	}
	nl_socket_free(sock);
	if (ret) {
		free(load.nics);
		return ret;
	}
	*nics = load.nics;
	*num_nics = load.num;
	return 0;
}

/* ---- routes -------------------------------------------------------------------------------- */

/* libnl translates the kernel's errno into its own numbers; we need the kernel's. */
static int error_read(struct sockaddr_nl *from, struct nlmsgerr *error, void *arg)
{
	int *kernel_error = arg;

	(void)from;
	*kernel_error = error->error;
	return NL_STOP;
}

static int leaves_by_read(struct nl_msg *msg, void *arg)
{
	static const struct nla_policy policy[RTA_MAX + 1] = {
		[RTA_OIF] = {.type = NLA_U32},
	};
	struct nlattr *attrs[RTA_MAX + 1];
	unsigned int *ifindex = arg;

	if (nlmsg_hdr(msg)->nlmsg_type != RTM_NEWROUTE ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(struct rtmsg), attrs, RTA_MAX, policy))
		return NL_SKIP;
	if (attrs[RTA_OIF])
		*ifindex = nla_get_u32(attrs[RTA_OIF]);
	return NL_OK;
}

/* Returns 0 or a negative error of libnl. */
static int question_fill(struct nl_msg *msg, const struct mesh_addr *source,
			 const struct mesh_addr *destination)
{
	int size = (int)mesh_addr_size(source->family), ret;
	struct rtmsg header = {
		.rtm_family = source->family == MESH_FAMILY_IPV4 ? AF_INET : AF_INET6,
		.rtm_src_len = (unsigned char)(8 * size),
		.rtm_dst_len = (unsigned char)(8 * size),
	};

	ret = nlmsg_append(msg, &header, sizeof(header), NLMSG_ALIGNTO);
	if (!ret)
		ret = nla_put(msg, RTA_SRC, size, source->bytes);
	return ret ? ret : nla_put(msg, RTA_DST, size, destination->bytes);
}

/* Returns NULL if there is no socket. */
static struct nl_sock *routes_open(void)
{
	struct nl_sock *sock = nl_socket_alloc();

	if (!sock)
		return NULL;
	/* One answer comes for each question, in order: no acknowledgement has to be read, too. */
	nl_socket_disable_auto_ack(sock);
	nl_socket_disable_seq_check(sock);
	if (!nl_connect(sock, NETLINK_ROUTE))
		return sock;
	nl_socket_free(sock);
	return NULL;
}

void mesh_routes_close(struct mesh_routes *routes)
{
	nl_socket_free(routes->sock);
	routes->sock = NULL;
}

/* The kernel answers at once. Returns 0; the kernel's own error, a negative errno; -EIO. */
static int kernel_ask(struct mesh_routes *routes, struct nl_msg *msg, unsigned int *ifindex)
{
	int ret, kernel_error = 0;

	if (!routes->sock)
		routes->sock = routes_open();
	if (!routes->sock)
		return -EIO;
	nl_socket_modify_cb(routes->sock, NL_CB_VALID, NL_CB_CUSTOM, leaves_by_read, ifindex);
	nl_socket_modify_err_cb(routes->sock, NL_CB_CUSTOM, error_read, &kernel_error);
	ret = nl_send_auto(routes->sock, msg);
	if (ret >= 0)
		ret = nl_recvmsgs_default(routes->sock);
	if (kernel_error)
		return kernel_error;
	if (ret < 0)
		mesh_routes_close(routes); /* the answer may come after all */
	return ret < 0 ? -EIO : 0;
}

int mesh_route_find(struct mesh_routes *routes, const struct mesh_addr *source,
		    const struct mesh_addr *destination, unsigned int *ifindex)
{
	struct mesh_routes own = {0};
	unsigned int found = 0;
	struct nl_msg *msg;
	int ret = -ENOMEM;

	if (source->family != destination->family || !mesh_addr_size(source->family))
		return -EINVAL;
	msg = nlmsg_alloc_simple(RTM_GETROUTE, NLM_F_REQUEST);
	if (msg && !question_fill(msg, source, destination))
		ret = kernel_ask(routes ? routes : &own, msg, &found);
	nlmsg_free(msg);
	mesh_routes_close(&own);
	if (ret)
		return ret;
	*ifindex = found;
	return found ? 0 : -EIO;
}

bool mesh_route_leads(struct mesh_routes *routes, const struct mesh_addr *source,
		      unsigned int ifindex, const struct mesh_addr *destination)
{
	unsigned int leaves_by;

	return !mesh_route_find(routes, source, destination, &leaves_by) && leaves_by == ifindex;
}
