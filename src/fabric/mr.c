/* SPDX-License-Identifier: Apache-2.0 */
/* mr.c - memory registrations of one domain, cached and counted. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <mesh/base/log.h>
#include <mesh/base/random.h>
#include <mesh/fabric/mr.h>

struct mesh_mr {
	LIST_ENTRY(mesh_mr) entry; /* domain->mrs, under domain->lock */
	struct mesh_domain *domain;
	struct fid_mr *fid;
	const char *data;
	size_t size; /* bytes */
	int users;   /* under domain->lock */
};

static struct mesh_mr *mr_lookup(struct mesh_domain *domain, const char *data, size_t size)
{
	struct mesh_mr *mr;

	mesh_lock_assert_held(&domain->lock);
	LIST_FOREACH(mr, &domain->mrs, entry) {
		if (data >= mr->data && size <= mr->size &&
		    (size_t)(data - mr->data) <= mr->size - size)
			return mr;
	}
	return NULL;
}

static int mr_register(struct mesh_domain *domain, struct mesh_mr *mr)
{
	const uint64_t access = FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
	uint64_t key;
	int ret;

	/*
	 * The key is ours to choose unless the provider says otherwise. Random: strangers cannot
	 * guess it, and none comes twice, so that a late write finds no region.
	 */
	ret = mesh_random(&key, sizeof(key));
	if (ret)
		return ret;
	mesh_lock_take(&domain->transmit_lock);
	ret = fi_mr_reg(domain->domain, mr->data, mr->size, access, 0, key, 0, &mr->fid, NULL);
	mesh_lock_release(&domain->transmit_lock);
	if (ret)
		mesh_warn("cannot register %zu bytes of memory with %s (%s): %s%s", mr->size,
			  domain->nic->netdev, mesh_provider_id_text(domain->provider),
			  fi_strerror(-ret),
			  ret == -FI_ENOMEM ? "; is the memlock limit (ulimit -l) unlimited?" : "");
	return ret;
}

int mesh_mr_open(struct mesh_domain *domain, const void *data, size_t size, struct mesh_mr **mr)
{
	struct mesh_mr *found;
	int ret = 0;

	mesh_lock_take(&domain->lock);
	found = mr_lookup(domain, data, size);
	if (found) {
		found->users++;
		goto unlock;
	}
	found = calloc(1, sizeof(*found));
	if (!found) {
		ret = -ENOMEM;
		goto unlock;
	}
	found->domain = domain;
	found->data = data;
	found->size = size;
	found->users = 1;
	ret = mr_register(domain, found);
	if (ret) {
		free(found);
		goto unlock;
	}
	LIST_INSERT_HEAD(&domain->mrs, found, entry);
unlock:
	mesh_lock_release(&domain->lock);
	if (!ret)
		*mr = found;
	return ret;
}

void mesh_mr_close(struct mesh_mr *mr)
{
	struct mesh_domain *domain;
	int ret;

	if (!mr)
		return;
	domain = mr->domain;
	mesh_lock_take(&domain->lock);
	if (--mr->users) {
		mesh_lock_release(&domain->lock);
		return;
	}
	LIST_REMOVE(mr, entry);
	mesh_lock_take(&domain->transmit_lock);
	ret = fi_close(&mr->fid->fid);
	mesh_lock_release(&domain->transmit_lock);
	mesh_lock_release(&domain->lock);
	if (ret)
		mesh_warn("cannot end a memory registration of %s: %s", domain->nic->netdev,
			  fi_strerror(-ret));
	free(mr);
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
