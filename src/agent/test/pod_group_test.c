/* pod_group_test.c - cgroups of pods, as kubelets of all kinds make them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/host/file.h"
#include "agent/host/pod_group.h"
#include "agent/test/place.h"

#define UID "8d04a6e2-5f0b-4c1e-9d37-0a1b2c3d4e5f"
#define UNDERSCORED "8d04a6e2_5f0b_4c1e_9d37_0a1b2c3d4e5f"
#define OTHER "8d04a6e2-5f0b-4c1e-9d37-0a1b2c3d4e50"

/* A group with these processes. */
static void put_group(const char *root, const char *group, const char *processes)
{
	struct error error = { 0 };
	char *path = file_path("%s/%s", root, group);
	char *procs = file_path("%s/cgroup.procs", path);

	assert_true(file_make_directories(path, 0755, &error));
	FILE *file = fopen(procs, "w");
	assert_non_null(file);
	assert_true(fputs(processes, file) >= 0);
	assert_int_equal(fclose(file), 0);
	free(path);
	free(procs);
}

static const char *const unified[] = {
	"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UNDERSCORED
	".slice/cri-containerd-0123.scope",
	"kubepods.slice/kubepods-pod" UNDERSCORED ".slice/crio-0123.scope/container",
	"kubepods/besteffort/pod" UID "/0123",
	"kubepods/pod" UID "/0123",
	"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
	"kubelet-kubepods-besteffort-pod" UNDERSCORED ".slice/cri-containerd-0123.scope",
	"kubelet/kubepods/burstable/pod" UID "/0123",
};

static void a_process_of_a_pod_is_found_whoever_made_its_group(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(unified) / sizeof(*unified); i++) {
		const char *root = place_make();
		char *tree = file_path("%s/pids", root);
		put_group(root, ".", "");
		char *controllers = file_path("%s/cgroup.controllers", root);
		FILE *file = fopen(controllers, "w");
		assert_non_null(file);
		assert_int_equal(fclose(file), 0);
		assert_int_equal(pod_group_process(root, UID), 0);
		put_group(root, unified[i], "");
		assert_int_equal(pod_group_process(root, UID), 0);
		put_group(root, unified[i], "4711\n4712\n");
		assert_int_equal(pod_group_process(root, UID), 4711);
		assert_int_equal(pod_group_process(root, OTHER), 0);
		/* A tree for each controller. */
		remove(controllers);
		put_group(root, unified[i], "");
		put_group(tree, unified[i], "4713\n");
		assert_int_equal(pod_group_process(root, UID), 4713);
		free(controllers);
		free(tree);
		place_remove(root);
	}
}

static void groups_of_others_are_not_looked_into(void **state)
{
	const char *root = place_make();

	(void)state;
	put_group(root, "system.slice/tree/pod" UID, "1\n");
	put_group(root, "kubepods/pod" UID "x", "2\n");
	put_group(root, "kubepods/xpod" UID ".slice", "3\n");
	put_group(root, "kubepods/pod" OTHER, "4\n");
	assert_int_equal(pod_group_process(root, UID), 0);
	assert_int_equal(pod_group_process(root, OTHER), 4);
	place_remove(root);
}

static void a_process_says_whose_pod_it_is_in(void **state)
{
	(void)state;
	assert_true(pod_group_is_named("0::/kubepods.slice/kubepods-pod" UNDERSCORED
	                               ".slice/cri-containerd-0123.scope\n",
	                               UID));
	assert_true(pod_group_is_named("12:pids:/kubepods/burstable/pod" UID "/0123\n"
	                               "1:name=systemd:/kubepods/burstable/pod" UID "/0123\n",
	                               UID));
	assert_true(pod_group_is_named("0::/../../pod" UID, UID));
	assert_false(pod_group_is_named("0::/kubepods/pod" OTHER "/0123\n", UID));
	assert_false(pod_group_is_named("0::/user.slice\n", UID));
	assert_false(pod_group_is_named("", UID));
}

static void a_uid_names_no_other_place(void **state)
{
	(void)state;
	assert_true(pod_group_uid_is_valid(UID));
	assert_true(pod_group_uid_is_valid("0123456789abcdef0123456789abcdef"));
	assert_false(pod_group_uid_is_valid(""));
	assert_false(pod_group_uid_is_valid("../../etc"));
	assert_false(pod_group_uid_is_valid("a/b"));
	assert_false(pod_group_uid_is_valid(
	    "0123456789012345678901234567890123456789012345678901234567890123"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_a_pod_is_found_whoever_made_its_group),
		cmocka_unit_test(groups_of_others_are_not_looked_into),
		cmocka_unit_test(a_process_says_whose_pod_it_is_in),
		cmocka_unit_test(a_uid_names_no_other_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
