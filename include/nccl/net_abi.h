/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_abi.h - versions 6 to 12 of NCCL's net ABI: its functions, each signature once and named
 * after the version that introduced it; the order of a table's slots; the tables and properties.
 */
#ifndef MESH_NCCL_NET_ABI_H
#define MESH_NCCL_NET_ABI_H

#include <nccl/types.h>

struct nccl_net_vdevice_v12;

typedef enum nccl_result nccl_init_v6(nccl_logger logger);
typedef enum nccl_result nccl_init_v10(nccl_logger logger, nccl_profiler profiler);
typedef enum nccl_result nccl_init_v11(void **context, uint64_t comm_id,
				       struct nccl_comm_config *config, nccl_logger logger,
				       nccl_profiler profiler);
typedef enum nccl_result nccl_devices_v6(int *num_devices);

typedef enum nccl_result nccl_listen_v6(int dev, void *handle, void **listen_comm);
typedef enum nccl_result nccl_listen_v11(void *context, int dev, void *handle, void **listen_comm);

typedef enum nccl_result nccl_connect_v6(int dev, void *handle, void **send_comm);
typedef enum nccl_result nccl_connect_v7(int dev, void *handle, void **send_comm,
					 struct nccl_device_handle **send_device);
typedef enum nccl_result nccl_connect_v10(int dev, struct nccl_comm_config *config, void *handle,
					  void **send_comm,
					  struct nccl_device_handle **send_device);
typedef enum nccl_result nccl_connect_v11(void *context, int dev, void *handle, void **send_comm,
					  struct nccl_device_handle **send_device);

typedef enum nccl_result nccl_accept_v6(void *listen_comm, void **receive_comm);
typedef enum nccl_result nccl_accept_v7(void *listen_comm, void **receive_comm,
					struct nccl_device_handle **receive_device);

typedef enum nccl_result nccl_register_v6(void *comm, void *data, int size, int type,
					  void **registration);
typedef enum nccl_result nccl_register_v8(void *comm, void *data, size_t size, int type,
					  void **registration);
typedef enum nccl_result nccl_register_dmabuf_v6(void *comm, void *data, size_t size, int type,
						 uint64_t offset, int fd, void **registration);
typedef enum nccl_result nccl_deregister_v6(void *comm, void *registration);

typedef enum nccl_result nccl_isend_v6(void *send_comm, void *data, int size, int tag,
				       void *registration, void **request);
typedef enum nccl_result nccl_isend_v9(void *send_comm, void *data, size_t size, int tag,
				       void *registration, void **request);
typedef enum nccl_result nccl_isend_v10(void *send_comm, void *data, size_t size, int tag,
					void *registration, void *profiler_handle, void **request);

typedef enum nccl_result nccl_irecv_v6(void *receive_comm, int n, void **data, int *sizes,
				       int *tags, void **registrations, void **request);
typedef enum nccl_result nccl_irecv_v9(void *receive_comm, int n, void **data, size_t *sizes,
				       int *tags, void **registrations, void **request);
typedef enum nccl_result nccl_irecv_v10(void *receive_comm, int n, void **data, size_t *sizes,
					int *tags, void **registrations, void **profiler_handles,
					void **request);

typedef enum nccl_result nccl_iflush_v6(void *receive_comm, int n, void **data, int *sizes,
					void **registrations, void **request);
typedef enum nccl_result nccl_test_v6(void *request, int *done, int *sizes);
typedef enum nccl_result nccl_close_v6(void *comm);

typedef enum nccl_result nccl_get_device_mr_v7(void *comm, void *registration,
					       void **device_registration);
typedef enum nccl_result nccl_irecv_consumed_v7(void *receive_comm, int n, void *request);

typedef enum nccl_result nccl_make_vdevice_v9(int *dev, struct nccl_net_vdevice_v9 *members);
typedef enum nccl_result nccl_make_vdevice_v12(int *dev, struct nccl_net_vdevice_v12 *members);

typedef enum nccl_result nccl_finalize_v11(void *context);
typedef enum nccl_result nccl_set_attributes_v11(void *context,
						 struct nccl_net_attributes *attributes);

/*
 * The slots of a table in order. All versions have the first group and differ in the types that
 * are arguments here; the later groups follow it in the versions that have them.
 */
#define NCCL_SLOTS_V6(init_type, properties_type, listen_type, connect_type, accept_type,          \
		      register_type, isend_type, irecv_type)                                       \
	const char *name;                                                                          \
	init_type *init;                                                                           \
	nccl_devices_v6 *devices;                                                                  \
	enum nccl_result (*get_properties)(int dev, properties_type *properties);                  \
	listen_type *listen;                                                                       \
	connect_type *connect;                                                                     \
	accept_type *accept;                                                                       \
	register_type *reg_mr;                                                                     \
	nccl_register_dmabuf_v6 *reg_mr_dmabuf; /* NULL without NCCL_POINTER_DMABUF */             \
	nccl_deregister_v6 *dereg_mr;                                                              \
	isend_type *isend;                                                                         \
	irecv_type *irecv;                                                                         \
	nccl_iflush_v6 *iflush;                                                                    \
	nccl_test_v6 *test;                                                                        \
	nccl_close_v6 *close_send;                                                                 \
	nccl_close_v6 *close_receive;                                                              \
	nccl_close_v6 *close_listen

#define NCCL_SLOTS_V7                                                                              \
	nccl_get_device_mr_v7 *get_device_mr;  /* may be NULL */                                   \
	nccl_irecv_consumed_v7 *irecv_consumed /* may be NULL; else called on every step */

#define NCCL_SLOTS_V9(make_vdevice_type) make_vdevice_type *make_vdevice /* NULL: no NIC fusion */

#define NCCL_SLOTS_V11                                                                             \
	nccl_finalize_v11 *finalize;		/* never NULL: NCCL does not look */               \
	nccl_set_attributes_v11 *set_attributes /* may be NULL */

/** Declares the symbol that NCCL looks up: it is the table itself. */
#define NCCL_EXPORT(table, symbol)                                                                 \
	extern const struct table symbol __attribute__((visibility("default")))

/** Asserts the offsets of a table's slots and its size, by the last group that it has. */
#define NCCL_ASSERT_SLOTS_V6(object)                                                               \
	NCCL_ASSERT_MEMBER(object, name, 0, 8);                                                    \
	NCCL_ASSERT_MEMBER(object, init, 8, 8);                                                    \
	NCCL_ASSERT_MEMBER(object, devices, 16, 8);                                                \
	NCCL_ASSERT_MEMBER(object, get_properties, 24, 8);                                         \
	NCCL_ASSERT_MEMBER(object, listen, 32, 8);                                                 \
	NCCL_ASSERT_MEMBER(object, connect, 40, 8);                                                \
	NCCL_ASSERT_MEMBER(object, accept, 48, 8);                                                 \
	NCCL_ASSERT_MEMBER(object, reg_mr, 56, 8);                                                 \
	NCCL_ASSERT_MEMBER(object, reg_mr_dmabuf, 64, 8);                                          \
	NCCL_ASSERT_MEMBER(object, dereg_mr, 72, 8);                                               \
	NCCL_ASSERT_MEMBER(object, isend, 80, 8);                                                  \
	NCCL_ASSERT_MEMBER(object, irecv, 88, 8);                                                  \
	NCCL_ASSERT_MEMBER(object, iflush, 96, 8);                                                 \
	NCCL_ASSERT_MEMBER(object, test, 104, 8);                                                  \
	NCCL_ASSERT_MEMBER(object, close_send, 112, 8);                                            \
	NCCL_ASSERT_MEMBER(object, close_receive, 120, 8);                                         \
	NCCL_ASSERT_MEMBER(object, close_listen, 128, 8)

#define NCCL_ASSERT_SLOTS_V7(object)                                                               \
	NCCL_ASSERT_SLOTS_V6(object);                                                              \
	NCCL_ASSERT_MEMBER(object, get_device_mr, 136, 8);                                         \
	NCCL_ASSERT_MEMBER(object, irecv_consumed, 144, 8)

#define NCCL_ASSERT_SLOTS_V9(object)                                                               \
	NCCL_ASSERT_SLOTS_V7(object);                                                              \
	NCCL_ASSERT_MEMBER(object, make_vdevice, 152, 8)

#define NCCL_ASSERT_SLOTS_V11(object)                                                              \
	NCCL_ASSERT_SLOTS_V9(object);                                                              \
	NCCL_ASSERT_MEMBER(object, finalize, 160, 8);                                              \
	NCCL_ASSERT_MEMBER(object, set_attributes, 168, 8)

/** Asserts the properties that all versions have; @link_offset: where the link group starts. */
#define NCCL_ASSERT_PROPERTIES(object, link_offset)                                                \
	NCCL_ASSERT_MEMBER(object, identity.name, 0, 8);                                           \
	NCCL_ASSERT_MEMBER(object, identity.pci_path, 8, 8);                                       \
	NCCL_ASSERT_MEMBER(object, identity.guid, 16, 8);                                          \
	NCCL_ASSERT_MEMBER(object, pointer_support, 24, 4);                                        \
	NCCL_ASSERT_MEMBER(object, link.speed, (link_offset), 4);                                  \
	NCCL_ASSERT_MEMBER(object, link.port, (link_offset) + 4, 4);                               \
	NCCL_ASSERT_MEMBER(object, link.latency, (link_offset) + 8, 4);                            \
	NCCL_ASSERT_MEMBER(object, link.max_comms, (link_offset) + 12, 4);                         \
	NCCL_ASSERT_MEMBER(object, link.max_receives, (link_offset) + 16, 4)

/** As above, for the versions that have the device group behind the link group. */
#define NCCL_ASSERT_PROPERTIES_V7(object, link_offset)                                             \
	NCCL_ASSERT_PROPERTIES(object, link_offset);                                               \
	NCCL_ASSERT_MEMBER(object, device.type, (link_offset) + 20, 4);                            \
	NCCL_ASSERT_MEMBER(object, device.version, (link_offset) + 24, 4)

/* The properties of version 9, which the later ones begin with, but for the type of members. */
#define NCCL_PROPERTIES_V9(members_type)                                                           \
	struct nccl_net_identity identity;                                                         \
	int pointer_support; /* NCCL_POINTER_* */                                                  \
	int registration_is_global;                                                                \
	int force_flush;                                                                           \
	struct nccl_net_link link;                                                                 \
	struct nccl_net_device device;                                                             \
	members_type members;                                                                      \
	struct nccl_net_limits limits

/** As above, for those; @members_size: an odd number of ints, before the limits' size_t. */
#define NCCL_ASSERT_PROPERTIES_V9(object, members_size)                                            \
	NCCL_ASSERT_PROPERTIES_V7(object, 36);                                                     \
	NCCL_ASSERT_MEMBER(object, registration_is_global, 28, 4);                                 \
	NCCL_ASSERT_MEMBER(object, force_flush, 32, 4);                                            \
	NCCL_ASSERT_MEMBER(object, members, 64, (members_size));                                   \
	NCCL_ASSERT_MEMBER(object, limits.max_p2p_bytes, 68 + (members_size), 8);                  \
	NCCL_ASSERT_MEMBER(object, limits.max_coll_bytes, 76 + (members_size), 8)

/* Version 6: NCCL 2.14 and later look for it. */

struct nccl_net_properties_v6 {
	struct nccl_net_identity identity;
	int pointer_support;
	struct nccl_net_link link;
};
NCCL_ASSERT_PROPERTIES(struct nccl_net_properties_v6, 28);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v6, 48);

struct nccl_net_v6 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v6, nccl_listen_v6, nccl_connect_v6,
		      nccl_accept_v6, nccl_register_v6, nccl_isend_v6, nccl_irecv_v6);
};
NCCL_ASSERT_SLOTS_V6(struct nccl_net_v6);
NCCL_ASSERT_SIZE(struct nccl_net_v6, 136);

NCCL_EXPORT(nccl_net_v6, ncclNetPlugin_v6);

/* Version 7: adds device handles (NCCL 2.19). */

struct nccl_net_properties_v7 {
	struct nccl_net_identity identity;
	int pointer_support;
	struct nccl_net_link link;
	struct nccl_net_device device;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v7, 28);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v7, 56);

struct nccl_net_v7 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v7, nccl_listen_v6, nccl_connect_v7,
		      nccl_accept_v7, nccl_register_v6, nccl_isend_v6, nccl_irecv_v6);
	NCCL_SLOTS_V7;
};
NCCL_ASSERT_SLOTS_V7(struct nccl_net_v7);
NCCL_ASSERT_SIZE(struct nccl_net_v7, 152);

NCCL_EXPORT(nccl_net_v7, ncclNetPlugin_v7);

/* Version 8: registers more than 2 GiB (NCCL 2.20). */

struct nccl_net_properties_v8 {
	struct nccl_net_identity identity;
	int pointer_support;
	int registration_is_global;
	struct nccl_net_link link;
	struct nccl_net_device device;
};
NCCL_ASSERT_PROPERTIES_V7(struct nccl_net_properties_v8, 32);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v8, registration_is_global, 28, 4);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v8, 64);

struct nccl_net_v8 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v8, nccl_listen_v6, nccl_connect_v7,
		      nccl_accept_v7, nccl_register_v8, nccl_isend_v6, nccl_irecv_v6);
	NCCL_SLOTS_V7;
};
NCCL_ASSERT_SLOTS_V7(struct nccl_net_v8);
NCCL_ASSERT_SIZE(struct nccl_net_v8, 152);

NCCL_EXPORT(nccl_net_v8, ncclNetPlugin_v8);

/* Version 9: size_t messages, virtual devices (NCCL 2.24). */

struct nccl_net_properties_v9 {
	NCCL_PROPERTIES_V9(struct nccl_net_vdevice_v9);
};
NCCL_ASSERT_PROPERTIES_V9(struct nccl_net_properties_v9, 20);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v9, 104);

struct nccl_net_v9 {
	NCCL_SLOTS_V6(nccl_init_v6, struct nccl_net_properties_v9, nccl_listen_v6, nccl_connect_v7,
		      nccl_accept_v7, nccl_register_v8, nccl_isend_v9, nccl_irecv_v9);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v9);
};
NCCL_ASSERT_SLOTS_V9(struct nccl_net_v9);
NCCL_ASSERT_SIZE(struct nccl_net_v9, 160);

NCCL_EXPORT(nccl_net_v9, ncclNetPlugin_v9);

/* Version 10: v9's properties, a profiler, a config (NCCL 2.26). */

struct nccl_net_v10 {
	NCCL_SLOTS_V6(nccl_init_v10, struct nccl_net_properties_v9, nccl_listen_v6,
		      nccl_connect_v10, nccl_accept_v7, nccl_register_v8, nccl_isend_v10,
		      nccl_irecv_v10);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v9);
};
NCCL_ASSERT_SLOTS_V9(struct nccl_net_v10);
NCCL_ASSERT_SIZE(struct nccl_net_v10, 160);

NCCL_EXPORT(nccl_net_v10, ncclNetPlugin_v10);

/* Version 11: a context for each communicator (NCCL 2.28). */

struct nccl_net_properties_v11 {
	NCCL_PROPERTIES_V9(struct nccl_net_vdevice_v9);
	int max_multi_request_size;
};
NCCL_ASSERT_PROPERTIES_V9(struct nccl_net_properties_v11, 20);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v11, max_multi_request_size, 104, 4);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v11, 112);

struct nccl_net_v11 {
	NCCL_SLOTS_V6(nccl_init_v11, struct nccl_net_properties_v11, nccl_listen_v11,
		      nccl_connect_v11, nccl_accept_v7, nccl_register_v8, nccl_isend_v10,
		      nccl_irecv_v10);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v9);
	NCCL_SLOTS_V11;
};
NCCL_ASSERT_SLOTS_V11(struct nccl_net_v11);
NCCL_ASSERT_SIZE(struct nccl_net_v11, 176);

NCCL_EXPORT(nccl_net_v11, ncclNetPlugin_v11);

/* Version 12: rails, planes and wider virtual devices (NCCL 2.30). */

struct nccl_net_vdevice_v12 {
	int num_devs;
	int devs[8]; /* NCCL_NET_MAX_DEVS_PER_NIC */
};
NCCL_ASSERT_MEMBER(struct nccl_net_vdevice_v12, num_devs, 0, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_vdevice_v12, devs, 4, 32);
NCCL_ASSERT_SIZE(struct nccl_net_vdevice_v12, 36);

struct nccl_net_properties_v12 {
	NCCL_PROPERTIES_V9(struct nccl_net_vdevice_v12);
	int max_multi_request_size;
	int16_t rail_id; /* NCCL_UNDEFINED, or a number that NICs on one rail share */
	int16_t plane_id;
};
NCCL_ASSERT_PROPERTIES_V9(struct nccl_net_properties_v12, 36);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, max_multi_request_size, 120, 4);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, rail_id, 124, 2);
NCCL_ASSERT_MEMBER(struct nccl_net_properties_v12, plane_id, 126, 2);
NCCL_ASSERT_SIZE(struct nccl_net_properties_v12, 128);

struct nccl_net_v12 {
	NCCL_SLOTS_V6(nccl_init_v11, struct nccl_net_properties_v12, nccl_listen_v11,
		      nccl_connect_v11, nccl_accept_v7, nccl_register_v8, nccl_isend_v10,
		      nccl_irecv_v10);
	NCCL_SLOTS_V7;
	NCCL_SLOTS_V9(nccl_make_vdevice_v12);
	NCCL_SLOTS_V11;
};
NCCL_ASSERT_SLOTS_V11(struct nccl_net_v12);
NCCL_ASSERT_SIZE(struct nccl_net_v12, 176);

NCCL_EXPORT(nccl_net_v12, ncclNetPlugin_v12);

/*
 * The newest version is named here only. plugin.c fills its properties, and the older tables derive
 * theirs from them.
 */
#define nccl_net_newest nccl_net_v12
#define nccl_net_properties_newest nccl_net_properties_v12
/* The table's symbol, for dlsym(). */
#define NCCL_NET_SYMBOL_NEWEST "ncclNetPlugin_v12"

#endif
