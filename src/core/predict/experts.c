/* experts.c - the durations of jobs that share a key, for as many keys as memory is given */
#include "core/predict/experts.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

/* What a new duration takes away from the older ones, in 1/65536: of 0.4 and
 * 0.03, and a twentieth of that where jobs of many users are mixed. */
static const uint32_t rates[PACES][2] = {
	[PACE_FAST] = { 26214, 1311 },
	[PACE_SLOW] = { 1966, 98 },
};

struct expert *experts_find(const struct experts *experts, int64_t id)
{
	return id != 0 ? map_get(&experts->by_id, id) : NULL;
}

struct expert *experts_user(const struct experts *experts, const struct traits *traits)
{
	struct expert *user = experts_find(experts, traits_key(traits, BY_USER));

	return user && user->offsets ? user : NULL;
}

static void experts_link(struct experts *experts, struct expert *expert)
{
	expert->older = experts->newest;
	expert->newer = NULL;
	if (experts->newest)
		experts->newest->newer = expert;
	else
		experts->oldest = expert;
	experts->newest = expert;
}

static void experts_unlink(struct experts *experts, struct expert *expert)
{
	if (expert->older)
		expert->older->newer = expert->newer;
	else
		experts->oldest = expert->newer;
	if (expert->newer)
		expert->newer->older = expert->older;
	else
		experts->newest = expert->older;
}

struct expert *experts_add(struct experts *experts, int64_t id, enum expert_kind kind)
{
	INVARIANT(id > 0 && !experts_find(experts, id));
	struct expert *expert = NEW(struct expert);

	expert->id = id;
	expert->kind = kind;
	if (kind == BY_USER)
		expert->offsets = memory_zero(VOICES, sizeof(*expert->offsets));
	map_put(&experts->by_id, id, expert);
	experts_link(experts, expert);
	return expert;
}

void experts_touch(struct experts *experts, struct expert *expert, int64_t used)
{
	INVARIANT(used >= experts->newest->used);
	expert->used = used;
	experts_unlink(experts, expert);
	experts_link(experts, expert);
}

static void expert_free(struct expert *expert)
{
	free(expert->offsets);
	free(expert);
}

int64_t experts_evict(struct experts *experts, int64_t more)
{
	struct expert *expert = experts->oldest;

	if (!expert || (int64_t)experts->by_id.count + more <= experts->capacity)
		return 0;
	int64_t id = expert->id;
	experts_unlink(experts, expert);
	map_remove(&experts->by_id, id);
	expert_free(expert);
	return id;
}

static int expert_compare(const void *a, const void *b)
{
	const struct expert *one = *(struct expert *const *)a, *other = *(struct expert *const *)b;

	if (one->used != other->used)
		return one->used < other->used ? -1 : 1;
	return (int)one->kind - (int)other->kind;
}

void experts_sort(struct experts *experts)
{
	size_t count = experts->by_id.count, at = 0;
	struct expert **list = memory_alloc(count * sizeof(struct expert *));

	for (struct expert *expert = experts->oldest; expert; expert = expert->newer)
		list[at++] = expert;
	if (count > 1)
		qsort(list, count, sizeof(struct expert *), expert_compare);
	experts->oldest = experts->newest = NULL;
	for (size_t i = 0; i < count; i++)
		experts_link(experts, list[i]);
	free(list);
}

void experts_free(struct experts *experts)
{
	for (struct expert *expert = experts->oldest, *next; expert; expert = next) {
		next = expert->newer;
		expert_free(expert);
	}
	map_free(&experts->by_id);
	*experts = (struct experts){ 0 };
}

void expert_learn(struct expert *expert, int32_t place)
{
	bool wide = expert_kind_is_wide(expert->kind);

	for (enum pace pace = 0; pace < PACES; pace++)
		histogram_add(&expert->histograms[pace], place, rates[pace][wide]);
	if (expert->samples < SAMPLES_MAX)
		expert->samples++;
}
