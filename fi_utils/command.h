/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - the subcommands of fi_mesh. */
#ifndef MESH_FI_UTILS_COMMAND_H
#define MESH_FI_UTILS_COMMAND_H

/* Exit statuses of fi_mesh. */
enum command_status {
	COMMAND_FINE = 0,
	COMMAND_PROBLEM = 1, /* what was looked at is not as it should be */
	COMMAND_MISUSE = 2,  /* unknown option or argument */
};

struct command {
	const char *name;
	/* argv[0] is the subcommand's name; returns an exit status. */
	int (*run)(int argc, char **argv);
	const char *summary; /* one line for `fi_mesh --help` */
};

/** fi_mesh nics [--json] [--sysfs DIR] */
int command_nics(int argc, char **argv);

/** fi_mesh check [--quiet] [--json] [--only ID[,ID...]] [--nccl FILE], or --peer ADDR... */
int command_check(int argc, char **argv);

/** fi_mesh plan [OPTION...] SHAPE NODE... */
int command_plan(int argc, char **argv);

/** fi_mesh topo [--dot | --json | --svg] [--pair A,B] FILE... */
int command_topo(int argc, char **argv);

/** fi_mesh serve [--listen ADDR]... [--port PORT] */
int command_serve(int argc, char **argv);

/** fi_mesh watch [OPTION...] */
int command_watch(int argc, char **argv);

/** fi_mesh config [--json | --markdown] */
int command_config(int argc, char **argv);
#endif
