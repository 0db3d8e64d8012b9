/* SPDX-License-Identifier: Apache-2.0 */
/* mr.c - memory registrations of one domain, cached and counted. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/random.h"
#include "fabric/mr.h"
#include "system/this_process.h"

struct mesh_mr {
	LIST_ENTRY(mesh_mr) entry; /* domain->mrs, under mrs_lock */
	struct mesh_domain *domain;
	struct fid_mr *fid;
	const char *data;
	size_t size; /* bytes */
	int users;   /* under mrs_lock */
};

MESH_HOLDS(mrs)
static struct mesh_mr *mr_lookup(struct mesh_domain *domain, const char *data, size_t size)
{
	struct mesh_mr *mr;

	mesh_mrs_assert_locked(domain);
	LIST_FOREACH(mr, &domain->mrs, entry) {
		if (data >= mr->data && size <= mr->size &&
		    (size_t)(data - mr->data) <= mr->size - size)
			return mr;
	}
	return NULL;
}

/*
 * The plugin chooses the key unless the provider does (FI_MR_PROV_KEY). A random key cannot be
 * guessed and does not repeat, so a late write finds no region.
 */
static int key_choose(const struct mesh_domain *domain, uint64_t *key)
{
	size_t size = domain->info->domain_attr->mr_key_size;
	int ret = mesh_random(key, sizeof(*key));

	if (!ret && size && size < sizeof(*key))
		*key &= ((uint64_t)1 << 8 * size) - 1;
	return ret;
}

static int region_open(struct mesh_domain *domain, const void *data, size_t size, uint64_t flags,
		       struct fid_mr **fid)
{
	const uint64_t access = FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
	uint64_t key;
	int ret = key_choose(domain, &key);

	return ret ? ret : fi_mr_reg(domain->domain, data, size, access, 0, key, flags, fid, NULL);
}

/*
 * Polls and posts, which may read the table of keys while it changes (domain.h). verbs has no such
 * table: there they go on while memory is being pinned.
 */
MESH_NOT_ANALYSED
static void traffic_hold(struct mesh_domain *domain)
{
	if (mesh_domain_pins(domain))
		return;
	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
}

MESH_NOT_ANALYSED
static void traffic_let_go(struct mesh_domain *domain)
{
	if (mesh_domain_pins(domain))
		return;
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
}

static int mr_register(struct mesh_domain *domain, struct mesh_mr *mr)
{
	char hint[MESH_MEMLOCK_HINT_MAX] = "";
	int ret;

	traffic_hold(domain);
	ret = region_open(domain, mr->data, mr->size, domain->mr_flags, &mr->fid);
	traffic_let_go(domain);
	if (ret == -FI_ENOMEM)
		mesh_memlock_hint(hint);
	if (ret)
		mesh_warn_new(domain->failure,
			      "cannot register %zu bytes of memory with %s (%s): %s%s", mr->size,
			      domain->nic->netdev, mesh_provider_id_text(domain->provider),
			      fi_strerror(-ret), hint);
	return ret;
}

/* Adds a user to one that covers the memory; NULL: there is none. */
static struct mesh_mr *mr_share(struct mesh_domain *domain, const void *data, size_t size)
{
	struct mesh_mr *mr;

	mesh_mrs_lock(domain);
	mr = mr_lookup(domain, data, size);
	if (mr)
		mr->users++;
	mesh_mrs_unlock(domain);
	return mr;
}

int mesh_mr_open(struct mesh_domain *domain, const void *data, size_t size, struct mesh_mr **mr)
{
	struct mesh_mr *opened = mr_share(domain, data, size);
	int ret;

	if (opened) {
		*mr = opened;
		return 0;
	}
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->domain = domain;
	opened->data = data;
	opened->size = size;
	opened->users = 1;
	ret = mr_register(domain, opened);
	if (ret) {
		free(opened);
		return ret;
	}
	mesh_mrs_lock(domain);
	LIST_INSERT_HEAD(&domain->mrs, opened, entry);
	mesh_mrs_unlock(domain);
	*mr = opened;
	return 0;
}

void mesh_mr_close(struct mesh_mr *mr)
{
	struct mesh_domain *domain;
	int users, ret;

	if (!mr)
		return;
	domain = mr->domain;
	mesh_mrs_lock(domain);
	users = --mr->users;
	if (!users)
		LIST_REMOVE(mr, entry);
	mesh_mrs_unlock(domain);
	if (users)
		return;
	traffic_hold(domain);
	ret = fi_close(&mr->fid->fid);
	traffic_let_go(domain);
	if (ret)
		mesh_warn("cannot close a memory registration of %s: %s", domain->nic->netdev,
			  fi_strerror(-ret));
	free(mr);
}

const struct mesh_domain *mesh_mr_domain(const struct mesh_mr *mr)
{
	return mr ? mr->domain : NULL;
}

uint64_t mesh_mr_remote_address(const struct mesh_mr *mr, const void *data)
{
	if (mr->domain->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR)
		return (uintptr_t)data;
	return (uint64_t)((const char *)data - mr->data);
}

uint64_t mesh_mr_key(const struct mesh_mr *mr)
{
	return fi_mr_key(mr->fid);
}

void *mesh_mr_desc(const struct mesh_mr *mr)
{
	return mr ? fi_mr_desc(mr->fid) : NULL;
}
