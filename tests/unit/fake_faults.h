/* SPDX-License-Identifier: Apache-2.0 */
/* fake_faults.h - what fake_plugin.c does wrong on demand, and the names of it. */
#ifndef MESH_TESTS_FAKE_FAULTS_H
#define MESH_TESTS_FAKE_FAULTS_H

#include <stddef.h>
#include <string.h>

enum fault {
	FAULT_NONE,
	FAULT_FLIP,	      /* one byte of a message is changed */
	FAULT_LOST_BYTES,     /* a message's bytes are not written */
	FAULT_SCRIBBLE,	      /* one byte behind a message is written */
	FAULT_WRONG_SIZE,     /* test reports one byte less */
	FAULT_NEVER_COMPLETE, /* a receive is never done */
	FAULT_NEVER_CONNECT,
	FAULT_HANG, /* isend does not return */
	FAULT_CRASH,
	FAULT_TEST_ERROR,
	FAULT_STALE_REQUEST, /* *request is left as it was */
	FAULT_UNSET_DONE,    /* *done is left as it was */
	FAULT_CHANGE_SENT,   /* a sent buffer is written to */
	FAULT_CONNECT_ERROR,
	FAULT_ACCEPT_ERROR,
	FAULT_REGISTER_ERROR,
	FAULT_CLOSE_ERROR,
	FAULT_INIT_ERROR,
	FAULT_NO_DEVICE,
	FAULT_UNSET_PROPERTY,
	FAULT_FINALIZE_ERROR,
	FAULT_EARLY, /* no fault: an optional completion comes before the bytes */
};

static const char *const fault_names[] = {
	"none",		  "flip",	   "lost-bytes",  "scribble",	   "wrong-size",
	"never-complete", "never-connect", "hang",	  "crash",	   "test-error",
	"stale-request",  "unset-done",	   "change-sent", "connect-error", "accept-error",
	"register-error", "close-error",   "init-error",  "no-device",	   "unset-property",
	"finalize-error", "early",
};

/** The fault of this name; FAULT_NONE for NULL and unknown names. */
static inline enum fault fault_named(const char *name)
{
	for (size_t i = 0; name && i < sizeof(fault_names) / sizeof(fault_names[0]); i++)
		if (!strcmp(name, fault_names[i]))
			return (enum fault)i;
	return FAULT_NONE;
}

#endif
