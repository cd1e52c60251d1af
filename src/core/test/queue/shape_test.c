/* shape_test.c - that alike jobs, and only they, are kept together */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/queue/group.h"
#include "core/queue/job.h"

static const struct queue_rule rule = { .per_minute = 1, .cap = 100 };

/* A tenant and its shapes, and jobs to be put into them. */
struct world {
	struct shapes shapes;
	struct tenant tenant, other;
	struct task tasks[4];
	int64_t last_id;
};

static int shape_set_up(void **state)
{
	struct world *world = NEW(struct world);
	world->tenant.r.id = 1;
	world->other.r.id = 2;
	*state = world;
	return 0;
}

static int shape_tear_down(void **state)
{
	struct world *world = *state;
	shapes_free(&world->shapes);
	free(world->tenant.groups);
	free(world->other.groups);
	free(world);
	return 0;
}

/* A job of one task on one whole GPU. */
static struct job simple_job(struct world *world)
{
	struct job job = {
		.r = { .id = ++world->last_id, .tasks = 1, .min_available = 1, .priority = 50 },
		.s.queued_ms = 1000,
		.tenant = &world->tenant,
		.request = { .gpu_kind = GPU_WHOLE, .gpu_count = 1, .cpu_milli = 4000 },
		.filter = shapes_filter(&world->shapes, "", ""),
		.tasks = world->tasks,
		.task_capacity = 4,
		.pending = 1,
	};
	return job;
}

static struct job_class *class_of(struct world *world, struct job *job)
{
	return shapes_class(&world->shapes, job, rule);
}

static void filters_of_the_same_text_are_one(void **state)
{
	struct world *world = *state;
	struct filter *filter = shapes_filter(&world->shapes, "A100|H100", "zone=a");
	assert_ptr_equal(shapes_filter(&world->shapes, "A100|H100", "zone=a"), filter);
	assert_ptr_not_equal(shapes_filter(&world->shapes, "A100", "zone=a"), filter);
	assert_ptr_not_equal(shapes_filter(&world->shapes, "A100|H100", ""), filter);
	assert_string_equal(filter->gpu_types, "A100|H100");
	assert_string_equal(filter->labels, "zone=a");
}

static struct node *shape_add_node(struct cluster *cluster, const char *name, const char *labels)
{
	const struct node_record record = {
		.id = (int64_t)cluster->node_count + 1,
		.name = name,
		.boot = "",
		.zone = "",
		.rack = "",
		.labels = labels,
	};
	return cluster_add_node(cluster, &record);
}

static struct gpu *shape_add_gpu(struct cluster *cluster, struct node *node, const char *uuid,
                                 const char *model)
{
	const struct gpu_record record = {
		.id = (int64_t)cluster->gpu_by_id.count + 1,
		.node_id = node->r.id,
		.uuid = uuid,
		.model = model,
		.mig_parent = "",
		.capacity_mib = 80000,
		.healthy = true,
		.present = true,
	};
	return cluster_add_gpu(cluster, node, &record);
}

static void an_empty_filter_allows_everything(void **state)
{
	struct world *world = *state;
	struct cluster cluster = { 0 };
	struct filter *filter = shapes_filter(&world->shapes, "", "");
	struct node *node = shape_add_node(&cluster, "n-1", "");
	const struct gpu *gpu = shape_add_gpu(&cluster, node, "g-1", "A100");
	cluster_order(&cluster);
	filter_refresh(filter, &cluster, 1);
	assert_true(bitset_has(&filter->nodes, (size_t)node->rank));
	assert_true(filter_allows(filter, gpu));
	cluster_free(&cluster);
}

static void a_filter_allows_nodes_with_a_listed_model_and_all_labels(void **state)
{
	struct world *world = *state;
	struct cluster cluster = { 0 };
	struct filter *filter = shapes_filter(&world->shapes, "A100|H100", "disk=ssd\nzone=a");
	const struct node *mixed, *wrong_zone, *wrong_model, *longer_name;
	struct node *node;

	mixed = node = shape_add_node(&cluster, "n-4", "disk=ssd\nrow=1\nzone=a");
	const struct gpu *v100 = shape_add_gpu(&cluster, node, "g-1", "V100");
	const struct gpu *h100 = shape_add_gpu(&cluster, node, "g-2", "H100");
	const struct gpu *a100 = shape_add_gpu(&cluster, node, "g-3", "A100");
	wrong_zone = node = shape_add_node(&cluster, "n-3", "disk=ssd\nzone=b");
	shape_add_gpu(&cluster, node, "g-4", "A100");
	wrong_model = node = shape_add_node(&cluster, "n-2", "disk=ssd\nzone=a");
	shape_add_gpu(&cluster, node, "g-5", "V100");
	longer_name = node = shape_add_node(&cluster, "n-1", "disk=ssd\nzone=a");
	shape_add_gpu(&cluster, node, "g-6", "A100X");
	cluster_order(&cluster);
	filter_refresh(filter, &cluster, 1);

	assert_true(bitset_has(&filter->nodes, (size_t)mixed->rank));
	assert_false(bitset_has(&filter->nodes, (size_t)wrong_zone->rank));
	assert_false(bitset_has(&filter->nodes, (size_t)wrong_model->rank));
	assert_false(bitset_has(&filter->nodes, (size_t)longer_name->rank));
	assert_false(filter_allows(filter, v100));
	assert_true(filter_allows(filter, h100));
	assert_true(filter_allows(filter, a100));
	cluster_free(&cluster);
}

static void a_filter_follows_the_versions_of_the_cluster(void **state)
{
	struct world *world = *state;
	struct cluster cluster = { 0 };
	struct filter *filter = shapes_filter(&world->shapes, "A100", "");
	struct node *node = shape_add_node(&cluster, "n-1", "");
	shape_add_gpu(&cluster, node, "g-1", "V100");
	cluster_order(&cluster);
	filter_refresh(filter, &cluster, 0);
	assert_false(bitset_has(&filter->nodes, (size_t)node->rank));

	shape_add_gpu(&cluster, node, "g-2", "A100");
	cluster_order(&cluster);
	filter_refresh(filter, &cluster, 0);
	assert_false(bitset_has(&filter->nodes, (size_t)node->rank));
	filter_refresh(filter, &cluster, 1);
	assert_true(bitset_has(&filter->nodes, (size_t)node->rank));
	cluster_free(&cluster);
}

static void alike_jobs_are_of_one_class(void **state)
{
	struct world *world = *state;
	struct job first = simple_job(world), second = simple_job(world);
	second.s.queued_ms = 5000;
	struct job_class *class = class_of(world, &first);
	assert_ptr_equal(class_of(world, &second), class);
	assert_int_equal(class->shape->tasks, 1);
	assert_int_equal(world->shapes.count, 1);
}

static void tenant_priority_length_and_preemption_make_another_class_of_the_same_shape(void **state)
{
	struct world *world = *state;
	struct job first = simple_job(world);
	struct job tenant = first, priority = first, length = first, preemptible = first;
	tenant.tenant = &world->other;
	priority.r.priority++;
	length.s.expected_ms = 60000;
	preemptible.r.preemptible = true;
	struct job *others[] = { &tenant, &priority, &length, &preemptible };
	struct job_class *class = class_of(world, &first);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct job_class *other = class_of(world, others[i]);
		assert_ptr_not_equal(other, class);
		assert_ptr_equal(other->shape, class->shape);
	}
	assert_int_equal(world->shapes.classes.count, 5);
}

static void whatever_decides_where_a_job_fits_makes_another_shape(void **state)
{
	struct world *world = *state;
	struct job first = simple_job(world);
	struct job others[12];
	for (size_t i = 0; i < 12; i++)
		others[i] = first;
	others[0].request.gpu_kind = GPU_FRACTION;
	others[1].request.gpu_count = 2;
	others[2].request.fraction = 500;
	others[3].request.memory_mib = 8000;
	others[4].request.cpu_milli = 1000;
	others[5].request.host_bytes = 1;
	others[6].request.gpu_kind = GPU_UNEVEN;
	others[7].request.gpu_kind = GPU_UNEVEN;
	others[7].request.uneven_mib[1] = 100;
	others[8].r.split_gpus = 8;
	others[9].r.closeness = CLOSE_RACK;
	others[10].r.closeness_required = true;
	others[11].filter = shapes_filter(&world->shapes, "A100", "");
	class_of(world, &first);
	for (size_t i = 0; i < 12; i++) {
		class_of(world, &others[i]);
		assert_int_equal(world->shapes.count, i + 2);
	}
	for (size_t i = 0; i < 12; i++)
		assert_ptr_equal(class_of(world, &others[i])->shape, world->shapes.all[i + 1]);
}

static void an_elastic_job_that_grows_is_of_another_shape_than_one_that_starts(void **state)
{
	struct world *world = *state;
	struct job job = simple_job(world);
	job.r.tasks = 4;
	job.pending = 4;
	job.r.min_available = 3;
	const struct shape *start = class_of(world, &job)->shape;
	job.counts.live = 3;
	job.pending = 1;
	const struct shape *growth = class_of(world, &job)->shape;
	assert_int_equal(start->tasks, 3);
	assert_int_equal(growth->tasks, 1);
}

static void a_class_is_listed_exactly_while_it_has_jobs(void **state)
{
	struct world *world = *state;
	struct job first = simple_job(world), second = simple_job(world);
	struct job_class *class = class_of(world, &first);
	struct job_group *group = class->group;
	struct shape *shape = class->shape;

	class_push(&world->shapes, class, &first, 0, 1, 1000);
	class_push(&world->shapes, class, &second, 0, 1, 1000);
	assert_ptr_equal(first.class, class);
	assert_int_equal(world->tenant.queued, 2);
	assert_int_equal(world->tenant.group_count, 1);
	assert_int_equal(shape->group_count, 1);
	assert_int_equal(group->class_count, 1);
	assert_int_equal(world->shapes.active_count, 1);
	class_remove(&world->shapes, class, &first);
	assert_null(first.class);
	assert_ptr_equal(world->tenant.groups[0], group);
	assert_ptr_equal(group->classes[0], class);
	assert_ptr_equal(world->shapes.active[0], shape);
	class_remove(&world->shapes, class, &second);
	assert_int_equal(world->tenant.queued, 0);
	assert_int_equal(world->tenant.group_count, 0);
	assert_int_equal(shape->group_count, 0);
	assert_int_equal(group->class_count, 0);
	assert_int_equal(world->shapes.active_count, 0);
}

/* The first job of the group, found by comparing all. */
static const struct job *first_of(const struct job_group *group, int64_t now_ms)
{
	const struct job *best = NULL;

	for (size_t i = 0; i < group->class_count; i++) {
		const struct job *job = class_first(group->classes[i], now_ms);
		if (!best || queue_before(&rule, &job->entry, &best->entry, now_ms))
			best = job;
	}
	return best;
}

static bool group_is_right(struct job_group *group, int64_t now_ms)
{
	struct job_class *first = group_first(group, now_ms);
	int64_t highest = INT64_MIN;

	for (size_t i = 0; i < group->class_count; i++) {
		const struct job_class *class = group->classes[i];
		highest = max64(highest, class->priority);
		if (class->group != group || class->group_index != (int64_t)i ||
		    queue_count(&class->queue) == 0)
			return false;
	}
	return group->highest == highest && class_first(first, now_ms) == first_of(group, now_ms);
}

static bool lists_are_right(const struct world *world, int64_t now_ms)
{
	const struct shapes *shapes = &world->shapes;
	size_t listed = 0;
	for (size_t i = 0; i < world->tenant.group_count; i++) {
		struct job_group *group = world->tenant.groups[i];
		const struct shape *shape = group->shape;
		if (group->tenant_index != (int64_t)i || group->class_count == 0 ||
		    shape->groups[group->shape_index] != group ||
		    shapes->active[shape->active_index] != shape || !group_is_right(group, now_ms))
			return false;
	}
	for (size_t i = 0; i < shapes->active_count; i++)
		listed += shapes->active[i]->group_count;
	return listed == world->tenant.group_count;
}

static void lists_stay_right_whatever_comes_and_goes(void **state)
{
	struct world *world = *state;
	struct job jobs[40];
	uint64_t seed = 1;
	for (int i = 0; i < 40; i++) {
		jobs[i] = simple_job(world);
		jobs[i].request.cpu_milli = i % 5;
		jobs[i].r.priority = i % 4 * 40;
		jobs[i].s.queued_ms = 1000 * (i * 7 % 40);
		if (i % 6 == 0)
			jobs[i].r.deadline_ms = 60000 * i;
	}
	for (int64_t i = 0; i < 2000; i++) {
		int64_t now_ms = 40000 + 5000 * i; /* all age to the cap meanwhile */
		struct job *job = &jobs[random_below(&seed, 40)];
		if (job->class)
			class_remove(&world->shapes, job->class, job);
		else
			class_push(&world->shapes, class_of(world, job), job, 0, 1, now_ms);
		assert_true(lists_are_right(world, now_ms));
	}
}

static void a_job_that_has_to_grow_where_it_is_is_in_a_group_by_itself(void **state)
{
	struct world *world = *state;
	struct job fresh = simple_job(world), growing = simple_job(world);
	fresh.r.closeness_required = growing.r.closeness_required = true;
	growing.r.tasks = 2;
	growing.counts.live = 1;
	const struct job_class *class = class_of(world, &fresh);
	struct job_class *own = class_of(world, &growing);
	assert_ptr_equal(own->shape, class->shape);
	assert_ptr_not_equal(own->group, class->group);

	class_push(&world->shapes, own, &growing, 0, 1, 1000);
	shapes_sweep(&world->shapes);
	assert_int_equal(world->shapes.groups.count, 2);
	class_remove(&world->shapes, own, &growing);
	shapes_sweep(&world->shapes);
	assert_int_equal(world->shapes.groups.count, 1);
	assert_int_equal(world->shapes.classes.count, 1);
}

static void jobs_of_a_class_are_first_come_first_served(void **state)
{
	struct world *world = *state;
	struct job first = simple_job(world), second = simple_job(world);
	struct job_class *class = class_of(world, &first);
	first.s.queued_ms = 2000;
	class_push(&world->shapes, class, &first, 0, 1, 3000);
	class_push(&world->shapes, class, &second, 0, 1, 3000);
	assert_ptr_equal(queue_first(&class->queue, 3000), &second.entry);
}

static void a_job_is_urgent_twice_its_length_before_its_deadline(void **state)
{
	struct world *world = *state;
	struct job never = simple_job(world), timely = simple_job(world), late = simple_job(world);
	timely.r.deadline_ms = 100000;
	timely.s.expected_ms = 20000;
	late.r.deadline_ms = 100000;
	late.s.expected_ms = INT64_MAX;
	class_push(&world->shapes, class_of(world, &never), &never, 0, 1, 1000);
	class_push(&world->shapes, class_of(world, &timely), &timely, 0, 1, 1000);
	class_push(&world->shapes, class_of(world, &late), &late, 0, 1, 1000);
	assert_int_equal(never.entry.urgent_ms, 0);
	assert_int_equal(timely.entry.urgent_ms, 60000);
	assert_int_equal(late.entry.urgent_ms, 1);
}

static void a_new_rule_reaches_all_classes(void **state)
{
	struct world *world = *state;
	struct job job = simple_job(world), other = simple_job(world);
	other.r.priority = 1;
	const struct job_class *full = class_of(world, &job), *empty = class_of(world, &other);
	class_push(&world->shapes, class_of(world, &job), &job, 0, 1, 1000);
	shapes_rerule(&world->shapes, (struct queue_rule){ .per_minute = 7, .cap = 70 }, 2000);
	assert_int_equal(full->queue.rule.per_minute, 7);
	assert_int_equal(queue_count(&full->queue), 1);
	assert_int_equal(empty->queue.rule.cap, 70);
}

static void only_the_classes_of_a_tenant_are_forgotten_with_it(void **state)
{
	struct world *world = *state;
	struct job kept = simple_job(world), gone = simple_job(world);
	struct job_class *class = class_of(world, &kept);
	for (gone.r.priority = 0; gone.r.priority < 100; gone.r.priority++) {
		gone.tenant = &world->other;
		class_of(world, &gone);
	}
	shapes_forget_tenant(&world->shapes, &world->other);
	assert_int_equal(world->shapes.classes.count, 1);
	assert_ptr_equal(class_of(world, &kept), class);
}

/* The key of the only class of a world that is for this alone. */
static int64_t shape_key_of(struct job *job)
{
	struct shapes shapes = { 0 };
	struct job copy = *job;
	int64_t key = -1;
	copy.filter = shapes_filter(&shapes, "", "");
	shapes_class(&shapes, &copy, rule);
	for (size_t i = 0; i < shapes.classes.capacity; i++) {
		if (shapes.classes.entries[i].value)
			key = shapes.classes.entries[i].key;
	}
	shapes_free(&shapes);
	return key;
}

static void classes_whose_hashes_are_equal_are_told_apart(void **state)
{
	struct world *world = *state;
	struct job first = simple_job(world), second = simple_job(world);
	second.r.priority++;
	struct job_class *intruder = class_of(world, &first);
	map_remove(&world->shapes.classes, shape_key_of(&first));
	map_put(&world->shapes.classes, shape_key_of(&second), intruder);

	struct job_class *class = class_of(world, &second);
	assert_ptr_not_equal(class, intruder);
	assert_ptr_equal(class_of(world, &second), class);
	assert_ptr_equal(map_get(&world->shapes.classes, shape_key_of(&second) + 1), class);
}

static void a_class_is_found_after_one_before_it_in_its_chain_is_forgotten(void **state)
{
	struct world *world = *state;
	struct job gone = simple_job(world), kept = simple_job(world);
	kept.tenant = &world->other;
	struct job_class *class = class_of(world, &kept);
	class_of(world, &gone);
	map_remove(&world->shapes.classes, shape_key_of(&kept));
	map_put(&world->shapes.classes, shape_key_of(&gone) + 1, class);

	shapes_forget_tenant(&world->shapes, &world->tenant);
	assert_ptr_equal(class_of(world, &kept), class);
}

static void lengths_are_powers_of_two_of_seconds_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(length_of(0), LENGTH_UNKNOWN);
	assert_int_equal(length_of(1), 0);
	assert_int_equal(length_of(1000), 0);
	assert_int_equal(length_of(1001), 1);
	assert_int_equal(length_of(4000), 2);
	assert_int_equal(length_of(INT64_MAX), 40);
	assert_int_equal(length_ms(0), 1000);
	assert_int_equal(length_ms(3), 8000);
	assert_int_equal(length_ms(LENGTH_UNKNOWN), INT64_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, shape_set_up, shape_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(filters_of_the_same_text_are_one),
		TEST(an_empty_filter_allows_everything),
		TEST(a_filter_allows_nodes_with_a_listed_model_and_all_labels),
		TEST(a_filter_follows_the_versions_of_the_cluster),
		TEST(alike_jobs_are_of_one_class),
		TEST(tenant_priority_length_and_preemption_make_another_class_of_the_same_shape),
		TEST(whatever_decides_where_a_job_fits_makes_another_shape),
		TEST(an_elastic_job_that_grows_is_of_another_shape_than_one_that_starts),
		TEST(a_class_is_listed_exactly_while_it_has_jobs),
		TEST(lists_stay_right_whatever_comes_and_goes),
		TEST(a_job_that_has_to_grow_where_it_is_is_in_a_group_by_itself),
		TEST(jobs_of_a_class_are_first_come_first_served),
		TEST(a_job_is_urgent_twice_its_length_before_its_deadline),
		TEST(a_new_rule_reaches_all_classes),
		TEST(only_the_classes_of_a_tenant_are_forgotten_with_it),
		TEST(classes_whose_hashes_are_equal_are_told_apart),
		TEST(a_class_is_found_after_one_before_it_in_its_chain_is_forgotten),
		TEST(lengths_are_powers_of_two_of_seconds_rounded_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
