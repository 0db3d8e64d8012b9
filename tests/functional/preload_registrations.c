/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload_registrations.c - counts the registrations of memory that a process has at libfabric.
 *
 * Usage: LD_PRELOAD=preload_registrations.so MESH_REGISTRATIONS=FOLDER PROGRAM
 * At its end each process that had any writes into FOLDER/PID the most that it had at once.
 *
 * The tables of operations that libfabric's objects point to are replaced by copies with ours. Of
 * ofi_rxm and the provider below it each has its own; those that ofi_rxm makes below are made with
 * another operation (regattr), and not counted.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#define TABLES_MAX 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int now, most;

/* A copy, and the provider's table that it was made of. */
struct fabric_table {
	struct fi_ops_fabric ours;
	const struct fi_ops_fabric *own;
};
struct mr_table {
	struct fi_ops_mr ours;
	const struct fi_ops_mr *own;
};
struct region_table {
	struct fi_ops ours;
	const struct fi_ops *own;
};
static struct fabric_table fabric_tables[TABLES_MAX];
static struct mr_table mr_tables[TABLES_MAX];
static struct region_table region_tables[TABLES_MAX];

/* Makes @object point to the copy of its table whose @operation is @function. */
#define TABLE_REPLACE(object, tables, operation, function)                                         \
	do {                                                                                       \
		int i = 0;                                                                         \
                                                                                                   \
		pthread_mutex_lock(&lock);                                                         \
		while (i < TABLES_MAX - 1 && (tables)[i].own && (tables)[i].own != (object))       \
			i++;                                                                       \
		if (!(tables)[i].own) {                                                            \
			(tables)[i].own = (object);                                                \
			(tables)[i].ours = *(object);                                              \
			(tables)[i].ours.operation = (function);                                   \
		}                                                                                  \
		if ((tables)[i].own == (object))                                                   \
			(object) = &(tables)[i].ours;                                              \
		pthread_mutex_unlock(&lock);                                                       \
	} while (0)

static int our_region_close(struct fid *fid)
{
	const struct region_table *table = (const struct region_table *)fid->ops;
	int ret = table->own->close(fid);

	pthread_mutex_lock(&lock);
	now -= !ret;
	pthread_mutex_unlock(&lock);
	return ret;
}

static int our_region_open(struct fid *fid, const void *data, size_t size, uint64_t access,
			   uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **region,
			   void *context)
{
	const struct fid_domain *domain = (const struct fid_domain *)fid;
	const struct mr_table *table = (const struct mr_table *)domain->mr;
	int ret = table->own->reg(fid, data, size, access, offset, key, flags, region, context);

	if (ret)
		return ret;
	TABLE_REPLACE((*region)->fid.ops, region_tables, close, our_region_close);
	pthread_mutex_lock(&lock);
	if (++now > most)
		most = now;
	pthread_mutex_unlock(&lock);
	return 0;
}

static int our_domain_open(struct fid_fabric *fabric, struct fi_info *info,
			   struct fid_domain **domain, void *context)
{
	const struct fabric_table *table = (const struct fabric_table *)fabric->ops;
	int ret = table->own->domain(fabric, info, domain, context);

	if (!ret)
		TABLE_REPLACE((*domain)->mr, mr_tables, reg, our_region_open);
	return ret;
}

__attribute__((visibility("default"))) int fi_fabric(struct fi_fabric_attr *attr,
						     struct fid_fabric **fabric, void *context)
{
	int (*real)(struct fi_fabric_attr *, struct fid_fabric **, void *);
	int ret;

	*(void **)&real = dlsym(RTLD_NEXT, "fi_fabric");
	if (!real) /* the plugin, which needs libfabric, is not in the global scope */
		*(void **)&real = dlsym(dlopen("libfabric.so.1", RTLD_NOW), "fi_fabric");
	ret = real(attr, fabric, context);
	if (!ret)
		TABLE_REPLACE((*fabric)->ops, fabric_tables, domain, our_domain_open);
	return ret;
}

__attribute__((destructor)) static void most_write(void)
{
	const char *folder = getenv("MESH_REGISTRATIONS");
	char path[4096];
	FILE *file;

	if (!folder || !most)
		return;
	snprintf(path, sizeof(path), "%s/%d", folder, (int)getpid());
	file = fopen(path, "w");
	if (!file)
		return;
	fprintf(file, "%d\n", most);
	fclose(file);
}
