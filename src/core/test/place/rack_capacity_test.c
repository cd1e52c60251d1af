/* rack_capacity_test.c - what is kept of racks is the room that they have */
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/place/rack_capacity.h"
#include "core/test/harness.h"

/* Three racks of two nodes, with two GPUs each, and a gang that waits. */
struct lab {
	struct harness *h;
	int64_t tenant, gang;
	struct search search;
};

static void add_in_rack(struct harness *h, const char *name, const char *rack)
{
	char uuids[2][32];
	struct device devices[2];
	for (int i = 0; i < 2; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "%s-gpu%d", name, i);
		devices[i] = device_of(uuids[i], i, 80000);
	}
	struct node_report_command node = report_of(name, devices, 2);
	node.rack = rack;
	must(h, report(h, node));
}

static void rack_capacity_lab_begin(struct lab *lab)
{
	static const char *const names[] = { "n0", "n1", "n2", "n3", "n4", "n5" };
	static const char *const racks[] = { "r1", "r2", "r3" };
	*lab = (struct lab){ .h = harness_new() };
	for (int i = 0; i < 6; i++)
		add_in_rack(lab->h, names[i], racks[i % 3]);
	lab->tenant = put_tenant(lab->h, tenant_named("lab"));
	struct job_record gang = whole(lab->tenant, 1);
	gang.tasks = gang.min_available = 20;
	lab->gang = submit(lab->h, gang);
	lab->search = (struct search){ .job = job(lab->h, lab->gang),
		                       .shape = job(lab->h, lab->gang)->class->shape,
		                       .view = VIEW_NOW,
		                       .until_ms = INT64_MAX };
}

/* The room of racks 1 to 3 as one number of three digits. */
static int64_t room(struct lab *lab)
{
	struct sched *sched = lab->h->sched;
	int64_t room[4];
	sched_prepare(sched);
	filter_refresh(lab->search.shape->filter, &sched->cluster, sched->cluster.version);
	rack_capacity_count(&sched->placement, &lab->search, room);
	return room[1] * 100 + room[2] * 10 + room[3];
}

static void a_rack_has_the_room_of_its_nodes(void **unused)
{
	(void)unused;
	struct lab lab;
	rack_capacity_lab_begin(&lab);
	assert_int_equal(room(&lab), 444);
	int64_t pair = submit(lab.h, whole(lab.tenant, 2));
	assert_int_equal(pass(lab.h), 1);
	assert_string_equal(node_of(lab.h, pair), "n0");
	assert_int_equal(room(&lab), 244);
	end_job(lab.h, pair, 0);
	assert_int_equal(room(&lab), 444);
	harness_free(lab.h);
}

static void a_node_that_moves_takes_its_room_along(void **unused)
{
	(void)unused;
	struct lab lab;
	rack_capacity_lab_begin(&lab);
	assert_int_equal(room(&lab), 444);
	add_in_rack(lab.h, "n0", "r3");
	assert_int_equal(room(&lab), 246);
	harness_free(lab.h);
}

static void what_is_promised_to_others_is_no_room(void **unused)
{
	(void)unused;
	struct lab lab;
	rack_capacity_lab_begin(&lab);
	assert_int_equal(room(&lab), 444);
	struct node *node = lab.h->sched->cluster.by_rank[1];
	node->gpus[0]->promised_ms = 0;
	node->gpus[0]->promised_to = INT64_MAX;
	node->promised = 1;
	index_promised(&lab.h->sched->index, node);
	assert_int_equal(room(&lab), 434);
	assert_true(lab.search.promise_blocked);
	lab.search.ignore_promises = true;
	assert_int_equal(room(&lab), 444);
	harness_free(lab.h);
}

/* Whether rack_capacity_check ends the program, in a child. */
static bool is_found_out(struct sched *sched)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		assert_non_null(freopen("/dev/null", "w", stderr));
		rack_capacity_check(&sched->placement);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void room_that_is_not_there_is_found_out(void **unused)
{
	(void)unused;
	struct lab lab;
	rack_capacity_lab_begin(&lab);
	assert_int_equal(room(&lab), 444);
	assert_false(is_found_out(lab.h->sched));
	lab.h->sched->placement.rack_capacity.of[lab.search.shape->number % RACK_CAPACITY_SHAPES]
	    .of_node[3]++;
	assert_true(is_found_out(lab.h->sched));
	harness_free(lab.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rack_has_the_room_of_its_nodes),
		cmocka_unit_test(a_node_that_moves_takes_its_room_along),
		cmocka_unit_test(what_is_promised_to_others_is_no_room),
		cmocka_unit_test(room_that_is_not_there_is_found_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
