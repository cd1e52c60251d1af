/* rules_test.c - counted resources, node classes, guests, and rules about other tasks */
#include "core/place/rules.h"

#include <stdio.h>

#include "core/test/harness.h"

static int setup(void **state)
{
	*state = harness_new();
	return 0;
}

static int teardown(void **state)
{
	harness_free(*state);
	return 0;
}

/* Four nodes of four GPUs, in two zones: a1, a2, b1, b2. */
static int64_t four_nodes(struct harness *h)
{
	static const char *const names[] = { "a1", "a2", "b1", "b2" };

	for (int i = 0; i < 4; i++) {
		struct device devices[4];
		char uuids[4][8];
		for (int g = 0; g < 4; g++) {
			snprintf(uuids[g], sizeof(uuids[g]), "%s-%d", names[i], g);
			devices[g] = device_of(uuids[g], g, 80000);
		}
		struct node_report_command node = report_of(names[i], devices, 4);
		node.zone = i < 2 ? "a" : "b";
		must(h, report(h, node));
	}
	return put_tenant(h, tenant_named("lab"));
}

static struct job_record gang(int64_t tenant, int64_t tasks, const char *rules, const char *marks)
{
	struct job_record job = whole(tenant, 1);

	job.tasks = job.min_available = tasks;
	job.rules = rules;
	job.marks = marks;
	return job;
}

static void facts(struct harness *h, const char *node, const char *resources, const char *taken)
{
	must(h, harness_apply(
		    h, (struct command){
			   .kind = COMMAND_NODE_FACTS,
			   .facts = { .name = node, .resources = resources, .taken = taken } }));
}

static void guest(struct harness *h, const char *name, const char *node, const char *marks,
                  const char *rules)
{
	must(h,
	     harness_apply(
		 h, (struct command){
			.kind = COMMAND_PUT_GUEST,
			.guest = { .name = name, .node = node, .marks = marks, .rules = rules } }));
}

/* The tests' argument hides state() of the harness. */
static enum job_state state_now(struct harness *h, int64_t id)
{
	return (enum job_state)job(h, id)->s.state;
}

static int on_node(struct harness *h, int64_t id, const char *node)
{
	const struct job *found = job(h, id);
	int count = 0;

	for (int i = 0; i < found->r.tasks; i++)
		count += found->tasks[i].reservation &&
		         strcmp(found->tasks[i].reservation->node->r.name, node) == 0;
	return count;
}

static void a_counted_resource_is_given_out_once(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	struct job_record wants = whole(tenant, 1);

	facts(h, "b1", "rdma/hca=3", "rdma/hca=1");
	wants.resources = "rdma/hca=1";
	int64_t first = submit(h, wants), second = submit(h, wants), third = submit(h, wants);
	pass(h);
	assert_int_equal(on_node(h, first, "b1") + on_node(h, second, "b1"), 2);
	assert_int_equal(state_now(h, third), JOB_PENDING);
	facts(h, "b1", "rdma/hca=3", "");
	pass(h);
	assert_int_equal(on_node(h, third, "b1"), 1);
}

static void a_counted_resource_comes_back(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	struct job_record wants = job_of(tenant, GPU_NONE, 0);

	facts(h, "a1", "pods=1", "");
	wants.resources = "pods=1";
	int64_t first = submit(h, wants);
	pass(h);
	int64_t second = submit(h, wants);
	pass(h);
	assert_int_equal(on_node(h, second, "a1"), 0);
	cancel(h, first);
	confirm_stops(h);
	pass(h);
	assert_int_equal(on_node(h, second, "a1"), 1);
}

static void labels_of_nodes_declare_counted_resources(void **state)
{
	struct harness *h = *state;
	int64_t tenant = put_tenant(h, tenant_named("lab"));
	struct device device = device_of("g", 0, 80000);
	struct node_report_command node = report_of("n", &device, 1);
	struct job_record wants = job_of(tenant, GPU_NONE, 0);
	struct command too_many = { .kind = COMMAND_SUBMIT };

	node.labels = "resource/hca=2\nresource/odd=two";
	must(h, report(h, node));
	wants.resources = "hca=2";
	int64_t id = submit(h, wants);
	pass(h);
	assert_int_equal(on_node(h, id, "n"), 1);
	too_many.submit.job = wants;
	too_many.submit.check_possible = true;
	too_many.submit.job.resources = "hca=3";
	must_not(h, harness_apply(h, too_many), ERROR_IMPOSSIBLE,
	         "asks for 3 of the resource hca, the best node has 2");
	too_many.submit.job.resources = "odd=1";
	must_not(h, harness_apply(h, too_many), ERROR_IMPOSSIBLE,
	         "the best node has 0; a resource that nodes have is hca");
}

static void tasks_of_a_gang_that_are_apart_take_a_node_each(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	int64_t id = submit(h, gang(tenant, 4, "apart node app=a", "app=a"));

	pass(h);
	assert_int_equal(on_node(h, id, "a1"), 1);
	assert_int_equal(on_node(h, id, "a2"), 1);
	assert_int_equal(on_node(h, id, "b1"), 1);
	assert_int_equal(on_node(h, id, "b2"), 1);
}

static void a_gang_that_cannot_be_apart_waits_whole(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	int64_t id = submit(h, gang(tenant, 3, "apart zone app=a", "app=a"));

	assert_int_equal(pass(h), 0);
	assert_int_equal(state_now(h, id), JOB_PENDING);
}

static void tasks_that_are_together_share_a_zone(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);

	guest(h, "db", "b2", "app=db", "");
	int64_t id = submit(h, gang(tenant, 8, "together zone app=db", "app=web"));
	int64_t more = submit(h, gang(tenant, 1, "together zone app=db", "app=web"));
	pass(h);
	assert_int_equal(on_node(h, id, "b1") + on_node(h, id, "b2"), 8);
	assert_int_equal(state_now(h, more), JOB_PENDING);
}

static void the_first_of_its_kind_goes_anywhere_and_the_rest_to_it(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	int64_t id = submit(h, gang(tenant, 4, "together node app=a", "app=a"));

	pass(h);
	assert_true(on_node(h, id, "a1") == 4 || on_node(h, id, "a2") == 4 ||
	            on_node(h, id, "b1") == 4 || on_node(h, id, "b2") == 4);
}

static void a_spread_keeps_to_its_skew(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	int64_t id = submit(h, gang(tenant, 6, "spread zone 1 0 - app=a", "app=a"));

	pass(h);
	assert_int_equal(on_node(h, id, "a1") + on_node(h, id, "a2"), 3);
	assert_int_equal(on_node(h, id, "b1") + on_node(h, id, "b2"), 3);
}

static void a_newcomer_without_rules_obeys_those_of_guests(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);

	guest(h, "lonely", "a1", "app=x", "apart zone app=a");
	int64_t id = submit(h, gang(tenant, 8, "", "app=a"));
	pass(h);
	assert_int_equal(on_node(h, id, "b1") + on_node(h, id, "b2"), 8);
	int64_t next = submit(h, gang(tenant, 1, "", "app=a"));
	pass(h);
	assert_int_equal(state_now(h, next), JOB_PENDING);
	must(h, harness_apply(
		    h, (struct command){ .kind = COMMAND_REMOVE_GUEST, .guest_name = "lonely" }));
	pass(h);
	assert_int_equal(on_node(h, next, "a1") + on_node(h, next, "a2"), 1);
}

static void a_class_allows_its_nodes_alone(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	struct job_record wants = whole(tenant, 1);

	wants.node_class = "c1";
	int64_t id = submit(h, wants);
	pass(h);
	assert_int_equal(state_now(h, id), JOB_PENDING);
	must(h, harness_apply(h, (struct command){ .kind = COMMAND_PUT_NODE_CLASS,
	                                           .node_class = { "c1", "0 a1\tno\n7 b2" } }));
	pass(h);
	assert_int_equal(on_node(h, id, "b2"), 1);
}

static void ports_of_one_node_are_given_out_once(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	int64_t id = submit(h, gang(tenant, 4, "port TCP 8080 0.0.0.0", ""));
	int64_t more = submit(h, gang(tenant, 1, "port TCP 8080 10.0.0.1", ""));
	int64_t other = submit(h, gang(tenant, 1, "port UDP 8080 0.0.0.0", ""));

	pass(h);
	assert_int_equal(on_node(h, id, "a1"), 1);
	assert_int_equal(on_node(h, id, "b2"), 1);
	assert_int_equal(state_now(h, more), JOB_PENDING);
	assert_int_equal(state_now(h, other), JOB_RUNNING);
}

static void what_is_malformed_is_refused_with_the_line(void **state)
{
	struct harness *h = *state;
	int64_t tenant = four_nodes(h);
	static const struct {
		const char *resources, *rules, *words;
	} cases[] = {
		{ "hca", "", "'hca' is not name=number" },
		{ "hca=-1", "", "'-1' is not a number" },
		{ "", "near node app=a", "'near' is not apart" },
		{ "", "apart node", "no selector" },
		{ "", "apart node a=1&&b", "empty requirement" },
		{ "", "spread zone 0 0 - *", "skew of at least 1" },
		{ "", "spread zone 1", "spread DOMAIN SKEW" },
		{ "", "port TCP", "port PROTOCOL PORT IP" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job_record wrong = whole(tenant, 1);
		wrong.resources = cases[i].resources;
		wrong.rules = cases[i].rules;
		must_not(h, try_submit(h, wrong), ERROR_INVALID, cases[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(a_counted_resource_is_given_out_once),
		TEST(a_counted_resource_comes_back),
		TEST(labels_of_nodes_declare_counted_resources),
		TEST(tasks_of_a_gang_that_are_apart_take_a_node_each),
		TEST(a_gang_that_cannot_be_apart_waits_whole),
		TEST(tasks_that_are_together_share_a_zone),
		TEST(the_first_of_its_kind_goes_anywhere_and_the_rest_to_it),
		TEST(a_spread_keeps_to_its_skew),
		TEST(a_newcomer_without_rules_obeys_those_of_guests),
		TEST(a_class_allows_its_nodes_alone),
		TEST(ports_of_one_node_are_given_out_once),
		TEST(what_is_malformed_is_refused_with_the_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
