/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_fabric.h - a libfabric that a test controls. A test that uses it has a file
 * test_x.ldflags with --wrap=fi_getinfo and --wrap=fi_fabric. One thread at a time.
 */
#ifndef MESH_TESTS_FAKE_FABRIC_H
#define MESH_TESTS_FAKE_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#include <rdma/fabric.h>

#include "fabric/domain.h"
#include "fabric/poll.h"
#include "fabric/remote.h"

enum fake_call {
	FAKE_GETINFO,
	FAKE_FABRIC, /* the seven that make objects; their numbers stand for the object, too */
	FAKE_DOMAIN,
	FAKE_AV,
	FAKE_CQ,
	FAKE_ENDPOINT,
	FAKE_MR,
	FAKE_BIND,
	FAKE_ENABLE,
	FAKE_GETNAME,
	FAKE_AV_INSERT,
	FAKE_AV_REMOVE,
	FAKE_RECV,
	FAKE_SEND,
	FAKE_INJECT,
	FAKE_WRITE,
	FAKE_CQ_READ,
	FAKE_ENDPOINT_CLOSE, /* no error of it is returned */
	FAKE_CALLS
};

#define FAKE_POSTS_MAX 1024
#define FAKE_BYTES_MAX 64 /* kept of each message */
/* What the fake's endpoint is called: fake_nic()'s address, this port. */
#define FAKE_PORT 7777
/* Keys of a provider that makes its own. */
#define FAKE_PROV_KEY 0x70000000
/* libfabric's OFI_MR_NOCACHE. */
#define FAKE_MR_NOCACHE ((uint64_t)1 << 60)
#define FAKE_ADDR_FIRST 100
#define FAKE_ADDRS_MAX 8192

/* What fi_getinfo knows. */
struct fake_offer {
	const char *provider;
	const char *domain; /* NULL: the entry has none */
	const char *source; /* an address; NULL: none */
};

struct fake_post {
	const void *domain; /* libfabric's, of the endpoint */
	void *context;
	uint64_t flags;
	fi_addr_t to;
	void *desc;
	uint8_t *buffer;
	size_t size;
	uint8_t bytes[FAKE_BYTES_MAX];
	uint64_t address, key, data; /* of a write */
};

struct fake_posts {
	struct fake_post posts[FAKE_POSTS_MAX];
	int num;
};

struct fake_mr {
	const void *data;
	size_t size;
	uint64_t access, key, flags;
	bool open;
};

struct fake_completion {
	struct fi_cq_data_entry entry;
	const void *domain; /* whose queue it comes from; NULL: that which is read next */
	int error;	    /* FI_E*, or 0 */
	int prov_errno;
};

struct fake_fabric {
	/* Set by the test. */
	const struct fake_offer *offers; /* ended by a provider NULL */
	uint64_t mr_mode;
	uint64_t mr_flags_known; /* to fi_mr_reg; others are refused */
	size_t rx_size, tx_size, inject_size, cq_data_size, mr_key_size, max_msg_size;
	int writes_end_with;	   /* at once: a status of the NIC's, or -1: success; 0: not */
	const char *name;	   /* the endpoint's name; NULL: fake_nic()'s address */
	size_t payload_max;	   /* of domains that fake_domain_open() opens */
	struct mesh_lock *mr_lock; /* whether registrations change under it is counted */

	/* For each call: let skip of them pass, then fail times with error. */
	struct {
		int skip, times, error;
		int calls; /* so far, failed ones too */
	} on[FAKE_CALLS];

	/* Runs in each call before anything else, in the thread that calls; NULL: nothing does. */
	void (*before)(enum fake_call call);

	/* Seen by the test. */
	int open[FAKE_CALLS];  /* objects not closed yet */
	int busy_closes;       /* closed while something in it was open: real providers refuse */
	char queried[16][128]; /* "provider node" of each fi_getinfo */
	int rescans;	       /* of them */
	struct fi_info *hints; /* of the last fi_getinfo */
	struct fake_posts receives, sends, writes, injects;
	int receives_taken; /* that fake_deliver() has used */
	struct fake_mr mrs[FAKE_POSTS_MAX];
	int num_mrs;
	int mr_locked;				  /* changes of registrations under mr_lock */
	struct sockaddr_in addrs[FAKE_ADDRS_MAX]; /* in the address vector */
	int num_addrs;
	size_t cq_size; /* that was asked for */

	struct fake_completion completions[FAKE_POSTS_MAX];
	int completed, read;
};

extern struct fake_fabric fake;

/** Everything works, and an offer of tcp for fake_nic(). */
void fake_reset(void);

/** Frees what the fake keeps; a test's teardown. Returns 0 if no object is open. */
void fake_teardown(void);

/** After @skip calls that work, @times fail with @error (-FI_E*). */
void fake_fail(enum fake_call call, int skip, int times, int error);

/* Between the fake's own files: counts a call and says what it is to return; frees fake.hints. */
int fake_called(enum fake_call call);
void fake_hints_forget(void);

/** All objects that are open. */
int fake_open_objects(void);

/** A NIC eth7, 10.7.0.1/24, without RDMA. */
const struct mesh_nic *fake_nic(void);

/** Opens a domain of fake_nic() with this provider; fails the test if it cannot. */
struct mesh_domain *fake_domain_open(enum mesh_provider_id provider);

/** Opens the remote endpoint 10.7.0.2 with this port, as if connected; fails if it cannot. */
struct mesh_remote *fake_remote_open(struct mesh_domain *domain, uint16_t port);

/** What the next fi_cq_read will return: an operation that was posted is done ... */
void fake_complete(const struct fake_post *post);
/** ... or failed with FI_E*, */
void fake_complete_error(void *context, int error);
/** ... the same with a provider's own error, the completion status of verbs, */
void fake_complete_status(void *context, int error, int prov_errno);
/** ... a message came into the oldest posted receive, */
void fake_deliver(const void *bytes, size_t size);
/** ... or a peer's write with this immediate. */
void fake_deliver_immediate(uint64_t immediate);

int __wrap_fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		      const struct fi_info *hints, struct fi_info **info);
int __wrap_fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);

#endif
