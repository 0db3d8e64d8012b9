/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.cc - compares our declarations of the net and tuner ABI with NCCL's own headers, at
 * compile time: the size and place of every member, every constant, and the signature of every
 * function. It is C++ because that is what NCCL's headers are for, and because templates can look
 * into a type. check.sh compiles it; nothing is linked or run.
 */
#include <cstddef>
#include <type_traits>

#include "nccl_net.h" /* NCCL's, as the next one */
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
#include "nccl_tuner.h"
#endif

#define _Static_assert static_assert
#include <nccl/types.h>
#include <nccl/net_abi.h>
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
#include <nccl/tuner_abi.h>
#endif

/*
 * True for two types that are passed alike: numbers and enums of one size and kind, structs of one
 * size, pointers to such, functions from such to such.
 */
template <typename A, typename B> struct alike {
	static constexpr bool number(bool ours, bool theirs)
	{
		return ours && theirs &&
		       std::is_floating_point<A>::value == std::is_floating_point<B>::value;
	}
	static constexpr bool integer_a = std::is_arithmetic<A>::value || std::is_enum<A>::value;
	static constexpr bool integer_b = std::is_arithmetic<B>::value || std::is_enum<B>::value;
	static constexpr bool value = std::is_const<A>::value == std::is_const<B>::value &&
				      sizeof(A) == sizeof(B) &&
				      (number(integer_a, integer_b) ||
				       (std::is_class<A>::value && std::is_class<B>::value)) &&
				      std::is_signed<A>::value == std::is_signed<B>::value;
};

template <> struct alike<void, void> : std::true_type {
};
template <typename B> struct alike<void, B> : std::false_type {
};
template <typename A> struct alike<A, void> : std::false_type {
};
template <typename A, typename B> struct alike<A *, B *> : alike<A, B> {
};

template <typename... T> struct list {
};
template <typename A, typename B> struct all_alike : std::false_type {
};
template <> struct all_alike<list<>, list<>> : std::true_type {
};
template <typename A, typename... As, typename B, typename... Bs>
struct all_alike<list<A, As...>, list<B, Bs...>> {
	static constexpr bool value = alike<A, B>::value &&
				      all_alike<list<As...>, list<Bs...>>::value;
};

template <typename R, typename... As, typename S, typename... Bs>
struct alike<R (*)(As...), S (*)(Bs...)> {
	static constexpr bool value = alike<R, S>::value &&
				      all_alike<list<As...>, list<Bs...>>::value;
};
template <typename R, typename... As, typename S, typename... Bs>
struct alike<R (*)(As..., ...), S (*)(Bs..., ...)> {
	static constexpr bool value = alike<R, S>::value &&
				      all_alike<list<As...>, list<Bs...>>::value;
};

/* The comparison itself must be able to fail. */
static_assert(!alike<int, size_t>::value, "sizes differ");
static_assert(!alike<int, unsigned int>::value, "signs differ");
static_assert(!alike<int, float>::value, "kinds differ");
static_assert(!alike<void *, void **>::value, "depths differ");
static_assert(!alike<char *, const char *>::value, "one is const");
static_assert(!alike<int (*)(int), int (*)(int, int)>::value, "numbers of arguments differ");
static_assert(!alike<int (*)(int, void *), int (*)(void *, int)>::value, "orders differ");

#define SAME_SIZE(ours, theirs) static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME_VALUE(ours, theirs) static_assert((long long)(ours) == (long long)(theirs), #theirs)
#define SAME_MEMBER(ours, our_member, theirs, their_member)                                        \
	static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) &&              \
			      sizeof(((ours *)0)->our_member) ==                                   \
				      sizeof(((theirs *)0)->their_member),                         \
		      #theirs "." #their_member)
#define SAME_SLOT(v, our_member, their_member)                                                     \
	SAME_MEMBER(nccl_net_v##v, our_member, ncclNet_v##v##_t, their_member);                    \
	static_assert(alike<decltype(nccl_net_v##v::our_member),                                   \
			    decltype(ncclNet_v##v##_t::their_member)>::value,                      \
		      "ncclNet_v" #v "_t." #their_member ": signature")

SAME_VALUE(NCCL_RESULT_SUCCESS, ncclSuccess);
SAME_VALUE(NCCL_RESULT_UNHANDLED_CUDA_ERROR, ncclUnhandledCudaError);
SAME_VALUE(NCCL_RESULT_SYSTEM_ERROR, ncclSystemError);
SAME_VALUE(NCCL_RESULT_INTERNAL_ERROR, ncclInternalError);
SAME_VALUE(NCCL_RESULT_INVALID_ARGUMENT, ncclInvalidArgument);
SAME_VALUE(NCCL_RESULT_INVALID_USAGE, ncclInvalidUsage);
SAME_VALUE(NCCL_RESULT_REMOTE_ERROR, ncclRemoteError);
SAME_VALUE(NCCL_RESULT_IN_PROGRESS, ncclInProgress);
SAME_SIZE(nccl_result, ncclResult_t);
SAME_VALUE(NCCL_HANDLE_SIZE, NCCL_NET_HANDLE_MAXSIZE);
SAME_VALUE(NCCL_POINTER_HOST, NCCL_PTR_HOST);
SAME_VALUE(NCCL_POINTER_CUDA, NCCL_PTR_CUDA);
SAME_VALUE(NCCL_POINTER_DMABUF, NCCL_PTR_DMABUF);
SAME_VALUE(NCCL_LEVEL_NONE, NCCL_LOG_NONE);
SAME_VALUE(NCCL_LEVEL_VERSION, NCCL_LOG_VERSION);
SAME_VALUE(NCCL_LEVEL_WARN, NCCL_LOG_WARN);
SAME_VALUE(NCCL_LEVEL_INFO, NCCL_LOG_INFO);
SAME_VALUE(NCCL_LEVEL_ABORT, NCCL_LOG_ABORT);
SAME_VALUE(NCCL_LEVEL_TRACE, NCCL_LOG_TRACE);
SAME_SIZE(nccl_level, ncclDebugLogLevel);
SAME_VALUE(NCCL_SUBSYSTEM_INIT, NCCL_INIT);
SAME_VALUE(NCCL_SUBSYSTEM_NET, NCCL_NET);
static_assert(alike<nccl_logger, ncclDebugLogger_t>::value, "ncclDebugLogger_t");

#define SAME_PROPERTY(v, our_member, their_member)                                                 \
	SAME_MEMBER(nccl_net_properties_v##v, our_member, ncclNetProperties_v##v##_t,              \
		    their_member);                                                                 \
	static_assert(                                                                             \
		alike<std::decay<decltype(((nccl_net_properties_v##v *)0)->our_member)>::type,     \
		      std::decay<decltype(((ncclNetProperties_v##v##_t *)0)                        \
						  ->their_member)>::type>::value,                  \
		"ncclNetProperties_v" #v "_t." #their_member ": type")

#define SAME_PROPERTIES_V6(v)                                                                      \
	SAME_SIZE(nccl_net_properties_v##v, ncclNetProperties_v##v##_t);                           \
	SAME_PROPERTY(v, identity.name, name);                                                     \
	SAME_PROPERTY(v, identity.pci_path, pciPath);                                              \
	SAME_PROPERTY(v, identity.guid, guid);                                                     \
	SAME_PROPERTY(v, pointer_support, ptrSupport);                                             \
	SAME_PROPERTY(v, link.speed, speed);                                                       \
	SAME_PROPERTY(v, link.port, port);                                                         \
	SAME_PROPERTY(v, link.latency, latency);                                                   \
	SAME_PROPERTY(v, link.max_comms, maxComms);                                                \
	SAME_PROPERTY(v, link.max_receives, maxRecvs)

#define SAME_PROPERTIES_V7(v)                                                                      \
	SAME_PROPERTIES_V6(v);                                                                     \
	SAME_PROPERTY(v, device.type, netDeviceType);                                              \
	SAME_PROPERTY(v, device.version, netDeviceVersion)

#define SAME_PROPERTIES_V8(v)                                                                      \
	SAME_PROPERTIES_V7(v);                                                                     \
	SAME_PROPERTY(v, registration_is_global, regIsGlobal)

#define SAME_PROPERTIES_V9(v)                                                                      \
	SAME_PROPERTIES_V8(v);                                                                     \
	SAME_PROPERTY(v, force_flush, forceFlush);                                                 \
	SAME_PROPERTY(v, members, vProps);                                                         \
	SAME_PROPERTY(v, members.num_devs, vProps.ndevs);                                          \
	SAME_PROPERTY(v, members.devs, vProps.devs);                                               \
	SAME_PROPERTY(v, limits.max_p2p_bytes, maxP2pBytes);                                       \
	SAME_PROPERTY(v, limits.max_coll_bytes, maxCollBytes)

#define SAME_PROPERTIES_V11(v)                                                                     \
	SAME_PROPERTIES_V9(v);                                                                     \
	SAME_PROPERTY(v, max_multi_request_size, maxMultiRequestSize)

#define SAME_SLOTS_V6(v)                                                                           \
	SAME_SIZE(nccl_net_v##v, ncclNet_v##v##_t);                                                \
	SAME_SLOT(v, name, name);                                                                  \
	SAME_SLOT(v, init, init);                                                                  \
	SAME_SLOT(v, devices, devices);                                                            \
	SAME_SLOT(v, get_properties, getProperties);                                               \
	SAME_SLOT(v, listen, listen);                                                              \
	SAME_SLOT(v, connect, connect);                                                            \
	SAME_SLOT(v, accept, accept);                                                              \
	SAME_SLOT(v, reg_mr, regMr);                                                               \
	SAME_SLOT(v, reg_mr_dmabuf, regMrDmaBuf);                                                  \
	SAME_SLOT(v, dereg_mr, deregMr);                                                           \
	SAME_SLOT(v, isend, isend);                                                                \
	SAME_SLOT(v, irecv, irecv);                                                                \
	SAME_SLOT(v, iflush, iflush);                                                              \
	SAME_SLOT(v, test, test);                                                                  \
	SAME_SLOT(v, close_send, closeSend);                                                       \
	SAME_SLOT(v, close_receive, closeRecv);                                                    \
	SAME_SLOT(v, close_listen, closeListen)

#define SAME_SLOTS_V7(v)                                                                           \
	SAME_SLOTS_V6(v);                                                                          \
	SAME_SLOT(v, get_device_mr, getDeviceMr);                                                  \
	SAME_SLOT(v, irecv_consumed, irecvConsumed)

#define SAME_SLOTS_V9(v)                                                                           \
	SAME_SLOTS_V7(v);                                                                          \
	SAME_SLOT(v, make_vdevice, makeVDevice)

#define SAME_SLOTS_V11(v)                                                                          \
	SAME_SLOTS_V9(v);                                                                          \
	SAME_SLOT(v, finalize, finalize);                                                          \
	SAME_SLOT(v, set_attributes, setNetAttr)

#define SAME_DEVICE_HANDLE(v)                                                                      \
	SAME_SIZE(nccl_device_handle, ncclNetDeviceHandle_v##v##_t);                               \
	SAME_MEMBER(nccl_device_handle, type, ncclNetDeviceHandle_v##v##_t, netDeviceType);        \
	SAME_MEMBER(nccl_device_handle, version, ncclNetDeviceHandle_v##v##_t, netDeviceVersion);  \
	SAME_MEMBER(nccl_device_handle, handle, ncclNetDeviceHandle_v##v##_t, handle);             \
	SAME_MEMBER(nccl_device_handle, size, ncclNetDeviceHandle_v##v##_t, size);                 \
	SAME_MEMBER(nccl_device_handle, needs_proxy_progress, ncclNetDeviceHandle_v##v##_t,        \
		    needsProxyProgress)

#define SAME_ATTRIBUTE(v, our_member, their_member)                                                \
	SAME_MEMBER(nccl_net_attributes, our_member, ncclNetAttr_v##v##_t, their_member)

#define SAME_ATTRIBUTES(v)                                                                         \
	SAME_SIZE(nccl_net_attributes, ncclNetAttr_v##v##_t);                                      \
	SAME_ATTRIBUTE(v, send.max_concurrent_peers, sendCommAttr.maxConcurrentPeers);             \
	SAME_ATTRIBUTE(v, send.min_concurrent_peers, sendCommAttr.minConcurrentPeers);             \
	SAME_ATTRIBUTE(v, send.max_flows_per_peer, sendCommAttr.maxFlowsPerPeer);                  \
	SAME_ATTRIBUTE(v, send.min_flows_per_peer, sendCommAttr.minFlowsPerPeer);                  \
	SAME_ATTRIBUTE(v, receive, recvCommAttr);                                                  \
	SAME_ATTRIBUTE(v, operations, op);                                                         \
	SAME_ATTRIBUTE(v, algorithms, algo);                                                       \
	SAME_ATTRIBUTE(v, protocols, proto)

#define SAME_COMM_CONFIG(v)                                                                        \
	SAME_SIZE(nccl_comm_config, ncclNetCommConfig_v##v##_t);                                   \
	SAME_MEMBER(nccl_comm_config, traffic_class, ncclNetCommConfig_v##v##_t, trafficClass)

SAME_PROPERTIES_V6(6);
SAME_SLOTS_V6(6);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
SAME_VALUE(NCCL_REQUESTS_MAX, NCCL_NET_MAX_REQUESTS);
SAME_VALUE(NCCL_DEVICE_HOST, NCCL_NET_DEVICE_HOST);
SAME_VALUE(NCCL_DEVICE_UNPACK, NCCL_NET_DEVICE_UNPACK);
SAME_VALUE(NCCL_DEVICE_NO_VERSION, NCCL_NET_DEVICE_INVALID_VERSION);
SAME_SIZE(nccl_device_type, ncclNetDeviceType);
SAME_DEVICE_HANDLE(7);
SAME_PROPERTIES_V7(7);
SAME_SLOTS_V7(7);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 20, 0)
SAME_DEVICE_HANDLE(8);
SAME_PROPERTIES_V8(8);
SAME_SLOTS_V7(8);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
SAME_VALUE(NCCL_PROPERTY_BYTES_MAX, NCCL_MAX_NET_SIZE_BYTES);
SAME_VALUE(NCCL_REQUEST_OPTIONAL_COMPLETION, NCCL_NET_OPTIONAL_RECV_COMPLETION);
SAME_DEVICE_HANDLE(9);
SAME_PROPERTIES_V9(9);
SAME_SLOTS_V9(9);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 26, 0)
static_assert(alike<nccl_profiler, ncclProfilerCallback_t>::value, "ncclProfilerCallback_t");
SAME_VALUE(NCCL_UNDEFINED, NCCL_NET_TRAFFIC_CLASS_UNDEF);
SAME_COMM_CONFIG(10);
SAME_DEVICE_HANDLE(10);
SAME_SIZE(nccl_net_properties_v9, ncclNetProperties_v10_t);
SAME_SLOTS_V9(10);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
SAME_COMM_CONFIG(11);
SAME_DEVICE_HANDLE(11);
SAME_ATTRIBUTES(11);
SAME_PROPERTIES_V11(11);
SAME_SLOTS_V11(11);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
SAME_VALUE(NCCL_UNDEFINED, NCCL_NET_ID_UNDEF);
SAME_COMM_CONFIG(12);
SAME_DEVICE_HANDLE(12);
SAME_ATTRIBUTES(12);
SAME_PROPERTIES_V11(12);
SAME_PROPERTY(12, rail_id, railId);
SAME_PROPERTY(12, plane_id, planeId);
SAME_SLOTS_V11(12);
#endif

#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 21, 0)
/* Structs that our tuner gets by pointer and does not read are void there. */
template <typename T> struct opaque {
	using type = T;
};
template <typename T> struct opaque<T *> {
	using type = typename std::conditional<std::is_class<T>::value, void *, T *>::type;
};
template <typename R, typename... As> struct opaque<R (*)(As...)> {
	using type = R (*)(typename opaque<As>::type...);
};

#define SAME_TUNER_SLOT(v, our_member, their_member)                                               \
	SAME_MEMBER(nccl_tuner_v##v, our_member, ncclTuner_v##v##_t, their_member);                \
	static_assert(alike<decltype(nccl_tuner_v##v::our_member),                                 \
			    opaque<decltype(ncclTuner_v##v##_t::their_member)>::type>::value,      \
		      "ncclTuner_v" #v "_t." #their_member ": signature")

#define SAME_TUNER(v, end)                                                                         \
	SAME_SIZE(nccl_tuner_v##v, ncclTuner_v##v##_t);                                            \
	SAME_TUNER_SLOT(v, name, name);                                                            \
	SAME_TUNER_SLOT(v, init, init);                                                            \
	SAME_TUNER_SLOT(v, get_coll_info, getCollInfo);                                            \
	SAME_TUNER_SLOT(v, destroy, end)

SAME_VALUE(NCCL_COLLECTIVE_BROADCAST, ncclFuncBroadcast);
SAME_VALUE(NCCL_COLLECTIVE_REDUCE, ncclFuncReduce);
SAME_VALUE(NCCL_COLLECTIVE_ALL_GATHER, ncclFuncAllGather);
SAME_VALUE(NCCL_COLLECTIVE_REDUCE_SCATTER, ncclFuncReduceScatter);
SAME_VALUE(NCCL_COLLECTIVE_ALL_REDUCE, ncclFuncAllReduce);
SAME_SIZE(nccl_collective, ncclFunc_t);
SAME_VALUE(NCCL_ALGORITHM_TREE, NCCL_ALGO_TREE);
SAME_VALUE(NCCL_ALGORITHM_RING, NCCL_ALGO_RING);
SAME_VALUE(NCCL_ALGORITHM_COLLNET_DIRECT, NCCL_ALGO_COLLNET_DIRECT);
SAME_VALUE(NCCL_ALGORITHM_COLLNET_CHAIN, NCCL_ALGO_COLLNET_CHAIN);
SAME_VALUE(NCCL_ALGORITHM_NVLS, NCCL_ALGO_NVLS);
SAME_VALUE(NCCL_ALGORITHM_NVLS_TREE, NCCL_ALGO_NVLS_TREE);
SAME_VALUE(NCCL_PROTOCOL_LL, NCCL_PROTO_LL);
SAME_VALUE(NCCL_PROTOCOL_LL128, NCCL_PROTO_LL128);
SAME_VALUE(NCCL_PROTOCOL_SIMPLE, NCCL_PROTO_SIMPLE);
SAME_VALUE(NCCL_PROTOCOLS, NCCL_NUM_PROTOCOLS);
SAME_TUNER(2, destroy);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 22, 0)
SAME_VALUE(NCCL_COST_EXCLUDED, NCCL_ALGO_PROTO_IGNORE);
SAME_TUNER(3, destroy);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 23, 0)
SAME_VALUE(NCCL_ALGORITHM_PAT, NCCL_ALGO_PAT);
SAME_VALUE(NCCL_ALGORITHMS, NCCL_NUM_ALGORITHMS);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)
SAME_TUNER(4, destroy);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
static_assert(sizeof(ncclNvlDomainInfo_v5_t) == 3 * sizeof(int), "three ints");
static_assert(sizeof(ncclTunerConstants_v5_t) == 144 * sizeof(double), "144 doubles");
SAME_TUNER(5, finalize);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 30, 0)
SAME_TUNER(6, finalize);
SAME_TUNER_SLOT(6, get_chunk_size, getChunkSize);
#endif
