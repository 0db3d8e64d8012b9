/* SPDX-License-Identifier: Apache-2.0 */
/* test_nccl_files.c - which line of NCCL's files counts, and which are not what they look like. */
#include "check/nccl_files.h"
#include "common/finding.h"

#include "sysfs_fixture.h"
#include "unit.h"

static struct sysfs_fixture tree;
static struct check_context context;
static struct check_result result;

static void judge(const char *text)
{
	sysfs_fixture_file(&tree, text, "etc/nccl.conf");
	check_result_free(&result);
	memset(&result, 0, sizeof(result));
	nccl_files_judge(&context, false, &result);
}

static void assert_finding(int i, enum check_verdict verdict, const char *text, const char *fix)
{
	assert_true(i < result.num_findings);
	assert_string_equal(result.findings[i].text, text);
	assert_int_equal(result.findings[i].verdict, verdict);
	if (fix)
		assert_string_equal(result.findings[i].fix, fix);
	else
		assert_null(result.findings[i].fix);
}

TEST(order)
{
	judge("# x\nNCCL_NET_PLUGIN=mesh\nNCCL_NET_PLUGIN=late\nPATH=/x\nNCCL_NET_PLUGIN=mesh");
	assert_int_equal(result.num_findings, 2);
	assert_finding(0, CHECK_PASS, "NCCL_NET_PLUGIN=mesh is set by line 2 of /etc/nccl.conf",
		       NULL);
	assert_finding(1, CHECK_PASS,
		       "NCCL_NET_PLUGIN=late of line 3 of /etc/nccl.conf is not used: line 2 of "
		       "/etc/nccl.conf takes precedence",
		       NULL);
	/* What leads to us is lost. */
	judge("NCCL_NET_PLUGIN=ofi\nNCCL_NET_PLUGIN=mesh");
	assert_finding(1, CHECK_WARN,
		       "NCCL_NET_PLUGIN=mesh of line 2 of /etc/nccl.conf is not used: line 1 of "
		       "/etc/nccl.conf takes precedence",
		       "remove line 1 from /etc/nccl.conf");
	setenv("NCCL_NET_PLUGIN", "none", 1);
	judge("NCCL_NET_PLUGIN=/usr/lib/libnccl-net-mesh.so");
	assert_finding(
		0, CHECK_WARN,
		"NCCL_NET_PLUGIN=/usr/lib/libnccl-net-mesh.so of line 1 of /etc/nccl.conf is "
		"not used: the environment takes precedence",
		"unset NCCL_NET_PLUGIN");
	setenv("NCCL_NET_PLUGIN", "mesh", 1); /* to the same effect */
	judge("NCCL_NET_PLUGIN=libnccl-net-mesh.so");
	assert_int_equal(check_verdict_of(&result), CHECK_PASS);
	unsetenv("NCCL_NET_PLUGIN");
}

TEST(blanks)
{
	judge("NCCL_NET_PLUGIN=mesh\r\n");
	assert_finding(
		0, CHECK_WARN,
		"line 1 of /etc/nccl.conf ends with a blank or a carriage return, which NCCL "
		"takes as a part of the value of NCCL_NET_PLUGIN",
		"sed -i '1s/[ \\t\\r]*$//' /etc/nccl.conf");
	judge("\nNCCL_DEBUG =INFO");
	assert_finding(
		0, CHECK_WARN,
		"line 2 of /etc/nccl.conf sets a variable \"NCCL_DEBUG \": NCCL does not drop "
		"the blanks, so the line has no effect",
		"sed -i '2s/^[ \\t]*//; 2s/[ \\t]*=/=/' /etc/nccl.conf");
	judge(" A =1\n =\nNCCL_DEBUG=\033[31m");
	assert_int_equal(result.num_findings, 1);
	assert_finding(0, CHECK_PASS, "NCCL_DEBUG=?[31m is set by line 3 of /etc/nccl.conf", NULL);
}

void tests_begin(void)
{
	unsetenv("NCCL_CONF_FILE");
	unsetenv("NCCL_NET_PLUGIN");
	unsetenv("NCCL_DEBUG");
	sysfs_fixture_make(&tree);
	assert_int_equal(mesh_sysfs_open(tree.root, &context.files), 0);
}

void tests_end(void)
{
	check_result_free(&result);
	mesh_sysfs_close(&context.files);
	sysfs_fixture_remove(&tree);
}
