/* index_test.c - the index misses no node that fits, and tells when something came free */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/cluster/index.h"
#include "core/ledger/ledger.h"

#define CAPACITY 32600

static const struct config_record config = { .enable_thermal = true, .foreign_tolerance_mib = 100 };

struct world {
	struct cluster cluster;
	struct index index;
};

static struct node *index_add_node(struct cluster *cluster, int64_t id)
{
	char name[16];
	snprintf(name, sizeof(name), "n%03d", (int)id);
	return cluster_add_node(cluster, &(struct node_record){
					     .id = id,
					     .name = name,
					     .boot = "",
					     .zone = "",
					     .rack = "",
					     .labels = "",
					     .cpu_milli = 64000,
					     .host_bytes = 1 << 20,
					     .state = NODE_ONLINE,
					     .reported = true,
					 });
}

static struct gpu *index_add_gpu(struct cluster *cluster, struct node *node, int64_t capacity_mib)
{
	int64_t id = (int64_t)cluster->gpu_by_id.count + 1;
	char uuid[16];
	snprintf(uuid, sizeof(uuid), "GPU-%d", (int)id);
	return cluster_add_gpu(cluster, node,
	                       &(struct gpu_record){
				   .id = id,
				   .node_id = node->r.id,
				   .uuid = uuid,
				   .model = "A100",
				   .mig_parent = "",
				   .place = id,
				   .capacity_mib = capacity_mib,
				   .healthy = true,
				   .present = true,
			       });
}

/* `nodes` nodes with `gpus` GPUs each, all empty, and their index. */
static void world_begin(struct world *world, int nodes, int gpus)
{
	*world = (struct world){ 0 };
	for (int i = 0; i < nodes; i++) {
		struct node *node = index_add_node(&world->cluster, i + 1);
		for (int j = 0; j < gpus; j++)
			index_add_gpu(&world->cluster, node, CAPACITY);
	}
	cluster_order(&world->cluster);
	index_build(&world->index, &world->cluster, &config);
}

static void world_end(struct world *world)
{
	index_free(&world->index);
	cluster_free(&world->cluster);
}

static void touch(struct world *world, struct node *node)
{
	index_touch(&world->index, node, &config);
	index_check(&world->index, &world->cluster, &config);
}

/* Whether a touch says that something may fit that did not. */
static bool touch_frees(struct world *world, struct node *node)
{
	uint64_t before = world->index.free_version;
	touch(world, node);
	return world->index.free_version != before;
}

static void more_memory_never_has_a_lower_level(void **state)
{
	(void)state;
	int last = 0;
	for (int64_t mib = 0; mib < 1 << 20; mib++) {
		int level = index_mib_level(mib);
		assert_in_range(level, last, last + 1);
		last = level;
	}
	assert_int_equal(last, INDEX_MIB_LEVELS - 1);
	assert_int_equal(index_mib_level(INT64_MAX), INDEX_MIB_LEVELS - 1);
	assert_int_equal(index_mib_level(-1), 0);
}

static void a_doubling_of_memory_is_eight_levels(void **state)
{
	(void)state;
	assert_int_equal(index_mib_level(64), 0);
	assert_int_equal(index_mib_level(71), 0);
	assert_int_equal(index_mib_level(72), 1);
	for (int64_t mib = 64; mib < 1 << 16; mib++)
		assert_int_equal(index_mib_level(2 * mib), index_mib_level(mib) + 8);
}

static void larger_fractions_never_have_a_lower_level(void **state)
{
	(void)state;
	assert_int_equal(index_milli_level(-5), 0);
	assert_int_equal(index_milli_level(24), 0);
	assert_int_equal(index_milli_level(25), 1);
	assert_int_equal(index_milli_level(500), 20);
	assert_int_equal(index_milli_level(1000), INDEX_MILLI_LEVELS - 1);
	assert_int_equal(index_milli_level(INT64_MAX), INDEX_MILLI_LEVELS - 1);
}

static void an_empty_node_is_in_every_set_that_it_can_answer(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 3, 2);
	const struct node *node = world.cluster.nodes[1];
	size_t rank = (size_t)node->rank;
	assert_int_equal(node->offer.best_mib, CAPACITY);
	assert_int_equal(node->offer.best_milli, 1000);
	assert_int_equal(node->offer.whole, 2);
	assert_true(bitset_has(&world.index.open, rank));
	assert_false(bitset_has(&world.index.releasing, rank));
	assert_true(bitset_has(&world.index.whole[2], rank));
	assert_false(bitset_has(&world.index.whole[3], rank));
	assert_int_equal(world.index.whole_count[2], 3);
	assert_int_equal(world.index.whole_count[3], 0);
	assert_true(bitset_has(&world.index.mib[index_mib_level(CAPACITY)], rank));
	assert_true(bitset_has(&world.index.milli[INDEX_MILLI_LEVELS - 1], rank));
	world_end(&world);
}

static void a_node_that_takes_nothing_is_in_no_set(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 2, 2);
	struct node *node = world.cluster.nodes[0];
	node->gpus[0]->books = (struct gpu_books){
		.used_mib = 5, .releasing_mib = 5, .owners = 1, .releasing_owners = 1
	};
	touch(&world, node);
	assert_int_equal(world.index.releasing_count, 1);
	node->r.draining = true;
	touch(&world, node);
	size_t rank = (size_t)node->rank;
	assert_false(bitset_has(&world.index.open, rank));
	assert_false(bitset_has(&world.index.releasing, rank));
	assert_int_equal(world.index.releasing_count, 0);
	assert_false(bitset_has(&world.index.whole[1], rank));
	assert_false(bitset_has(&world.index.mib[0], rank));
	assert_false(bitset_has(&world.index.milli[0], rank));
	world_end(&world);
}

static void sixteen_gpus_and_more_are_one_level(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 20);
	assert_int_equal(world.cluster.nodes[0]->offer.whole, 20);
	assert_int_equal(world.index.whole_count[16], 1);
	index_check(&world.index, &world.cluster, &config);
	world_end(&world);
}

static void a_gpu_with_anything_on_it_is_not_whole(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	struct gpu *gpu = node->gpus[0];
	gpu->r.foreign_mib = 100;
	touch(&world, node);
	assert_int_equal(node->offer.whole, 1);
	gpu->r.foreign_mib = 101;
	touch(&world, node);
	assert_int_equal(node->offer.whole, 0);
	gpu->r.foreign_mib = 0;
	gpu->books = (struct gpu_books){ .claims = 1, .claimed_mib = 10 };
	touch(&world, node);
	assert_int_equal(node->offer.whole, 0);
	assert_int_equal(node->offer.best_mib, CAPACITY - 10);
	world_end(&world);
}

static void a_gpu_given_whole_shares_nothing(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .whole_owners = 1, .used_mib = 9 };
	touch(&world, node);
	assert_int_equal(node->offer.best_mib, 0);
	assert_int_equal(node->offer.best_milli, 0);
	assert_int_equal(node->offer.mib_level, -1);
	world_end(&world);
}

/* floor(500 x 32607 / 1000) is 16303, which is less than half of 32607. */
static void two_halves_of_an_odd_gpu_are_found(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	node->gpus[0]->r.capacity_mib = 32607;
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .used_mib = 32607 - 16303 };
	touch(&world, node);
	assert_int_equal(node->offer.best_milli, 500);
	node->gpus[0]->books.used_mib++;
	touch(&world, node);
	assert_int_equal(node->offer.best_milli, 499);
	world_end(&world);
}

static void the_largest_fraction_may_be_on_a_smaller_gpu(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 3);
	struct node *node = world.cluster.nodes[0];
	for (int i = 0; i < 3; i++)
		node->gpus[i]->books.owners = 1;
	node->gpus[0]->books.used_mib = CAPACITY - 10000;
	node->gpus[1]->r.capacity_mib = 8000;
	node->gpus[1]->books.used_mib = 2000;
	node->gpus[2]->books.used_mib = CAPACITY - 9000;
	touch(&world, node);
	assert_int_equal(node->offer.best_mib, 10000);
	assert_int_equal(node->offer.best_milli, 750);
	world_end(&world);
}

static void a_node_has_a_new_version_when_a_newcomer_finds_something_else(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 2, 1);
	struct node *node = world.cluster.nodes[0];
	uint64_t other = world.cluster.nodes[1]->version, version = node->version;
	uint64_t changes = world.index.change_log.count;
	assert_true(version != other && version > 0 && other > 0);
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .used_mib = 10 };
	touch(&world, node);
	assert_true(node->version > version && node->version > other);
	assert_true(world.cluster.nodes[1]->version == other);
	assert_true(world.index.change_log.count == changes + 1);
	assert_int_equal(world.index.change_log.ranks[changes % CHANGE_LOG_KEPT], node->rank);
	world_end(&world);
}

static void what_is_coming_back_is_nothing_that_a_newcomer_finds(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .used_mib = 10 };
	touch(&world, node);
	uint64_t version = node->version, changes = world.index.change_log.count;
	touch(&world, node);
	node->gpus[0]->books.releasing_owners = 1;
	node->gpus[0]->books.releasing_mib = 10;
	assert_true(touch_frees(&world, node)); /* for a claim */
	assert_true(node->version == version && world.index.change_log.count == changes);
	world_end(&world);
}

static void less_is_not_taken_for_more(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 2);
	struct node *node = world.cluster.nodes[0];
	assert_false(touch_frees(&world, node));
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .used_mib = 10 };
	node->cpu.used = 5;
	assert_false(touch_frees(&world, node));
	node->gpus[0]->books.claims = 1;
	node->gpus[0]->books.claimed_mib = 10;
	node->host.claimed = 7;
	assert_false(touch_frees(&world, node));
	node->gpus[1]->r.healthy = false;
	assert_false(touch_frees(&world, node));
	node->r.reported = false;
	assert_false(touch_frees(&world, node));
	world_end(&world);
}

static void what_comes_free_is_told(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 2);
	struct node *node = world.cluster.nodes[0];
	struct gpu_books *books = &node->gpus[0]->books;
	*books = (struct gpu_books){ .owners = 2, .used_mib = 10, .claims = 1, .claimed_mib = 5 };
	node->cpu = node->host = (struct host_books){ .used = 10, .claimed = 5 };
	node->gpus[1]->r.hot = true;
	touch(&world, node);

	books->releasing_owners = 1;
	books->releasing_mib = 4;
	assert_true(touch_frees(&world, node));
	*books = (struct gpu_books){ .owners = 1, .used_mib = 6, .claims = 1, .claimed_mib = 5 };
	assert_true(touch_frees(&world, node));
	books->claims = 0;
	books->claimed_mib = 0;
	assert_true(touch_frees(&world, node));
	node->cpu.releasing = 1;
	assert_true(touch_frees(&world, node));
	node->host.claimed = 0;
	assert_true(touch_frees(&world, node));
	node->gpus[1]->r.hot = false;
	assert_true(touch_frees(&world, node));
	world_end(&world);
}

static void a_whole_owner_that_leaves_is_told(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	struct gpu_books *books = &node->gpus[0]->books;
	*books = (struct gpu_books){ .owners = 1, .whole_owners = 1 };
	touch(&world, node);
	books->releasing_owners = books->whole_releasing = 1;
	assert_true(touch_frees(&world, node));
	world_end(&world);
}

static void two_gpus_that_swap_what_they_have_are_told(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 2);
	struct node *node = world.cluster.nodes[0];
	struct gpu_books busy = { .owners = 1, .used_mib = 100 };
	node->gpus[0]->books = busy;
	touch(&world, node);
	node->gpus[0]->books = (struct gpu_books){ 0 };
	node->gpus[1]->books = busy;
	assert_true(touch_frees(&world, node));
	world_end(&world);
}

/* As much is free as before, but a fraction takes less of it. */
static void a_gpu_that_shrinks_makes_fractions_fit(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	struct gpu *gpu = node->gpus[0];
	gpu->r.foreign_mib = 20000;
	touch(&world, node);
	gpu->r.foreign_mib -= 10000;
	gpu->r.capacity_mib -= 10000;
	assert_true(touch_frees(&world, node));
	world_end(&world);
}

static void a_new_label_or_model_is_told_once(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	struct node_record record = node->r;
	record.labels = "a=1";
	node_rename(node, &record);
	assert_true(touch_frees(&world, node));
	assert_false(touch_frees(&world, node));
	struct gpu_record gpu = node->gpus[0]->r;
	gpu.model = "H100";
	gpu_redescribe(&world.cluster, node->gpus[0], &gpu);
	assert_true(touch_frees(&world, node));
	assert_false(touch_frees(&world, node));
	world_end(&world);
}

static void what_is_undone_has_its_old_versions_and_they_are_not_given_again(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 1, 1);
	struct node *node = world.cluster.nodes[0];
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .used_mib = 10 };
	touch(&world, node);
	uint64_t version = node->version, free_version = world.index.free_version;

	node->gpus[0]->books = (struct gpu_books){ 0 };
	touch(&world, node);
	uint64_t tried = node->version, last = world.index.last_version;
	assert_true(tried > version && world.index.free_version > free_version);
	node->gpus[0]->books = (struct gpu_books){ .owners = 1, .used_mib = 10 };
	index_restore(&world.index, node, &config, version, free_version);
	index_check(&world.index, &world.cluster, &config);
	assert_true(node->version == version && world.index.free_version == free_version);
	assert_true(world.index.last_version == last);
	node->gpus[0]->books.used_mib = 11;
	touch(&world, node);
	assert_true(node->version > tried);
	world_end(&world);
}

static void a_new_index_follows_nodes_that_come_and_go(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 130, 1);
	uint64_t free_version = world.index.free_version;
	for (int i = 0; i < 100; i++) {
		struct node *node = world.cluster.nodes[0];
		cluster_remove_gpu(&world.cluster, node->gpus[0]);
		cluster_remove_node(&world.cluster, node);
	}
	cluster_order(&world.cluster);
	index_build(&world.index, &world.cluster, &config);
	index_check(&world.index, &world.cluster, &config);
	assert_int_equal(world.index.whole_count[1], 30);
	assert_true(world.index.free_version > free_version);
	for (int i = 0; i < 200; i++)
		index_add_node(&world.cluster, 1000 + i);
	cluster_order(&world.cluster);
	index_build(&world.index, &world.cluster, &config);
	index_check(&world.index, &world.cluster, &config);
	assert_true(bitset_has(&world.index.open, 229));
	world_end(&world);
}

/* Whether index_check ends the program, in a child. */
static bool check_panics(const struct world *world)
{
	int status = 0;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		index_check(&world->index, &world->cluster, &config);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void an_index_that_was_not_told_is_found_out(void **state)
{
	(void)state;
	struct world world;
	world_begin(&world, 2, 1);
	assert_false(check_panics(&world));
	world.cluster.nodes[0]->gpus[0]->books.used_mib = 1;
	assert_true(check_panics(&world));
	world.cluster.nodes[0]->gpus[0]->books.used_mib = 0;
	world.cluster.nodes[0]->cpu.used = 1;
	assert_true(check_panics(&world));
	world.cluster.nodes[0]->cpu.used = 0;
	bitset_drop(&world.index.mib[3], 1);
	assert_true(check_panics(&world));
	bitset_add(&world.index.mib[3], 1);
	world.index.whole_count[1]++;
	assert_true(check_panics(&world));
	world.index.whole_count[1]--;
	assert_false(check_panics(&world));
	world_end(&world);
}

/* Totals roughly as reservations would leave them. */
static void random_books(struct gpu *gpu, uint64_t *random)
{
	int64_t usable = gpu_usable_mib(gpu);
	struct gpu_books books = { 0 };
	switch (random_below(random, 5)) {
	case 0:
		break;
	case 1:
		books.used_mib = usable;
		books.owners = books.whole_owners = 1;
		if (random_below(random, 2)) {
			books.releasing_mib = usable;
			books.releasing_owners = books.whole_releasing = 1;
		}
		break;
	default:
		books.used_mib = (int64_t)random_below(random, (uint64_t)usable + 2);
		books.owners = 1 + (int32_t)random_below(random, 3);
		books.releasing_owners = (int32_t)random_below(random, (uint64_t)books.owners + 1);
		if (books.releasing_owners > 0)
			books.releasing_mib =
			    (int64_t)random_below(random, (uint64_t)books.used_mib + 1);
		break;
	}
	if (random_below(random, 4) == 0) {
		books.claims = 1;
		books.claimed_mib = (int64_t)random_below(random, (uint64_t)usable + 1);
		books.whole_claims = random_below(random, 3) == 0;
	}
	gpu->books = books;
}

static void random_facts(struct node *node, struct gpu *gpu, uint64_t *random)
{
	switch (random_below(random, 6)) {
	case 0:
		gpu->r.capacity_mib = (int64_t)random_below(random, 300000);
		gpu->r.overhead_mib =
		    (int64_t)random_below(random, (uint64_t)gpu->r.capacity_mib + 1);
		break;
	case 1:
		gpu->r.foreign_mib = (int64_t)random_below(random, 200);
		break;
	case 2:
		gpu->r.healthy = random_below(random, 4) > 0;
		gpu->r.hot = random_below(random, 4) == 0;
		gpu->r.present = random_below(random, 8) > 0;
		break;
	case 3:
		node->r.draining = random_below(random, 4) == 0;
		node->r.state = random_below(random, 4) == 0 ? NODE_UNKNOWN : NODE_ONLINE;
		break;
	case 4:
		node->cpu.used = (int64_t)random_below(random, 64000);
		node->cpu.releasing = (int64_t)random_below(random, (uint64_t)node->cpu.used + 1);
		break;
	default:
		node->host.claimed = (int64_t)random_below(random, 1 << 20);
		break;
	}
}

static void random_change(struct node *node, uint64_t *random)
{
	struct gpu *gpu = node->gpus[random_below(random, (uint64_t)node->gpu_count)];
	if (random_below(random, 3) == 0)
		random_facts(node, gpu, random);
	else
		random_books(gpu, random);
}

static struct shape_request random_request(uint64_t *random)
{
	enum gpu_kind kinds[] = { GPU_WHOLE, GPU_FRACTION, GPU_MEMORY };
	return (struct shape_request){
		.gpu_kind = kinds[random_below(random, 3)],
		.gpu_count = 1 + (int32_t)random_below(random, 2),
		.fraction = 1 + (int32_t)random_below(random, 1000),
		.memory_mib =
		    INT64_C(1) << random_below(random, 18) | (int64_t)random_below(random, 1000),
		.cpu_milli = (int64_t)random_below(random, 20000),
		.host_bytes = (int64_t)random_below(random, 1 << 18),
	};
}

static bool gpu_fits(const struct gpu *gpu, const struct shape_request *request, bool later)
{
	int64_t room = later ? gpu_free_later(gpu) : min64(gpu_free_now(gpu), gpu_free_later(gpu));
	int64_t need = request->memory_mib;

	if (!gpu_is_open(gpu, &config))
		return false;
	if (request->gpu_kind == GPU_WHOLE)
		return (later ? gpu_empty_later(gpu)
		              : gpu_empty_now(gpu) && gpu_free_now(gpu) > 0) &&
		       gpu->r.foreign_mib <= config.foreign_tolerance_mib &&
		       gpu_usable_mib(gpu) >= request->memory_mib;
	if (request->gpu_kind == GPU_FRACTION)
		need = gpu_usable_mib(gpu) * request->fraction / 1000;
	return (later ? gpu_shareable_later(gpu) : gpu_shareable_now(gpu)) && need <= room &&
	       gpu_usable_mib(gpu) > 0;
}

static bool host_fits(const struct host_books *books, int64_t total, int64_t need, bool later)
{
	return need <= host_free_later(books, total) &&
	       (later || need <= host_free_now(books, total));
}

static bool node_fits(const struct node *node, const struct shape_request *request, bool later)
{
	int32_t count = 0;
	if (!node_is_open(node) ||
	    !host_fits(&node->cpu, node->r.cpu_milli, request->cpu_milli, later) ||
	    !host_fits(&node->host, node->r.host_bytes, request->host_bytes, later))
		return false;
	for (int i = 0; i < node->gpu_count; i++)
		count += gpu_fits(node->gpus[i], request, later);
	return count >= request->gpu_count;
}

static const struct bitset *set_of(const struct index *index, const struct shape_request *request)
{
	switch (request->gpu_kind) {
	case GPU_WHOLE:
		return &index->whole[request->gpu_count];
	case GPU_FRACTION:
		return &index->milli[index_milli_level(request->fraction)];
	default:
		return &index->mib[index_mib_level(request->memory_mib)];
	}
}

/* 6 nodes of 1 to 6 GPUs of three sizes. */
static void mixed_world(struct world *world)
{
	static const int64_t sizes[] = { 500, 32607, 81920 };
	*world = (struct world){ 0 };
	for (int i = 0; i < 6; i++) {
		struct node *node = index_add_node(&world->cluster, i + 1);
		for (int j = 0; j <= i; j++)
			index_add_gpu(&world->cluster, node, sizes[(i + j / 2) % 3]);
	}
	cluster_order(&world->cluster);
	index_build(&world->index, &world->cluster, &config);
}

static struct node *random_node(const struct world *world, uint64_t *random)
{
	return world->cluster.nodes[random_below(random, world->cluster.node_count)];
}

static void after_any_changes_the_index_equals_one_built_anew(void **state)
{
	(void)state;
	struct world world;
	uint64_t random = 1;
	mixed_world(&world);
	for (int i = 0; i < 20000; i++) {
		struct node *node = random_node(&world, &random);
		random_change(node, &random);
		touch(&world, node);
	}
	world_end(&world);
}

static void every_node_that_fits_is_in_the_set_that_is_searched(void **state)
{
	(void)state;
	struct world world;
	uint64_t random = 2;
	int found = 0;
	mixed_world(&world);
	for (int i = 0; i < 50000; i++) {
		struct node *node = random_node(&world, &random);
		random_change(node, &random);
		index_touch(&world.index, node, &config);
		struct shape_request request = random_request(&random);
		for (size_t j = 0; j < world.cluster.node_count; j++) {
			if (!node_fits(world.cluster.by_rank[j], &request, false))
				continue;
			found++;
			assert_true(bitset_has(&world.index.open, j));
			assert_true(bitset_has(set_of(&world.index, &request), j));
		}
	}
	assert_true(found > 10000);
	world_end(&world);
}

/* What 16 requests, now and later, are answered by a node. */
static uint32_t answers(const struct node *node, const struct shape_request *requests)
{
	uint32_t bits = 0;
	for (int i = 0; i < 32; i++)
		bits |= (uint32_t)node_fits(node, &requests[i / 2], i % 2 != 0) << i;
	return bits;
}

static void nothing_fits_anew_unless_that_was_told(void **state)
{
	(void)state;
	struct world world;
	uint64_t random = 3;
	int gained = 0, quiet = 0;
	mixed_world(&world);
	for (int i = 0; i < 50000; i++) {
		struct node *node = random_node(&world, &random);
		struct shape_request requests[16];
		for (int j = 0; j < 16; j++)
			requests[j] = random_request(&random);
		uint32_t before = answers(node, requests);
		uint64_t free_version = world.index.free_version;
		random_change(node, &random);
		index_touch(&world.index, node, &config);
		bool told = world.index.free_version != free_version;
		bool more = (answers(node, requests) & ~before) != 0;
		assert_true(told || !more);
		gained += more;
		quiet += !told;
	}
	assert_true(gained > 1000 && quiet > 1000);
	world_end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_memory_never_has_a_lower_level),
		cmocka_unit_test(a_doubling_of_memory_is_eight_levels),
		cmocka_unit_test(larger_fractions_never_have_a_lower_level),
		cmocka_unit_test(an_empty_node_is_in_every_set_that_it_can_answer),
		cmocka_unit_test(a_node_that_takes_nothing_is_in_no_set),
		cmocka_unit_test(sixteen_gpus_and_more_are_one_level),
		cmocka_unit_test(a_gpu_with_anything_on_it_is_not_whole),
		cmocka_unit_test(a_gpu_given_whole_shares_nothing),
		cmocka_unit_test(two_halves_of_an_odd_gpu_are_found),
		cmocka_unit_test(the_largest_fraction_may_be_on_a_smaller_gpu),
		cmocka_unit_test(a_node_has_a_new_version_when_a_newcomer_finds_something_else),
		cmocka_unit_test(what_is_coming_back_is_nothing_that_a_newcomer_finds),
		cmocka_unit_test(less_is_not_taken_for_more),
		cmocka_unit_test(what_comes_free_is_told),
		cmocka_unit_test(a_whole_owner_that_leaves_is_told),
		cmocka_unit_test(two_gpus_that_swap_what_they_have_are_told),
		cmocka_unit_test(a_gpu_that_shrinks_makes_fractions_fit),
		cmocka_unit_test(a_new_label_or_model_is_told_once),
		cmocka_unit_test(what_is_undone_has_its_old_versions_and_they_are_not_given_again),
		cmocka_unit_test(a_new_index_follows_nodes_that_come_and_go),
		cmocka_unit_test(an_index_that_was_not_told_is_found_out),
		cmocka_unit_test(after_any_changes_the_index_equals_one_built_anew),
		cmocka_unit_test(every_node_that_fits_is_in_the_set_that_is_searched),
		cmocka_unit_test(nothing_fits_anew_unless_that_was_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
