/* SPDX-License-Identifier: Apache-2.0 */
/*
 * types.h - the types that all versions of NCCL's net-plugin ABI share: results, constants,
 * callbacks and the small structs. Written from the ABI's documented layout; the names differ from
 * NCCL's, so that both headers can be included together. Sizes and offsets are those of LP64.
 */
#ifndef MESH_NCCL_TYPES_H
#define MESH_NCCL_TYPES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/** Asserts the offset and the size of a member, in bytes. */
#define NCCL_ASSERT_MEMBER(object, member, offset, bytes)                                          \
	_Static_assert(offsetof(object, member) == (offset), #object "." #member ": offset");      \
	_Static_assert(sizeof(((object *)0)->member) == (bytes), #object "." #member ": size")

/** Asserts the size in bytes of a whole type. */
#define NCCL_ASSERT_SIZE(object, bytes) _Static_assert(sizeof(object) == (bytes), #object ": size")

/* ncclResult_t (nccl.h). 8 is not a result before 2.30, so the plugin never returns it. */
enum nccl_result {
	NCCL_RESULT_SUCCESS = 0,
	NCCL_RESULT_UNHANDLED_CUDA_ERROR = 1,
	NCCL_RESULT_SYSTEM_ERROR = 2,
	NCCL_RESULT_INTERNAL_ERROR = 3,
	NCCL_RESULT_INVALID_ARGUMENT = 4,
	NCCL_RESULT_INVALID_USAGE = 5,
	NCCL_RESULT_REMOTE_ERROR = 6,
	NCCL_RESULT_IN_PROGRESS = 7,
};
NCCL_ASSERT_SIZE(enum nccl_result, 4);

/* Constants of nccl_net.h. */
#define NCCL_HANDLE_SIZE 128 /* NCCL_NET_HANDLE_MAXSIZE, bytes */
#define NCCL_REQUESTS_MAX 32 /* NCCL_NET_MAX_REQUESTS of a comm; 8 up to NCCL 2.18 */
#define NCCL_PROPERTY_BYTES_MAX ((size_t)1 << 40) /* NCCL_MAX_NET_SIZE_BYTES, of maxP2pBytes */
#define NCCL_MESSAGE_BYTES_MAX ((size_t)1 << 30)  /* NCCL_MAX_NET_SIZE (collectives.h) */

/* Bits of ptrSupport, and the type of a registration (NCCL_PTR_*). */
#define NCCL_POINTER_HOST 0x1
#define NCCL_POINTER_CUDA 0x2
#define NCCL_POINTER_DMABUF 0x4

/* What NCCL may have stored in *request before a receive (NCCL_NET_OPTIONAL_RECV_COMPLETION). */
#define NCCL_REQUEST_OPTIONAL_COMPLETION 0x1

/* "Unknown" in railId, planeId, a traffic class and a net attribute. */
#define NCCL_UNDEFINED (-1)

/* ncclDebugLogLevel (nccl_common.h). */
enum nccl_level {
	NCCL_LEVEL_NONE = 0,
	NCCL_LEVEL_VERSION = 1,
	NCCL_LEVEL_WARN = 2,
	NCCL_LEVEL_INFO = 3,
	NCCL_LEVEL_ABORT = 4,
	NCCL_LEVEL_TRACE = 5,
};
NCCL_ASSERT_SIZE(enum nccl_level, 4);

/* ncclDebugLogSubSys (nccl_common.h): the two bits that the plugin uses. */
#define NCCL_SUBSYSTEM_INIT 0x1UL
#define NCCL_SUBSYSTEM_NET 0x10UL

/**
 * NCCL's logger. @format is printf's and has no newline. @file is shown for WARN, taken as a
 * function name for TRACE and ignored for INFO.
 */
typedef void (*nccl_logger)(enum nccl_level level, unsigned long flags, const char *file, int line,
			    const char *format, ...) __attribute__((format(printf, 5, 6)));

/** NCCL's profiler callback. @type: 0 start, 1 stop, 2 update, 3 update and stop. */
typedef enum nccl_result (*nccl_profiler)(void **event, int type, void *profiler_handle,
					  int64_t plugin_id, void *extra);

/* ncclNetDeviceType (net_device.h): where a NIC's network stack runs. Must be HOST for a plugin. */
enum nccl_device_type {
	NCCL_DEVICE_HOST = 0,
	NCCL_DEVICE_UNPACK = 1,
};
NCCL_ASSERT_SIZE(enum nccl_device_type, 4);

/* NCCL_NET_DEVICE_INVALID_VERSION (net_device.h). */
#define NCCL_DEVICE_NO_VERSION 0x0

/* ncclNetDeviceHandle: v7 to v12. */
struct nccl_device_handle {
	enum nccl_device_type type;
	int version;
	void *handle;
	size_t size; /* bytes */
	int needs_proxy_progress;
};
NCCL_ASSERT_MEMBER(struct nccl_device_handle, type, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_device_handle, version, 4, 4);
NCCL_ASSERT_MEMBER(struct nccl_device_handle, handle, 8, 8);
NCCL_ASSERT_MEMBER(struct nccl_device_handle, size, 16, 8);
NCCL_ASSERT_MEMBER(struct nccl_device_handle, needs_proxy_progress, 24, 4);
NCCL_ASSERT_SIZE(struct nccl_device_handle, 32);

/* ncclNetCommConfig: v10 to v12. */
struct nccl_comm_config {
	int traffic_class;
};
NCCL_ASSERT_MEMBER(struct nccl_comm_config, traffic_class, 0, 4);
NCCL_ASSERT_SIZE(struct nccl_comm_config, 4);

/* ncclNetCommAttr: v11, v12. */
struct nccl_comm_attributes {
	int32_t max_concurrent_peers;
	int32_t min_concurrent_peers;
	int32_t max_flows_per_peer;
	int32_t min_flows_per_peer;
};
NCCL_ASSERT_MEMBER(struct nccl_comm_attributes, max_concurrent_peers, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_comm_attributes, min_concurrent_peers, 4, 4);
NCCL_ASSERT_MEMBER(struct nccl_comm_attributes, max_flows_per_peer, 8, 4);
NCCL_ASSERT_MEMBER(struct nccl_comm_attributes, min_flows_per_peer, 12, 4);
NCCL_ASSERT_SIZE(struct nccl_comm_attributes, 16);

/* ncclNetAttr: v11, v12. The last three are bit sets. */
struct nccl_net_attributes {
	struct nccl_comm_attributes send;
	struct nccl_comm_attributes receive;
	uint32_t operations;
	uint32_t algorithms;
	uint32_t protocols;
};
NCCL_ASSERT_MEMBER(struct nccl_net_attributes, send, 0, 16);
NCCL_ASSERT_MEMBER(struct nccl_net_attributes, receive, 16, 16);
NCCL_ASSERT_MEMBER(struct nccl_net_attributes, operations, 32, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_attributes, algorithms, 36, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_attributes, protocols, 40, 4);
NCCL_ASSERT_SIZE(struct nccl_net_attributes, 44);

/* The physical devices behind one (virtual) device: ncclNetVDeviceProps of v9 to v11. */
struct nccl_net_vdevice_v9 {
	int num_devs;
	int devs[4]; /* NCCL_NET_MAX_DEVS_PER_NIC */
};
NCCL_ASSERT_MEMBER(struct nccl_net_vdevice_v9, num_devs, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_vdevice_v9, devs, 4, 16);
NCCL_ASSERT_SIZE(struct nccl_net_vdevice_v9, 20);

/* Groups of properties that keep their order in every version, so that they are declared once. */
struct nccl_net_identity {
	char *name;	/* unique and stable: NCCL's key of the NIC */
	char *pci_path; /* real path in /sys of a PCI device, or NULL */
	uint64_t guid;	/* with link.port: one physical port */
};
NCCL_ASSERT_MEMBER(struct nccl_net_identity, name, 0, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_identity, pci_path, 8, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_identity, guid, 16, 8);
NCCL_ASSERT_SIZE(struct nccl_net_identity, 24);

struct nccl_net_link {
	int speed; /* Mb/s */
	int port;
	float latency; /* microseconds */
	int max_comms;
	int max_receives; /* buffers in one grouped receive */
};
NCCL_ASSERT_MEMBER(struct nccl_net_link, speed, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_link, port, 4, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_link, latency, 8, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_link, max_comms, 12, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_link, max_receives, 16, 4);
NCCL_ASSERT_SIZE(struct nccl_net_link, 20);

/* Since v7. */
struct nccl_net_device {
	enum nccl_device_type type;
	int version;
};
NCCL_ASSERT_MEMBER(struct nccl_net_device, type, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_device, version, 4, 4);
NCCL_ASSERT_SIZE(struct nccl_net_device, 8);

/* Since v9. */
struct nccl_net_limits {
	size_t max_p2p_bytes;  /* 1 .. NCCL_PROPERTY_BYTES_MAX */
	size_t max_coll_bytes; /* the same */
};
NCCL_ASSERT_MEMBER(struct nccl_net_limits, max_p2p_bytes, 0, 8);
NCCL_ASSERT_MEMBER(struct nccl_net_limits, max_coll_bytes, 8, 8);
NCCL_ASSERT_SIZE(struct nccl_net_limits, 16);

#endif
