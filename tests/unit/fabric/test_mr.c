/* SPDX-License-Identifier: Apache-2.0 */
/* test_mr.c - registrations: shared where one covers another, and ended with their last user. */
#include <pthread.h>
#include <semaphore.h>

#include <rdma/fi_errno.h>

#include "fabric/mr.h"

#include "domain_fixture.h"

#define LIMIT_S 60

static char pool[4096];

TESTS_USE(domain_setup, domain_teardown);

static struct mesh_mr *mr_open(size_t offset, size_t size)
{
	struct mesh_mr *mr = NULL;

	assert_int_equal(mesh_mr_open(domain, pool + offset, size, &mr), 0);
	assert_non_null(mr);
	return mr;
}

static void verbs_open(void)
{
	fake.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	domain_open(MESH_PROVIDER_VERBS_RXM);
}

TEST(counted)
{
	struct mesh_mr *a = mr_open(0, 4096), *b = mr_open(0, 4096);

	assert_ptr_equal(a, b);
	assert_int_equal(fake.num_mrs, 1);
	assert_ptr_equal(fake.mrs[0].data, pool);
	assert_int_equal(fake.mrs[0].size, 4096);
	assert_true(fake.mrs[0].access & FI_REMOTE_WRITE);
	assert_true(fake.mrs[0].access & FI_WRITE);
	mesh_mr_close(a);
	assert_int_equal(fake.open[FAKE_MR], 1);
	mesh_mr_close(b);
	assert_int_equal(fake.open[FAKE_MR], 0);
	a = mr_open(0, 4096); /* what has ended is not found */
	assert_int_equal(fake.num_mrs, 2);
	mesh_mr_close(a);
	mesh_mr_close(NULL);
}

/* A range inside a registered one needs no registration; one that sticks out does. */
TEST(containing)
{
	static const struct {
		size_t offset, size;
		bool inside;
	} ranges[] = {
		{1000, 1000, true}, {1000, 1, true},	 {1999, 1, true},    {1001, 999, true},
		{999, 2, false},    {1999, 2, false},	 {999, 1002, false}, {2000, 1, false},
		{0, 1000, false},   {1000, 1001, false},
	};
	struct mesh_mr *whole = mr_open(1000, 1000), *part;

	FOR_EACH(i, ranges) {
		part = mr_open(ranges[i].offset, ranges[i].size);
		assert_int_equal(part == whole, ranges[i].inside);
		assert_int_equal(fake.open[FAKE_MR], ranges[i].inside ? 1 : 2);
		mesh_mr_close(part);
		assert_int_equal(fake.open[FAKE_MR], 1);
	}
	mesh_mr_close(whole);
}

/* Two that touch are two: libfabric would refuse a write across them. */
TEST(neighbours)
{
	struct mesh_mr *a = mr_open(0, 100), *b = mr_open(100, 100);
	struct mesh_mr *across = mr_open(50, 100);

	assert_int_equal(fake.open[FAKE_MR], 3);
	mesh_mr_close(a);
	mesh_mr_close(b);
	assert_true(fake.mrs[2].open);
	mesh_mr_close(across);
}

TEST(virtual_address)
{
	struct mesh_mr *mr = mr_open(64, 1024);

	assert_true(mesh_mr_remote_address(mr, pool + 64) == (uintptr_t)(pool + 64));
	assert_true(mesh_mr_remote_address(mr, pool + 65) == (uintptr_t)(pool + 65));
	mesh_mr_close(mr);
}

/* Offsets count from the registration that was found, not from the caller's own range. */
TEST_WITH(offset, fake_setup, domain_teardown)
{
	struct mesh_mr *mr, *part;

	fake.mr_mode = 0;
	domain_open(MESH_PROVIDER_TCP);
	mr = mr_open(64, 1024);
	part = mr_open(128, 64);
	assert_true(mesh_mr_remote_address(mr, pool + 64) == 0);
	assert_true(mesh_mr_remote_address(mr, pool + 1000) == 936);
	assert_true(mesh_mr_remote_address(part, pool + 128) == 64);
	mesh_mr_close(mr);
	mesh_mr_close(part);
}

/* A late write of a peer must find no region: no key is ever used again, failed ones included. */
TEST(keys)
{
	struct mesh_mr *mr;
	uint64_t keys[20];

	for (int i = 0; i < 20; i++) {
		fake_fail(FAKE_MR, 0, i % 3 == 0, -FI_ENOKEY);
		if (i % 3 == 0)
			assert_int_not_equal(mesh_mr_open(domain, pool, 64, &mr), 0);
		mr = mr_open(0, 64);
		keys[i] = mesh_mr_key(mr);
		assert_true(fake.mrs[i].key == keys[i]);
		for (int j = 0; j < i; j++)
			assert_true(keys[j] != keys[i]);
		mesh_mr_close(mr);
	}
}

/* On verbs the provider makes the keys, and sends need a descriptor. */
TEST_WITH(provider_key, fake_setup, domain_teardown)
{
	struct mesh_mr *mr;

	verbs_open();
	mr = mr_open(0, 64);
	assert_true(mesh_mr_key(mr) == FAKE_PROV_KEY + 1); /* after the messages' */
	assert_non_null(mesh_mr_desc(mr));
	mesh_mr_close(mr);
	domain_change(MESH_PROVIDER_TCP);
	mr = mr_open(0, 64);
	assert_null(mesh_mr_desc(mr));
	assert_null(mesh_mr_desc(NULL));
	mesh_mr_close(mr);
}

/* Keys that are ours to choose fit the provider. */
TEST_WITH(short_keys, fake_setup, domain_teardown)
{
	struct mesh_mr *mr;

	fake.mr_key_size = 2;
	domain_open(MESH_PROVIDER_TCP);
	for (int i = 0; i < 20; i++) {
		mr = mr_open(0, 64);
		assert_true(mesh_mr_key(mr) <= UINT16_MAX);
		mesh_mr_close(mr);
	}
}

/* ---- libfabric's cache of verbs registrations ---------------------------------------------- */

/* Registrations on verbs bypass the cache without any setting. */
TEST_WITH(no_cache, fake_setup, domain_teardown)
{
	struct mesh_mr *mr;

	verbs_open();
	mr = mr_open(0, 4096);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 0);
	assert_int_equal(fake.num_mrs, 2);
	for (int i = 0; i < fake.num_mrs; i++)
		assert_true(fake.mrs[i].flags == FAKE_MR_NOCACHE);
	mesh_mr_close(mr);
}

/* tcp has no cache: it gets no flag that it may not know. */
TEST_WITH(cache_of_verbs_only, fake_setup, domain_teardown)
{
	struct mesh_mr *mr;

	fake.mr_flags_known = 0;
	domain_open(MESH_PROVIDER_TCP);
	assert_int_equal(fake.num_mrs, 0);
	mr = mr_open(0, 64);
	assert_true(fake.mrs[0].flags == 0);
	mesh_mr_close(mr);
}

/* On verbs nothing waits while memory is pinned; on tcp a table changes. */
TEST(traffic_goes_on)
{
	static const enum mesh_provider_id providers[] = {MESH_PROVIDER_VERBS_RXM,
							  MESH_PROVIDER_TCP, MESH_PROVIDER_TCP_RXM};
	struct mesh_lock *locks[2];

	for (int i = 0; i < 3; i++) {
		domain_change(providers[i]);
		locks[0] = &domain->transmit_lock;
		locks[1] = &domain->lock;
		for (int k = 0; k < 2; k++) {
			fake.mr_lock = locks[k];
			fake.mr_locked = 0;
			mesh_mr_close(mr_open(0, 64));
			assert_int_equal(fake.mr_locked, i ? 2 : 0);
		}
		fake.mr_lock = NULL;
	}
}

static pthread_t tester;
static sem_t pins, go;

/* In another thread memory is pinned when the test says so. */
static void others_wait(enum fake_call call)
{
	if (call != FAKE_MR || pthread_equal(pthread_self(), tester))
		return;
	sem_post(&pins);
	sem_wait(&go);
}

static void *pinning_main(void *arg)
{
	return mr_open(0, 2048);
}

/* Gigabytes are pinned for NCCL: who needs a page does not wait, be it of the same memory. */
TEST(beside_another)
{
	struct mesh_mr *mrs[3];
	pthread_t thread;
	void *pinned;

	domain_change(MESH_PROVIDER_VERBS_RXM);
	sem_init(&pins, 0, 0);
	sem_init(&go, 0, 0);
	tester = pthread_self();
	fake.before = others_wait;
	alarm(LIMIT_S); /* what waits for the thread never ends */
	assert_int_equal(pthread_create(&thread, NULL, pinning_main, NULL), 0);
	sem_wait(&pins);
	mrs[0] = mr_open(0, 64);
	mrs[1] = mr_open(2048, 64);
	mesh_mr_close(mrs[1]);
	sem_post(&go);
	pthread_join(thread, &pinned);
	alarm(0);
	mrs[2] = mr_open(128, 64); /* from now on the large one serves all */
	assert_ptr_equal(mrs[2], pinned);
	mesh_mr_close(mrs[2]);
	mesh_mr_close(mrs[0]);
	mesh_mr_close(pinned);
}

TEST(refused)
{
	struct mesh_mr *mr = (struct mesh_mr *)pool;

	fake_fail(FAKE_MR, 0, 2, -FI_ENOMEM);
	assert_int_equal(mesh_mr_open(domain, pool, 4096, &mr), -ENOMEM);
	assert_ptr_equal(mr, pool);
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "4096 bytes"));
	assert_true(log_captured(MESH_LOG_WARN, "eth7"));
	/* Nothing half made is found by the next one. */
	assert_int_equal(mesh_mr_open(domain, pool, 64, &mr), -ENOMEM);
	mr = mr_open(0, 64);
	assert_int_equal(fake.num_mrs, 1);
	mesh_mr_close(mr);
}
