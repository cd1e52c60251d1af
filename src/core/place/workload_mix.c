/* workload_mix.c - the kinds of tasks that arrive, as the fragmentation policy weighs them */
#include "core/place/workload_mix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define LEARN_ALL 1024   /* tasks seen before only samples count */
#define SAMPLE 16        /* then one job in 16 does */
#define DERIVE_MIN 16    /* tasks between derivations */
#define WINDOW (1 << 16) /* tasks seen before what was seen counts half */
#define AMOUNT_MAX (INT64_C(1) << 40)

_Static_assert(sizeof(struct workload_kind) == MIX_WIDTH * sizeof(int64_t), "a kind is a row");

static const int32_t no_single[MIX_NEEDS + 1], no_several[GPUS_PER_NODE_MAX + 1];
const struct workload_row workload_row_of_nothing = { no_single, no_several, 0, -1 };

/* What is expected where nothing is known. */
static const struct workload_kind usual[] = {
	{ 1000, 1, 0, 40 }, { 1000, 2, 0, 10 }, { 1000, 4, 0, 10 },
	{ 1000, 8, 0, 10 }, { 500, 1, 0, 15 },  { 250, 1, 0, 15 },
};
#define USUAL_COUNT (sizeof(usual) / sizeof(usual[0]))

/* How often something about kinds arrives: a need of GPUs, or of CPU. */
struct tally {
	int64_t what, times;
};

static int64_t need_of(const struct workload_kind *kind)
{
	return kind->gpu_milli * (GPUS_PER_NODE_MAX + 1) + kind->gpu_count;
}

static int64_t cpu_of(const struct workload_kind *kind)
{
	return kind->cpu_milli;
}

static int by_what(const void *a, const void *b)
{
	const struct tally *one = a, *other = b;
	return (one->what > other->what) - (one->what < other->what);
}

static int by_times(const void *a, const void *b)
{
	const struct tally *one = a, *other = b;
	return one->times != other->times ? (one->times < other->times ? 1 : -1) : by_what(a, b);
}

/* Counts the kinds with GPUs by what `of` says, into tallies sorted by that.
 * Returns how many there are. */
static size_t tally(struct tally *tallies, const struct workload_kind *kinds, size_t count,
                    int64_t (*of)(const struct workload_kind *kind))
{
	size_t used = 0, merged = 0;
	for (size_t i = 0; i < count; i++) {
		if (kinds[i].gpu_count > 0)
			tallies[used++] = (struct tally){ of(&kinds[i]), kinds[i].times };
	}
	if (used > 1)
		qsort(tallies, used, sizeof(*tallies), by_what);
	for (size_t i = 0; i < used; i++) {
		if (merged > 0 && tallies[merged - 1].what == tallies[i].what)
			tallies[merged - 1].times += tallies[i].times;
		else
			tallies[merged++] = tallies[i];
	}
	return merged;
}

/* Drops the kinds whose need of GPUs is not among the MIX_NEEDS most frequent.
 * Returns how many are left. */
static size_t keep_frequent_needs(struct workload_kind *kinds, size_t count, struct tally *tallies)
{
	size_t left = 0, needs = tally(tallies, kinds, count, need_of);
	if (needs <= MIX_NEEDS)
		return count;
	qsort(tallies, needs, sizeof(*tallies), by_times);
	for (size_t i = 0; i < count; i++) {
		size_t at = 0;
		while (at < MIX_NEEDS && tallies[at].what != need_of(&kinds[i]))
			at++;
		if (at < MIX_NEEDS || kinds[i].gpu_count == 0)
			kinds[left++] = kinds[i];
	}
	return left;
}

/* The steps of CPU: 0 and what the kinds need, where the least frequent give
 * way to the next larger until all have a place. */
static void choose_cpus(struct workload_weights *weights, const struct workload_kind *kinds,
                        size_t count, struct tally *tallies)
{
	size_t cpus = tally(tallies, kinds, count, cpu_of), used = 1;
	size_t first = cpus > 0 && tallies[0].what == 0;
	while (cpus - first > MIX_CPUS - 1) {
		size_t least = first;
		for (size_t i = first + 1; i < cpus - 1; i++) {
			if (tallies[i].times < tallies[least].times)
				least = i;
		}
		tallies[least + 1].times += tallies[least].times;
		cpus--;
		memmove(&tallies[least], &tallies[least + 1], (cpus - least) * sizeof(*tallies));
	}
	weights->cpu[0] = 0;
	for (size_t i = first; i < cpus; i++)
		weights->cpu[used++] = tallies[i].what;
	while (used < MIX_CPUS)
		weights->cpu[used++] = INT64_MAX;
}

/* level[r]: how many sizes of kinds of one GPU are at most r. */
static void count_levels(struct workload_weights *weights, const struct workload_kind *kinds,
                         size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (kinds[i].gpu_count == 1)
			weights->level[kinds[i].gpu_milli] = 1;
	}
	for (int milli = 1; milli <= WHOLE_GPU; milli++)
		weights->level[milli] =
		    (uint8_t)(weights->level[milli] + weights->level[milli - 1]);
}

static struct workload_split *split_of(struct workload_weights *weights,
                                       const struct workload_kind *kind)
{
	int at = 0;
	while (at < weights->split_count && (weights->splits[at].milli != kind->gpu_milli ||
	                                     weights->splits[at].count != kind->gpu_count))
		at++;
	if (at == weights->split_count) {
		weights->split_count++;
		weights->splits[at].milli = (int32_t)kind->gpu_milli;
		weights->splits[at].count = (int32_t)kind->gpu_count;
	}
	return &weights->splits[at];
}

/* Adds a kind at the one place where it begins to count. */
static void add_kind(struct workload_weights *weights, const struct workload_kind *kind,
                     int32_t weight)
{
	int c = 0;
	weights->all += weight;
	if (kind->gpu_count == 0)
		return;
	while (weights->cpu[c] < kind->cpu_milli)
		c++;
	if (kind->gpu_count == 1)
		weights->single[c][weights->level[kind->gpu_milli]] += weight;
	else if (kind->gpu_milli == WHOLE_GPU)
		weights->whole[c][kind->gpu_count] += weight;
	else
		split_of(weights, kind)->weight[c] += weight;
}

/* From what each place adds to what counts up to there. */
static void workload_mix_add_up(struct workload_weights *weights)
{
	for (int c = 0; c < MIX_CPUS; c++) {
		for (int i = 1; i <= MIX_NEEDS; i++)
			weights->single[c][i] += weights->single[c][i - 1];
		for (int i = 1; i <= GPUS_PER_NODE_MAX; i++)
			weights->whole[c][i] += weights->whole[c][i - 1];
	}
	for (int c = 1; c < MIX_CPUS; c++) {
		for (int i = 0; i <= MIX_NEEDS; i++)
			weights->single[c][i] += weights->single[c - 1][i];
		for (int i = 0; i <= GPUS_PER_NODE_MAX; i++)
			weights->whole[c][i] += weights->whole[c - 1][i];
		for (int i = 0; i < weights->split_count; i++)
			weights->splits[i].weight[c] += weights->splits[i].weight[c - 1];
	}
}

static int64_t total_times(const struct workload_kind *kinds, size_t count)
{
	int64_t total = 0;
	for (size_t i = 0; i < count; i++)
		total += kinds[i].times;
	return total;
}

/* Makes the weights those of the kinds, of which it drops some. */
static void weigh_kinds(struct workload_weights *weights, struct workload_kind *kinds, size_t count)
{
	struct tally *tallies = memory_alloc(count * sizeof(*tallies));

	*weights = (struct workload_weights){ 0 };
	count = keep_frequent_needs(kinds, count, tallies);
	choose_cpus(weights, kinds, count, tallies);
	if (tally(tallies, kinds, count, need_of) > 0) {
		int64_t total = total_times(kinds, count);
		count_levels(weights, kinds, count);
		for (size_t i = 0; i < count; i++)
			add_kind(weights, &kinds[i],
			         (int32_t)muldiv_down(kinds[i].times, MIX_UNIT, total));
		workload_mix_add_up(weights);
	}
	free(tallies);
}

/* From how often kinds arrive to the GPUs that they ask for. */
static size_t by_demand(struct workload_kind *kinds, size_t count)
{
	int64_t total = total_times(kinds, count);
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		struct workload_kind kind = kinds[i];
		kind.times =
		    muldiv_up(kind.times, MIX_UNIT, total) * kind.gpu_count * kind.gpu_milli;
		if (kind.times > 0)
			kinds[left++] = kind;
	}
	return left;
}

/* How many of the kinds, most frequent first, make up 95% of all. */
static size_t frequent(const struct workload_kind *kinds, size_t count)
{
	int64_t total = total_times(kinds, count), covered = 0;
	size_t kept = 0;

	while (kept < count && covered * 20 < total * 19)
		covered += kinds[kept++].times;
	return kept;
}

/* What the weights are made from. */
static const struct workload_kind *known_kinds(const struct workload_mix *mix, size_t *count)
{
	bool known = mix->r.classes.count > 0;

	*count = known ? (size_t)mix->r.classes.count : USUAL_COUNT;
	return known ? mix->classes : usual;
}

/* Makes the weights those of the classes. */
static void weigh(struct workload_mix *mix)
{
	size_t count;
	const struct workload_kind *known = known_kinds(mix, &count);
	bool learned = !mix->r.fixed && mix->r.classes.count > 0;
	struct workload_kind *kinds = memory_alloc(count * sizeof(*kinds));

	mix->version++;
	memcpy(kinds, known, count * sizeof(*kinds));
	weigh_kinds(&mix->weights, kinds, learned ? frequent(kinds, count) : count);
	free(kinds);
}

static void learn_worth(struct workload_mix *mix)
{
	size_t count;
	const struct workload_kind *known = known_kinds(mix, &count);
	struct workload_kind *kinds = memory_alloc(count * sizeof(*kinds));

	gpu_value_learn(&mix->gpu_value, known, count);
	memcpy(kinds, known, count * sizeof(*kinds));
	weigh_kinds(&mix->demand, kinds, by_demand(kinds, count));
	free(kinds);
	mix->gpu_value_version = mix->version;
}

const struct gpu_value *workload_mix_gpu_value(struct workload_mix *mix)
{
	if (mix->gpu_value_version != mix->version)
		learn_worth(mix);
	return &mix->gpu_value;
}

/* What does not count for the kinds of several parts that the node can take. */
static int64_t split_fit(const struct workload_weights *weights, int c, const int32_t *free_milli,
                         int gpu_count)
{
	int64_t fit = 0;
	for (int i = 0; i < weights->split_count; i++) {
		const struct workload_split *split = &weights->splits[i];
		int32_t fitting = 0, fitting_milli = 0;
		for (int g = 0; g < gpu_count; g++) {
			fitting += free_milli[g] >= split->milli;
			fitting_milli += free_milli[g] >= split->milli ? free_milli[g] : 0;
		}
		if (fitting >= split->count)
			fit += (int64_t)fitting_milli * split->weight[c];
	}
	return fit;
}

int64_t weights_fragmentation(const struct workload_weights *weights, int64_t cpu_milli,
                              const int32_t *free_milli, int gpu_count)
{
	const struct workload_row row = workload_row(weights, cpu_milli);
	int64_t total_milli = 0, whole = 0, fit = 0;

	INVARIANT(gpu_count <= GPUS_PER_NODE_MAX);
	for (int g = 0; g < gpu_count; g++) {
		INVARIANT(free_milli[g] >= 0 && free_milli[g] <= WHOLE_GPU);
		total_milli += free_milli[g];
		whole += free_milli[g] == WHOLE_GPU;
		fit += (int64_t)free_milli[g] * row.single[weights->level[free_milli[g]]];
	}
	if (weights->split_count > 0 && row.step >= 0)
		fit += split_fit(weights, row.step, free_milli, gpu_count);
	return workload_row_fragmentation(&row, total_milli, whole, fit);
}

static struct rows rows_of(const struct workload_kind *kinds, size_t count)
{
	return (struct rows){ .at = (const int64_t *)kinds, .count = (int64_t)count };
}

static void set_classes(struct workload_mix *mix, const void *kinds, size_t count)
{
	array_reserve(mix->classes, mix->class_capacity, count);
	if (count > 0)
		memcpy(mix->classes, kinds, count * sizeof(*mix->classes));
	mix->r.classes = rows_of(mix->classes, count);
}

static void set_seen(struct workload_mix *mix, const void *kinds, size_t count)
{
	array_reserve(mix->seen, mix->seen_capacity, count);
	if (count > 0)
		memcpy(mix->seen, kinds, count * sizeof(*mix->seen));
	mix->r.seen = rows_of(mix->seen, count);
}

static int by_frequency(const void *a, const void *b)
{
	const struct workload_kind *one = a, *other = b;
	if (one->times != other->times)
		return one->times > other->times ? -1 : 1;
	if (need_of(one) != need_of(other))
		return need_of(one) < need_of(other) ? -1 : 1;
	return (one->cpu_milli > other->cpu_milli) - (one->cpu_milli < other->cpu_milli);
}

/* The classes are the kinds that were seen, most frequent first. */
static void derive(struct workload_mix *mix)
{
	size_t count = (size_t)mix->r.seen.count;
	set_classes(mix, mix->seen, count);
	if (count > 0)
		qsort(mix->classes, count, sizeof(*mix->classes), by_frequency);
	mix->r.derived_at = mix->r.arrivals;
	weigh(mix);
}

/* Lets all that was seen count half, and forgets what then counts nothing. */
static void forget_half(struct workload_mix *mix)
{
	size_t count = (size_t)mix->r.seen.count, left = 0;
	for (size_t i = 0; i < count; i++) {
		struct workload_kind kind = mix->seen[i];
		kind.times /= 2;
		if (kind.times > 0)
			mix->seen[left++] = kind;
	}
	mix->r.seen.count = (int64_t)left;
}

static struct workload_kind *find_seen(const struct workload_mix *mix,
                                       const struct workload_kind *wanted)
{
	for (int64_t i = 0; i < mix->r.seen.count; i++) {
		struct workload_kind *kind = &mix->seen[i];
		if (kind->gpu_milli == wanted->gpu_milli && kind->cpu_milli == wanted->cpu_milli &&
		    kind->gpu_count == wanted->gpu_count)
			return kind;
	}
	return NULL;
}

static void count_seen(struct workload_mix *mix, const struct workload_kind *arrived)
{
	struct workload_kind *kind = find_seen(mix, arrived);
	if (kind) {
		kind->times += arrived->times;
		return;
	}
	while (mix->r.seen.count >= MIX_SEEN)
		forget_half(mix);
	size_t count = (size_t)mix->r.seen.count;
	array_reserve(mix->seen, mix->seen_capacity, count + 1);
	mix->seen[count] = *arrived;
	mix->r.seen = rows_of(mix->seen, count + 1);
}

static void say_insisted(struct workload_mix *mix)
{
	mix->r.insisted = type_demand_text(&mix->type_demand);
	mix->r.insisted_milli = type_demand_rows(&mix->type_demand);
}

static void count_models(struct workload_mix *mix, const char *models, int64_t milli)
{
	mix->r.asked_milli += milli;
	if (*models == '\0')
		return;
	type_demand_add(&mix->type_demand, models, milli);
	say_insisted(mix);
}

/* By a hash, since jobs may be submitted in a pattern that repeats. */
static bool is_sample(const struct workload_mix *mix, int64_t number)
{
	return mix->r.arrivals < LEARN_ALL || hash_number((uint64_t)number) % SAMPLE == 0;
}

void workload_mix_learn(struct workload_mix *mix, int64_t number, int64_t gpu_milli,
                        int64_t gpu_count, int64_t cpu_milli, int64_t tasks, const char *models)
{
	INVARIANT(gpu_count >= 0 && gpu_count <= GPUS_PER_NODE_MAX && tasks >= 0);
	if (mix->r.fixed || tasks == 0 || !is_sample(mix, number))
		return;
	const struct workload_kind arrived = {
		.gpu_milli = gpu_count > 0 ? max64(1, min64(gpu_milli, WHOLE_GPU)) : 0,
		.gpu_count = gpu_count,
		.cpu_milli = max64(0, min64(cpu_milli, AMOUNT_MAX)),
		.times = min64(tasks, TASKS_MAX),
	};
	count_seen(mix, &arrived);
	count_models(mix, models, arrived.times * arrived.gpu_count * arrived.gpu_milli);
	mix->r.arrivals += arrived.times;
	mix->dirty = true;
	if (mix->r.arrivals >= mix->r.derived_at + max64(DERIVE_MIN, mix->r.derived_at / 4))
		derive(mix);
	if (mix->r.arrivals >= WINDOW) {
		forget_half(mix);
		mix->r.arrivals /= 2;
		mix->r.derived_at /= 2;
		mix->r.asked_milli /= 2;
		type_demand_halve(&mix->type_demand);
		say_insisted(mix);
	}
}

/* Whether the row, the `number`th of its list, is a kind. */
static bool check_kind(const struct workload_kind *kind, int64_t number, enum error_code code,
                       struct error *error)
{
	if (kind->gpu_count < 0 || kind->gpu_count > GPUS_PER_NODE_MAX)
		return error_set(error, code,
		                 "kind %" PRId64 " of the mix has %" PRId64
		                 " GPUs, it can have 0 to %d",
		                 number, kind->gpu_count, GPUS_PER_NODE_MAX);
	if (kind->gpu_milli < (kind->gpu_count > 0) || kind->gpu_milli > WHOLE_GPU)
		return error_set(error, code,
		                 "kind %" PRId64 " of the mix has %" PRId64
		                 " thousandths of each GPU, it can have %d to %d",
		                 number, kind->gpu_milli, kind->gpu_count > 0, WHOLE_GPU);
	if (kind->cpu_milli < 0 || kind->cpu_milli > AMOUNT_MAX)
		return error_set(error, code,
		                 "kind %" PRId64 " of the mix has %" PRId64
		                 " thousandths of a core, it can have 0 to %" PRId64,
		                 number, kind->cpu_milli, AMOUNT_MAX);
	if (kind->times < 1 || kind->times > AMOUNT_MAX)
		return error_set(error, code,
		                 "kind %" PRId64 " of the mix has a weight of %" PRId64
		                 ", it can have 1 to %" PRId64,
		                 number, kind->times, AMOUNT_MAX);
	return true;
}

static bool check_rows(struct rows rows, int64_t most, enum error_code code, struct error *error)
{
	if (rows.count < 0 || rows.count > most)
		return error_set(error, code,
		                 "the mix has %" PRId64
		                 " kinds of tasks, it can have 0 to %" PRId64,
		                 rows.count, most);
	for (int64_t i = 0; i < rows.count; i++) {
		struct workload_kind kind;
		memcpy(&kind, rows.at + i * MIX_WIDTH, sizeof(kind));
		if (!check_kind(&kind, i + 1, code, error))
			return false;
	}
	return true;
}

bool workload_mix_fix(struct workload_mix *mix, struct rows rows, struct error *error)
{
	INVARIANT(rows.at != NULL || rows.count <= 0);
	if (!check_rows(rows, MIX_ROWS, ERROR_INVALID, error))
		return false;
	mix->r.fixed = rows.count > 0;
	mix->dirty = true;
	if (mix->r.fixed) {
		set_classes(mix, rows.at, (size_t)rows.count);
		weigh(mix);
	} else {
		derive(mix);
	}
	return true;
}

bool workload_mix_load(struct workload_mix *mix, const struct mix_record *record,
                       struct error *error)
{
	if (!check_rows(record->seen, MIX_SEEN, ERROR_CORRUPT, error) ||
	    !check_rows(record->classes, MIX_ROWS, ERROR_CORRUPT, error))
		return false;
	if (record->derived_at < 0 || record->derived_at > record->arrivals ||
	    record->arrivals > AMOUNT_MAX)
		return error_set(error, ERROR_CORRUPT,
		                 "the mix was derived after %" PRId64 " of %" PRId64 " arrivals",
		                 record->derived_at, record->arrivals);
	if (record->fixed && record->classes.count == 0)
		return error_set(error, ERROR_CORRUPT,
		                 "the mix is fixed and has no kinds of tasks");
	if (record->asked_milli < 0 || record->asked_milli > AMOUNT_MAX)
		return error_set(error, ERROR_CORRUPT,
		                 "the tasks of the mix asked for %" PRId64 " thousandths of GPUs",
		                 record->asked_milli);
	if (!type_demand_load(&mix->type_demand, record->insisted, record->insisted_milli,
	                      record->asked_milli, error))
		return false;
	say_insisted(mix);
	set_seen(mix, record->seen.at, (size_t)record->seen.count);
	set_classes(mix, record->classes.at, (size_t)record->classes.count);
	mix->r.fixed = record->fixed;
	mix->r.arrivals = record->arrivals;
	mix->r.derived_at = record->derived_at;
	mix->r.asked_milli = record->asked_milli;
	weigh(mix);
	return true;
}

void workload_mix_init(struct workload_mix *mix)
{
	*mix = (struct workload_mix){ .r.id = 1, .r.insisted = "" };
	weigh(mix);
}

void workload_mix_free(struct workload_mix *mix)
{
	free(mix->seen);
	free(mix->classes);
	type_demand_free(&mix->type_demand);
	*mix = (struct workload_mix){ 0 };
}
