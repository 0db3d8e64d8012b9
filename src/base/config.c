/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - the table of settings and the one routine that parses it. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/log.h"

#define TEXT(variable, setting_type, member, help_text, ...)                                       \
	{                                                                                          \
		.name = (variable), .type = (setting_type),                                        \
		.offset = offsetof(struct mesh_config, member),                                    \
		.size = sizeof(((struct mesh_config *)0)->member), .default_text = "",             \
		.help = (help_text), __VA_ARGS__                                                   \
	}
#define NUMBER(variable, setting_type, member, standard, low, high, help_text)                     \
	{                                                                                          \
		.name = (variable), .type = (setting_type),                                        \
		.offset = offsetof(struct mesh_config, member),                                    \
		.size = sizeof(((struct mesh_config *)0)->member), .default_text = (standard),     \
		.min = (low), .max = (high), .help = (help_text)                                   \
	}

const struct mesh_setting mesh_settings[] = {
	TEXT("NCCL_MESH_NICS", MESH_SETTING_LIST, nics,
	     "NICs to use, by netdev or RDMA device name, with NCCL_IB_HCA's grammar: a comma list "
	     "of prefixes; a leading '=' selects exact names, a leading '^' excludes the names. "
	     "Default: all that look like mesh NICs."),
	TEXT("NCCL_MESH_ADDRESSES", MESH_SETTING_LIST, addresses,
	     "Comma list of subnets (10.0.0.0/8,fd00::/8). A NIC with several addresses uses the "
	     "first address that lies in one of them. Default: IPv4 before IPv6, link-local last."),
	TEXT("NCCL_MESH_PROVIDER", MESH_SETTING_LIST, provider,
	     "libfabric provider to use on every NIC: verbs;ofi_rxm, tcp or tcp;ofi_rxm. Default: "
	     "for each link verbs;ofi_rxm if both ends have an RDMA device, else tcp. "
	     "'verbs;ofi_rxm,tcp': tcp also where verbs;ofi_rxm does not get through. Must be the "
	     "same on all nodes."),
	TEXT("NCCL_MESH_ROUTED", MESH_SETTING_TEXT, routed,
	     "Paths between two nodes without a common subnet. 'auto', the default: those on which "
	     "the kernels' routes go from a mesh NIC of one node to one of the other, and back "
	     "over the same two NICs; 'management': also any over the management network, if no "
	     "others exist; 'off': none.",
	     .choices = "auto|management|off"),
	TEXT("NCCL_MESH_RAILS", MESH_SETTING_LIST, rails,
	     "Which NICs belong together on a routed fabric: a comma list of rails, each of them "
	     "the subnets of its NICs on all nodes (10.1.0.0/16+10.65.0.0/16,10.2.0.0/16). A "
	     "connection pairs NICs of one rail first. Default: NICs with the same number in PCI "
	     "order, if both nodes have as many. Must be the same on all nodes."),
	TEXT("NCCL_MESH_NEAR", MESH_SETTING_TEXT, near,
	     "Whether a connection uses only the NIC that NCCL chose and those near it (same PCIe "
	     "switch or NUMA node). 'auto', the default: between nodes whose NICs are all on one "
	     "switched or routed fabric; 'always': also on a fabric with a subnet for each rail, "
	     "which looks like parallel cables; 'off': each connection uses all NICs that reach "
	     "the peer.",
	     .choices = "auto|always|off"),
	TEXT("NCCL_MESH_NODE_NAME", MESH_SETTING_TEXT, node_name,
	     "This node's name in messages. Default: the host name."),
	TEXT("NCCL_MESH_SITE", MESH_SETTING_TEXT, site,
	     "The data centre of this node, of which 15 characters count. Routes over relays of "
	     "the same site come first, paths to another site have as many TCP connections as the "
	     "line needs, and `fi_mesh neighbours` shows it on the other nodes. Default: none."),
	NUMBER("NCCL_MESH_CONNECT_TIMEOUT", MESH_SETTING_SECONDS, connect_timeout_s, "60", 1, 86400,
	       "Seconds after which a connection attempt fails. A peer process that is alive "
	       "answers at once, even while its NCCL is busy elsewhere."),
	NUMBER("NCCL_MESH_ACCEPT_TIMEOUT", MESH_SETTING_SECONDS, accept_timeout_s, "600", 1, 86400,
	       "Seconds for which a listener waits for its peer. The default is long because the "
	       "ranks of a job start at different times."),
	NUMBER("NCCL_MESH_DEAD_PEER_TIMEOUT", MESH_SETTING_SECONDS, dead_peer_timeout_s, "10", 2,
	       3600,
	       "Seconds without an answer from a peer's kernel after which the peer counts as "
	       "lost. A path counts as lost after 3 s at most if its connection has another one. "
	       "The exit of a peer process is detected at once."),
	NUMBER("NCCL_MESH_RECOVERY_TIMEOUT", MESH_SETTING_SECONDS, recovery_timeout_s, "30", 1,
	       86400,
	       "How long a connection whose paths are all lost waits for one of them to come back, "
	       "counted from the peer's last answer. Then it fails."),
	NUMBER("NCCL_MESH_NEIGHBOURS", MESH_SETTING_SWITCH, neighbours, "on", 0, 1,
	       "With 'on', a process asks on each mesh NIC which node is at the other end, when it "
	       "starts and when a link changes, and answers such questions (UDP port 18621). With "
	       "'off', it sends and answers none."),
	TEXT("NCCL_MESH_RELAY", MESH_SETTING_TEXT, relay,
	     "Between two nodes without a common cable, the nodes in the middle relay. 'job', the "
	     "default: a process relays for processes of its own job (the same Slurm step, PMIx "
	     "namespace, torchrun run, or MASTER_ADDR and MASTER_PORT); 'any': for all; 'off': for "
	     "none, and it uses no relay. On nodes without a rank `fi_mesh serve --relay` relays.",
	     .choices = "job|any|off"),
	NUMBER("NCCL_MESH_RELAY_MEMORY", MESH_SETTING_BYTES, relay_memory_bytes, "256M", 1 << 20,
	       1ull << 40,
	       "Memory in which a process holds what it relays. Each connection through it takes "
	       "up to 4 MiB. If there are many, each takes less, down to 32 KiB: the default is "
	       "enough for 2,048, and further ones are refused. On RDMA NICs it counts as locked "
	       "memory."),
	TEXT("NCCL_MESH_STATS_DIR", MESH_SETTING_PATH, stats_dir,
	     "Folder of the counters that `fi_mesh watch` reads, one small file for each process: "
	     "an absolute path, or 'none' for no counters. Default: /dev/shm/nccl-net-mesh-UID."),
	TEXT("NCCL_MESH_TUNER", MESH_SETTING_TEXT, tuner,
	     "Which algorithms NCCL may use, if it is 2.21 or later. 'auto', the default: no trees "
	     "if NCCL_MESH_PLAN lists a mesh in which each node is cabled to the next one, but "
	     "some pairs share no cable; 'ring': only rings; 'off': as NCCL chooses. Must be the "
	     "same on all nodes.",
	     .choices = "auto|ring|off"),
	TEXT("NCCL_MESH_PLAN", MESH_SETTING_PATH, plan,
	     "File with the cables of the mesh, a line 'NODE[:PORT] NODE[:PORT]' for each as for "
	     "`fi_mesh plan cables:FILE`. The nodes count in the order in which the file names "
	     "them first, which must be that of the ranks; a line with one node gives it its "
	     "place. An absolute path, or 'none'. Default: no plan. Must be the same on all "
	     "nodes."),
	TEXT("NCCL_MESH_PORTS", MESH_SETTING_PORTS, ports,
	     "TCP ports on which the plugin listens on the mesh NICs, for a firewall: 40000-40100. "
	     "Each process of a node needs two of them, up to nine between two sites. RDMA itself "
	     "uses none. Default: any free port."),
	NUMBER("NCCL_MESH_DEBUG_EAGER_LIMIT", MESH_SETTING_BYTES, eager_limit_bytes, "16K", 0,
	       65536, "The largest message in the control stream, with RDMA 8K at most."),
	NUMBER("NCCL_MESH_DEBUG_SEGMENT_SIZE", MESH_SETTING_BYTES, segment_bytes, "4M", 4096,
	       1 << 30, "Of a large message, with several paths 512K at most, over tcp 1M."),
	NUMBER("NCCL_MESH_DEBUG_MAX_PATHS", MESH_SETTING_NUMBER, max_paths, "8", 1, 8,
	       "Paths of one connection."),
	NUMBER("NCCL_MESH_DEBUG_LANES", MESH_SETTING_NUMBER, lanes, "0", 0, MESH_CONFIG_LANES_MAX,
	       "TCP connections of a long line between two NICs; 0: as many as it needs."),
	{.name = NULL},
};

/* The prefix of all our own names. */
#define PREFIX "NCCL_MESH_"

#undef TEXT
#undef NUMBER

static int number_parse(const char *text, enum mesh_setting_type type, uint64_t *value)
{
	unsigned int shift = 0;
	uint64_t result;
	char *end;

	if (type == MESH_SETTING_SWITCH && (!strcmp(text, "on") || !strcmp(text, "off"))) {
		*value = !strcmp(text, "on");
		return 0;
	}
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	result = strtoull(text, &end, 10);
	if (errno)
		return -EINVAL;
	if (type == MESH_SETTING_BYTES && *end) {
		const char *found = strchr("KMG", *end & ~0x20); /* k and K are the same */

		if (!found || !*found)
			return -EINVAL;
		shift = 10 * (unsigned int)(found - "KMG" + 1);
		end++;
	}
	if (*end || result > (UINT64_MAX >> shift))
		return -EINVAL;
	*value = result << shift;
	return 0;
}

/* True if @text is one of the words of "a|b|c". */
static bool choice_is_known(const char *choices, const char *text)
{
	const size_t len = strlen(text);

	for (;; choices++) {
		if (strcspn(choices, "|") == len && !memcmp(choices, text, len))
			return true;
		choices = strchr(choices, '|');
		if (!choices)
			return false;
	}
}

/* Stores @text into @config if it is a legal value of @setting; else an error and no change. */
static int setting_store(const struct mesh_setting *setting, const char *text,
			 struct mesh_config *config)
{
	char *member = (char *)config + setting->offset;
	struct mesh_port_range range;
	uint64_t value;

	if (mesh_setting_is_text(setting)) {
		if (strlen(text) >= setting->size)
			return setting->type == MESH_SETTING_LIST ? -E2BIG : -EINVAL;
		if (setting->type == MESH_SETTING_PATH && *text && *text != '/' &&
		    strcmp(text, "none"))
			return -EINVAL;
		if (setting->type == MESH_SETTING_PORTS && mesh_port_range_parse(text, &range))
			return -EINVAL;
		if (setting->choices && *text && !choice_is_known(setting->choices, text))
			return -EINVAL;
		memcpy(member, text, strlen(text) + 1);
		return 0;
	}
	if (number_parse(text, setting->type, &value))
		return -EINVAL;
	if (value < setting->min || value > setting->max)
		return -EINVAL;
	memcpy(member, &value, sizeof(value));
	return 0;
}

static const char *environment_lookup(void *arg, const char *name)
{
	(void)arg;
	return getenv(name);
}

static const char *unit_text(enum mesh_setting_type type)
{
	if (type == MESH_SETTING_BYTES)
		return " (bytes; K, M, G allowed)";
	if (type == MESH_SETTING_SWITCH)
		return " (on or off)";
	return type == MESH_SETTING_SECONDS ? " (seconds)" : "";
}

static void setting_refuse(const struct mesh_setting *setting, const char *text)
{
	if (mesh_setting_is_text(setting) && strlen(text) >= setting->size)
		mesh_warn("%s has %zu bytes, the limit is %zu; %s", setting->name, strlen(text),
			  setting->size - 1,
			  setting->type == MESH_SETTING_LIST ? "the plugin does not start"
							     : "using the default");
	else if (setting->choices)
		mesh_warn("%s=\"%.64s\" is none of %s; using the default", setting->name, text,
			  setting->choices);
	else if (setting->type == MESH_SETTING_PORTS)
		mesh_warn("%s=\"%.64s\" is no range of ports such as 40000-40100; using any port",
			  setting->name, text);
	else if (setting->type == MESH_SETTING_PATH)
		mesh_warn("%s=\"%.64s\" is neither an absolute path nor 'none'; using the default",
			  setting->name, text);
	else
		mesh_warn("%s=\"%.64s\" is not a whole number from %" PRIu64 " to %" PRIu64
			  "%s; using the default, %s",
			  setting->name, text, setting->min, setting->max, unit_text(setting->type),
			  setting->default_text);
}

static bool name_is_known(const char *name, size_t len)
{
	const struct mesh_setting *setting;

	for (setting = mesh_settings; setting->name; setting++) {
		if (strlen(setting->name) == len && !memcmp(setting->name, name, len))
			return true;
	}
	return false;
}

/* An unknown name is a typing error or a setting of another plugin; the user expects an effect. */
static int unknown_names_report(void)
{
	char **variable;
	int ret = 0;
	size_t len;

	for (variable = environ; variable && *variable; variable++) {
		len = strcspn(*variable, "=");
		if (strncmp(*variable, PREFIX, strlen(PREFIX)) || name_is_known(*variable, len))
			continue;
		mesh_warn("%.*s: unknown setting, ignored; `fi_mesh config` lists the settings",
			  len < MESH_CONFIG_TEXT_MAX ? (int)len : MESH_CONFIG_TEXT_MAX, *variable);
		ret = -EINVAL;
	}
	return ret;
}

int mesh_config_load(mesh_config_lookup lookup, void *arg, struct mesh_config *config)
{
	const struct mesh_setting *setting;
	const char *text;
	int ret = 0, error;

	if (!lookup) {
		lookup = environment_lookup;
		ret = unknown_names_report();
	}
	memset(config, 0, sizeof(*config));
	for (setting = mesh_settings; setting->name; setting++) {
		setting_store(setting, setting->default_text, config);
		text = lookup(arg, setting->name);
		error = text && *text ? setting_store(setting, text, config) : 0;
		if (!error)
			continue;
		setting_refuse(setting, text);
		if (ret != -E2BIG)
			ret = error;
	}
	return ret;
}

void mesh_config_log(const struct mesh_config *config)
{
	const struct mesh_setting *setting;
	struct mesh_config standard;

	memset(&standard, 0, sizeof(standard));
	for (setting = mesh_settings; setting->name; setting++) {
		const char *member = (const char *)config + setting->offset;
		uint64_t value, standard_value;

		if (mesh_setting_is_text(setting)) {
			if (*member)
				mesh_info("%s=%s", setting->name, member);
			continue;
		}
		setting_store(setting, setting->default_text, &standard);
		memcpy(&value, member, sizeof(value));
		memcpy(&standard_value, (char *)&standard + setting->offset, sizeof(value));
		if (value != standard_value)
			mesh_info("%s=%" PRIu64 " (default %s)", setting->name, value,
				  setting->default_text);
	}
}

#define PORT_MAX 65535

/* Reads a port at @text; returns what stands behind it, or NULL. */
static const char *port_parse(const char *text, uint16_t *port)
{
	unsigned int value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		value = 10 * value + (unsigned int)(*at - '0');
		if (value > PORT_MAX)
			return NULL;
	}
	*port = (uint16_t)value;
	return at == text || !value ? NULL : at;
}

int mesh_port_range_parse(const char *text, struct mesh_port_range *range)
{
	struct mesh_port_range found;
	const char *rest;

	*range = (struct mesh_port_range){0, 0};
	if (!*text)
		return 0;
	rest = port_parse(text, &found.first);
	if (!rest)
		return -EINVAL;
	found.last = found.first;
	if (*rest == '-')
		rest = port_parse(rest + 1, &found.last);
	if (!rest || *rest || found.last < found.first)
		return -EINVAL;
	*range = found;
	return 0;
}

unsigned int mesh_port_range_size(const struct mesh_port_range *range)
{
	return (unsigned int)(range->last - range->first) + 1;
}

uint16_t mesh_port_range_get(const struct mesh_port_range *range, unsigned int number)
{
	if (!range->first)
		return 0;
	return (uint16_t)(range->first +
			  ((unsigned int)getpid() + number) % mesh_port_range_size(range));
}
