/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_net.h - a transport without a network: it answers as the test says and notes what it was
 * asked. Defines the functions of src/setup/net.h. For test programs only.
 */
#ifndef TEST_FAKE_NET_H
#define TEST_FAKE_NET_H

#include <stdatomic.h>
#include <string.h>

#include "setup/listener.h"
#include "setup/net.h"
#include "transport/comm_life.h"
#include "transport/data.h"

#define FAKE_NICS 2

struct fake_net {
	/* answers */
	int error;	    /* of every function that can fail */
	bool not_ready;	    /* connect and accept give no comm, send and receive no request */
	bool done;	    /* of test */
	size_t done_size;   /* of test */
	const void *poison; /* written into every output with an error */
	struct mesh_nic nics[FAKE_NICS];
	/* what was asked */
	atomic_int opens;
	int closed_nets;
	int closed_comms;
	int closed_listeners;
	int closed_registrations;
	int calls; /* of all functions with outputs but test */
	const void *net;
	int dev;
	const void *handle;
	const void *comm;
	const void *data;
	size_t size;
	const void *registration;
};

static struct fake_net fake;

/* Objects of the transport: only their addresses matter. */
static char fake_objects[5];
#define FAKE_NET ((void *)&fake_objects[0])
#define FAKE_LISTENER ((void *)&fake_objects[1])
#define FAKE_COMM ((void *)&fake_objects[2])
#define FAKE_REGISTRATION ((void *)&fake_objects[3])
#define FAKE_REQUEST ((void *)&fake_objects[4])

static void fake_net_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	for (int i = 0; i < FAKE_NICS; i++) {
		struct mesh_nic *nic = &fake.nics[i];

		strcpy(nic->name, i ? "mesh-b" : "mesh-a");
		strcpy(nic->pci_path, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0");
		nic->guid = 0x1122334455667700 + (uint64_t)i;
		nic->port = 1 + i;
		nic->speed_mbps = 200000;
	}
}

/* An output of a call: the object, nothing yet, or rubbish beside an error. */
static int fake_answer(void **output, void *object)
{
	fake.calls++;
	if (fake.error)
		*output = (void *)fake.poison;
	else
		*output = fake.not_ready ? NULL : object;
	return fake.error;
}

int mesh_net_open(struct mesh_net **net)
{
	atomic_fetch_add(&fake.opens, 1);
	if (fake.error)
		return fake.error;
	*net = FAKE_NET;
	return 0;
}

void mesh_net_close(struct mesh_net *net)
{
	if (net)
		fake.closed_nets++;
}

int mesh_net_num_nics(void)
{
	return FAKE_NICS;
}

const struct mesh_nic *mesh_net_nic(int dev)
{
	return dev >= 0 && dev < FAKE_NICS ? &fake.nics[dev] : NULL;
}

int mesh_net_listen(struct mesh_net *net, int dev, void *handle, struct mesh_listener **listener)
{
	fake.net = net;
	fake.dev = dev;
	fake.handle = handle;
	return fake_answer((void **)listener, FAKE_LISTENER);
}

void mesh_listener_close(struct mesh_listener *listener)
{
	if (listener)
		fake.closed_listeners++;
}

int mesh_net_connect(struct mesh_net *net, int dev, void *handle, struct mesh_comm **comm)
{
	fake.net = net;
	fake.dev = dev;
	fake.handle = handle;
	return fake_answer((void **)comm, FAKE_COMM);
}

int mesh_listener_accept(struct mesh_listener *listener, struct mesh_comm **comm)
{
	fake.comm = listener;
	return fake_answer((void **)comm, FAKE_COMM);
}

void mesh_comm_close(struct mesh_comm *comm)
{
	if (comm)
		fake.closed_comms++;
}

int mesh_registration_open(struct mesh_comm *comm, void *data, size_t size,
			   struct mesh_registration **registration)
{
	fake.comm = comm;
	fake.data = data;
	fake.size = size;
	return fake_answer((void **)registration, FAKE_REGISTRATION);
}

void mesh_registration_close(struct mesh_comm *comm, struct mesh_registration *registration)
{
	fake.comm = comm;
	if (registration)
		fake.closed_registrations++;
}

int mesh_comm_send(struct mesh_comm *comm, const void *data, size_t size,
		   struct mesh_registration *registration, struct mesh_request **request)
{
	fake.comm = comm;
	fake.data = data;
	fake.size = size;
	fake.registration = registration;
	return fake_answer((void **)request, FAKE_REQUEST);
}

int mesh_comm_receive(struct mesh_comm *comm, void *data, size_t size,
		      struct mesh_registration *registration, struct mesh_request **request)
{
	return mesh_comm_send(comm, data, size, registration, request);
}

int64_t mesh_request_test(struct mesh_request *request)
{
	if (fake.error)
		return fake.error;
	return fake.done ? (int64_t)fake.done_size : MESH_REQUEST_PENDING;
}

#endif
