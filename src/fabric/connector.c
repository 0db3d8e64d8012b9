/* SPDX-License-Identifier: Apache-2.0 */
/* connector.c - a thread of the domain for posts that connect, which take long on verbs. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/threads.h"
#include "fabric/connector.h"

struct mesh_connector {
	struct mesh_domain *domain;
	void (*turn)(struct mesh_domain *domain);
	pthread_t thread;
	sem_t wake;
	_Atomic(bool) stop;
};

static void *connector_main(void *arg)
{
	struct mesh_connector *connector = arg;

	for (;;) {
		while (sem_wait(&connector->wake) && errno == EINTR)
			;
		if (atomic_load(&connector->stop))
			return NULL;
		connector->turn(connector->domain);
	}
}

int mesh_connector_start(struct mesh_domain *domain, void (*turn)(struct mesh_domain *domain))
{
	struct mesh_connector *connector = calloc(1, sizeof(*connector));
	int ret;

	if (!connector)
		return -ENOMEM;
	connector->domain = domain;
	connector->turn = turn;
	sem_init(&connector->wake, 0, 0);
	domain->connector = connector;
	ret = mesh_thread_create(&connector->thread, "nccl-mesh-conn", connector_main, connector);
	if (!ret)
		return 0;
	domain->connector = NULL;
	sem_destroy(&connector->wake);
	free(connector);
	return ret;
}

void mesh_connector_stop(struct mesh_domain *domain)
{
	struct mesh_connector *connector = domain->connector;

	if (!connector)
		return;
	atomic_store(&connector->stop, true);
	sem_post(&connector->wake);
	pthread_join(connector->thread, NULL);
	domain->connector = NULL;
	sem_destroy(&connector->wake);
	free(connector);
}

void mesh_connector_wake(struct mesh_domain *domain)
{
	sem_post(&domain->connector->wake);
}

bool mesh_endpoint_claim(struct mesh_domain *domain)
{
	bool claimed;

	/* Both locks: then no thread is in the endpoint, and the next one sees the claim. */
	mesh_domain_lock(domain);
	mesh_transmit_lock(domain);
	claimed = !mesh_endpoint_is_claimed(domain);
	atomic_store_explicit(&domain->claimed, true, memory_order_relaxed);
	mesh_transmit_unlock(domain);
	mesh_domain_unlock(domain);
	return claimed;
}

void mesh_endpoint_release(struct mesh_domain *domain)
{
	mesh_transmit_lock(domain);
	atomic_store_explicit(&domain->has_waiting, true, memory_order_relaxed);
	atomic_store_explicit(&domain->claimed, false, memory_order_release);
	mesh_transmit_unlock(domain);
	mesh_connector_wake(domain);
}
