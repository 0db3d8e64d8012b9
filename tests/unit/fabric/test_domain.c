/* SPDX-License-Identifier: Apache-2.0 */
/* test_domain.c - a domain is opened whole or not at all, and closed in the right order. */
#include <sys/resource.h>

#include <rdma/fi_errno.h>

#include "wire/message.h"

#include "domain_fixture.h"

/* What the machine allows, 0: anything; and which provider is opened. */
static unsigned long memlock_kib;
static enum mesh_provider_id provider;

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
	assert_int_equal(resource, RLIMIT_MEMLOCK);
	limit->rlim_cur = limit->rlim_max = memlock_kib ? memlock_kib << 10 : RLIM_INFINITY;
	return 0;
}

static void setup(void)
{
	memlock_kib = 0;
	provider = MESH_PROVIDER_TCP;
	fake_setup();
}

TESTS_USE(setup, domain_teardown);

TEST(open)
{
	struct mesh_addr addr;

	domain = fake_domain_open(MESH_PROVIDER_TCP);
	assert_int_equal(domain->provider, MESH_PROVIDER_TCP);
	assert_int_equal(domain->port, FAKE_PORT);
	assert_int_equal(mesh_addr_from_sockaddr((struct sockaddr *)domain->name, domain->name_len,
						 &addr, NULL),
			 0);
	assert_true(mesh_addr_equal(&addr, &fake_nic()->source));
	assert_int_equal(domain->segment_max, 1 << 30);
	assert_int_equal(fake.open[FAKE_ENDPOINT], 1);
	assert_int_equal(fake.open[FAKE_MR], 0); /* tcp wants no local registration */
}

/* Receives are posted before a peer can send: as many as the provider accepts, each elsewhere. */
TEST(receives_posted)
{
	fake.rx_size = 10;
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	assert_int_equal(fake.receives.num, 10);
	mesh_domain_close(domain);
	fake_reset();
	domain = fake_domain_open(MESH_PROVIDER_TCP_RXM);
	assert_in_range(fake.receives.num, 64, 1024);
	for (int i = 0; i < fake.receives.num; i++) {
		const struct fake_post *receive = &fake.receives.posts[i];

		assert_int_equal(receive->size,
				 sizeof(struct mesh_message_header) + domain->payload_max);
		assert_null(receive->desc);
		if (i)
			assert_true(receive->buffer >= receive[-1].buffer + receive[-1].size);
		memset(receive->buffer, 0x11, receive->size); /* ASan: it is ours */
	}
}

/* On tcp all of them pass through the processor's cache in turn: a few, for all comms. */
TEST(receives_few_on_tcp)
{
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	assert_in_range(fake.receives.num, 16, 64);
}

/* Each peer may keep one for as long as it takes to send the rest of a message. */
TEST(receives_grow_with_peers)
{
	int few, i;

	domain = fake_domain_open(MESH_PROVIDER_TCP);
	few = fake.receives.num;
	for (i = 0; i < 10; i++)
		fake_remote_open(domain, (uint16_t)(1000 + i));
	assert_int_equal(fake.receives.num, few);
	for (i = 0; i < 100; i++) /* each of them twice */
		fake_remote_open(domain, (uint16_t)(1000 + i / 2 * 2));
	assert_in_range(fake.receives.num, 50 + 10, 50 + few);
	for (i = 0; i < 1000; i++)
		fake_remote_open(domain, (uint16_t)(2000 + i));
	assert_in_range(fake.receives.num, 200, 300);
	for (i = 1; i < fake.receives.num; i++)
		assert_true(fake.receives.posts[i].buffer >=
			    fake.receives.posts[i - 1].buffer + fake.receives.posts[i - 1].size);
}

TEST(close_null)
{
	mesh_domain_close(NULL);
}

/* Opening fails with @error (-1: any), says so once, and leaves nothing open. */
static void open_fails(int error, const char *said)
{
	struct mesh_domain_options options = {
		.nic = fake_nic(), .provider = provider, .payload_max = 4096};
	struct mesh_domain *opened = (struct mesh_domain *)&options;
	int ret;

	log_capture_start();
	ret = mesh_domain_open(&options, &opened);
	if (error == -1)
		assert_true(ret < 0);
	else
		assert_int_equal(ret, error);
	assert_ptr_equal(opened, &options); /* untouched */
	assert_int_equal(log_captured_lines(MESH_LOG_WARN), 1);
	assert_true(log_captured(MESH_LOG_WARN, "eth7"));
	assert_true(log_captured(MESH_LOG_WARN, said));
	fake_teardown();
}

static void step_fails(enum fake_call call, int skip, int error, const char *said)
{
	static const struct fake_offer offers[] = {
		{"tcp", "eth7", "10.7.0.1"}, {"verbs;ofi_rxm", "mlx5_7", "10.7.0.1"}, {0}};

	fake_reset();
	fake.offers = offers;
	fake.mr_mode = FI_MR_LOCAL | FI_MR_PROV_KEY;
	fake_fail(call, skip, 1, error);
	open_fails(error, said);
	assert_true(log_captured(MESH_LOG_WARN, fi_strerror(-error)));
}

TEST(open_fails)
{
	step_fails(FAKE_FABRIC, 0, -FI_EIO, "open the fabric");
	step_fails(FAKE_DOMAIN, 0, -FI_ENOMEM, "open the domain");
	step_fails(FAKE_AV, 0, -FI_EINVAL, "address vector");
	step_fails(FAKE_CQ, 0, -FI_ENOMEM, "completion queue");
	step_fails(FAKE_ENDPOINT, 0, -FI_EADDRINUSE, "open the endpoint");
	step_fails(FAKE_BIND, 0, -FI_EINVAL, "enable the endpoint");
	step_fails(FAKE_BIND, 1, -FI_EINVAL, "enable the endpoint");
	step_fails(FAKE_ENABLE, 0, -FI_EADDRNOTAVAIL, "enable the endpoint");
	step_fails(FAKE_GETNAME, 0, -FI_EIO, "endpoint's name");
	step_fails(FAKE_MR, 0, -FI_ENOMEM, "register");
	step_fails(FAKE_RECV, 0, -FI_EIO, "post a receive");
	step_fails(FAKE_RECV, 9, -FI_ENOMEM, "post a receive");
	step_fails(FAKE_CQ, 0, -FI_EMFILE, "ulimit -n");
	step_fails(FAKE_ENDPOINT, 0, -FI_EADDRNOTAVAIL, "did this NIC lose its address");
	step_fails(FAKE_ENABLE, 0, -FI_EADDRINUSE, "FI_TCP_PORT_LOW_RANGE");
}

/* Locked memory runs out while RDMA's queues and buffers are made; the message has the limit. */
TEST(memlock_hint)
{
	memlock_kib = 8192;
	step_fails(FAKE_MR, 0, -FI_ENOMEM, "limit of 8192 KiB of locked memory (ulimit -l)");
	provider = MESH_PROVIDER_VERBS_RXM;
	step_fails(FAKE_ENDPOINT, 0, -FI_ENOMEM, "--ulimit memlock=-1");
	step_fails(FAKE_CQ, 0, -FI_ENOMEM, "LimitMEMLOCK=infinity");
	step_fails(FAKE_MR, 0, -FI_ENOMEM, "8192 KiB");
	/* Without a limit there is another reason. */
	memlock_kib = 0;
	step_fails(FAKE_ENDPOINT, 0, -FI_ENOMEM, "open the endpoint");
}

/* Every operation that can be posted has room in the completion queue. */
TEST(completions)
{
	fake.rx_size = 20000;
	fake.tx_size = 5000;
	mesh_domain_close(fake_domain_open(MESH_PROVIDER_TCP));
	assert_true(fake.cq_size >= 45000);
	fake_reset();
	fake.rx_size = fake.tx_size = 0; /* libfabric: unknown */
	mesh_domain_close(fake_domain_open(MESH_PROVIDER_TCP));
	assert_true(fake.cq_size >= 1024);
}

/* The name must be an address that others can use. */
TEST(strange_name)
{
	static const char *const names[] = {
		"",
		"fi_shm://1",
		"a name that is longer than any that this version has room for, by far",
	};

	FOR_EACH(i, names) {
		fake.name = names[i];
		open_fails(-1, "endpoint's name");
	}
}

TEST(no_provider)
{
	static const struct fake_offer nothing[] = {{0}};

	fake.offers = nothing;
	open_fails(-ENODEV, "eth7");
}

/* What each provider is relied on for. */
TEST(limits)
{
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	assert_int_equal(domain->immediate_bits, 64);
	assert_true(domain->send_flags & FI_COMPLETION);
	mesh_domain_close(domain);
	domain = fake_domain_open(MESH_PROVIDER_TCP_RXM);
	assert_int_equal(domain->immediate_bits, 0);
	mesh_domain_close(domain);
	fake.cq_data_size = 4;
	domain = fake_domain_open(MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(domain->immediate_bits, 32);
}

/* Messages are sent from registered memory if the provider requires it. */
TEST(local_registration)
{
	const struct fake_mr *slab;
	const uint8_t *start;

	fake.mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	domain = fake_domain_open(MESH_PROVIDER_VERBS_RXM);
	assert_int_equal(fake.open[FAKE_MR], 1);
	slab = &fake.mrs[fake.num_mrs - 1];
	start = slab->data;
	for (int i = 0; i < fake.receives.num; i++) {
		const struct fake_post *receive = &fake.receives.posts[i];

		assert_non_null(receive->desc);
		assert_true(receive->buffer >= start);
		assert_true(receive->buffer + receive->size <= start + slab->size);
	}
}

/* The domain frees remotes that were not closed. */
TEST(close_with_remotes)
{
	domain = fake_domain_open(MESH_PROVIDER_TCP);
	fake_remote_open(domain, 1);
	mesh_domain_close(domain);
	domain = NULL;
}
