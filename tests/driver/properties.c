/* SPDX-License-Identifier: Apache-2.0 */
/* properties.c - every ABI's properties, asked for with poisoned memory, as the newest ones. */
#include <stdio.h>
#include <string.h>

#include "adapter.h"

/* The value that NCCL's compat code uses for plugins without this property. */
#define COMPAT_MAX_BYTES ((size_t)1 << 30)

static void note_unset(char *unset, const char *name, const void *field, size_t size)
{
	const uint8_t *bytes = field;
	size_t used = strlen(unset);

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != ADAPTER_POISON)
			return;
	snprintf(unset + used, ADAPTER_UNSET_MAX - used, "%s%s", used ? ", " : "", name);
}

/* Copies a field and notes it if the plugin left it alone. */
#define TAKE(to, from, field, name)                                                                \
	do {                                                                                       \
		note_unset(unset, name, &(from)->field, sizeof((from)->field));                    \
		(to)->field = (from)->field;                                                       \
	} while (0)

#define TAKE_V6(to, from)                                                                          \
	do {                                                                                       \
		TAKE(to, from, identity.name, "name");                                             \
		TAKE(to, from, identity.pci_path, "pciPath");                                      \
		TAKE(to, from, identity.guid, "guid");                                             \
		TAKE(to, from, pointer_support, "ptrSupport");                                     \
		TAKE(to, from, link.speed, "speed");                                               \
		TAKE(to, from, link.port, "port");                                                 \
		TAKE(to, from, link.latency, "latency");                                           \
		TAKE(to, from, link.max_comms, "maxComms");                                        \
		TAKE(to, from, link.max_receives, "maxRecvs");                                     \
	} while (0)

#define TAKE_V7(to, from)                                                                          \
	do {                                                                                       \
		TAKE_V6(to, from);                                                                 \
		TAKE(to, from, device.type, "netDeviceType");                                      \
		TAKE(to, from, device.version, "netDeviceVersion");                                \
	} while (0)

#define TAKE_V8(to, from)                                                                          \
	do {                                                                                       \
		TAKE_V7(to, from);                                                                 \
		TAKE(to, from, registration_is_global, "regIsGlobal");                             \
	} while (0)

#define TAKE_V9(to, from)                                                                          \
	do {                                                                                       \
		TAKE_V8(to, from);                                                                 \
		TAKE(to, from, force_flush, "forceFlush");                                         \
		TAKE(to, from, members.num_devs, "vProps.ndevs");                                  \
		note_unset(unset, "vProps.devs[0]", &(from)->members.devs[0], sizeof(int));        \
		memcpy((to)->members.devs, (from)->members.devs, sizeof((from)->members.devs));    \
		TAKE(to, from, limits.max_p2p_bytes, "maxP2pBytes");                               \
		TAKE(to, from, limits.max_coll_bytes, "maxCollBytes");                             \
	} while (0)

static void fill_compat(struct nccl_net_properties_newest *properties, int dev)
{
	memset(properties, 0, sizeof(*properties));
	properties->device.type = NCCL_DEVICE_HOST;
	properties->members.num_devs = 1;
	properties->members.devs[0] = dev;
	properties->limits.max_p2p_bytes = COMPAT_MAX_BYTES;
	properties->limits.max_coll_bytes = COMPAT_MAX_BYTES;
	properties->rail_id = NCCL_UNDEFINED;
	properties->plane_id = NCCL_UNDEFINED;
}

/* One function per ABI that has its own properties: @raw is poisoned and handed to the plugin. */
#define ASK(name, version, take, more)                                                             \
	static enum nccl_result name(const struct adapter *adapter, int dev,                       \
				     struct nccl_net_properties_newest *properties, char *unset)   \
	{                                                                                          \
		const struct nccl_net_##version *table = adapter->table;                           \
		struct nccl_net_properties_##version raw;                                          \
		enum nccl_result result;                                                           \
                                                                                                   \
		memset(&raw, ADAPTER_POISON, sizeof(raw));                                         \
		result = table->get_properties(dev, &raw);                                         \
		if (result)                                                                        \
			return result;                                                             \
		take(properties, &raw);                                                            \
		more return NCCL_RESULT_SUCCESS;                                                   \
	}

ASK(ask_v6, v6, TAKE_V6, )
ASK(ask_v7, v7, TAKE_V7, )
ASK(ask_v8, v8, TAKE_V8, )
ASK(ask_v9, v9, TAKE_V9, )
ASK(ask_v11, v11, TAKE_V9, TAKE(properties, &raw, max_multi_request_size, "maxMultiRequestSize");)
ASK(ask_v12, v12, TAKE_V9, TAKE(properties, &raw, max_multi_request_size, "maxMultiRequestSize");
    TAKE(properties, &raw, rail_id, "railId"); TAKE(properties, &raw, plane_id, "planeId");)

enum nccl_result adapter_properties(const struct adapter *adapter, int dev,
				    struct nccl_net_properties_newest *properties, char *unset)
{
	static enum nccl_result (*const ask[])(const struct adapter *adapter, int dev,
					       struct nccl_net_properties_newest *properties,
					       char *unset) = {
		ask_v6, ask_v7, ask_v8, ask_v9, ask_v9, ask_v11, ask_v12,
	};
	enum nccl_result result;

	unset[0] = '\0';
	fill_compat(properties, dev);
	activity_enter(adapter->activity, "getProperties");
	result = ask[adapter->abi - ADAPTER_ABI_OLDEST](adapter, dev, properties, unset);
	activity_leave(adapter->activity);
	return result;
}
