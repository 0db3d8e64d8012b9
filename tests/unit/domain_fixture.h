/* SPDX-License-Identifier: Apache-2.0 */
/* domain_fixture.h - a domain over the fake provider and a remote, closed behind each test. */
#ifndef MESH_TESTS_DOMAIN_FIXTURE_H
#define MESH_TESTS_DOMAIN_FIXTURE_H

#include "base/clock.h"

#include "fake_fabric.h"
#include "log_capture.h"
#include "unit.h"

static struct mesh_domain *domain;
static struct mesh_remote *remote; /* port 1 of the peer */

static inline void domain_open(enum mesh_provider_id provider)
{
	domain = fake_domain_open(provider);
	remote = fake_remote_open(domain, 1);
}

/* Closes the remotes that the test has left open, too. */
static inline void domain_close(void)
{
	struct mesh_remote *open, *closed;

	do {
		LIST_FOREACH(open, &domain->remotes, entry) {
			LIST_FOREACH(closed, &domain->ended, ended)
				if (closed == open)
					break;
			if (!closed)
				break;
		}
		mesh_remote_close(domain, open);
	} while (open);
	mesh_domain_close(domain);
	domain = NULL;
}

/* In place of the one that is open, with everything working. */
static inline void domain_change(enum mesh_provider_id provider)
{
	domain_close();
	fake_reset();
	domain_open(provider);
}

static inline void remote_lose(struct mesh_remote *lost)
{
	mesh_lock_take(&domain->lock);
	mesh_remote_lose(domain, lost);
	mesh_lock_release(&domain->lock);
}

static inline void wait_cancel(struct mesh_waiter *waiter)
{
	mesh_lock_take(&domain->lock);
	mesh_domain_wait_cancel(domain, waiter);
	mesh_lock_release(&domain->lock);
}

/* It only ends a hang. */
#define AWAIT_LIMIT_MS 60000

/* Tries until @condition is true: another thread is at work. */
#define AWAIT(condition)                                                                           \
	do {                                                                                       \
		uint64_t await_until_ms = mesh_clock_ms() + AWAIT_LIMIT_MS;                        \
                                                                                                   \
		while (!(condition))                                                               \
			assert_true(mesh_clock_ms() < await_until_ms);                             \
	} while (0)

/* Polls once; the connector's thread may have the domain for a moment. */
static inline void poll_once(void)
{
	AWAIT(mesh_domain_poll(domain));
}

/* A test's setup without a domain, which opens one itself; that with a domain of tcp. */
static inline void fake_setup(void)
{
	fake_reset();
	log_capture_start();
}

static inline void domain_setup(void)
{
	fake_setup();
	domain_open(MESH_PROVIDER_TCP);
}

static inline void domain_teardown(void)
{
	if (domain)
		domain_close();
	fake_teardown();
}

#endif
