/* experts.c - the durations of jobs that share a key, for as many keys as memory is given */
#include "core/predict/experts.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"

/* A new duration takes 0.4 and 0.03 of their weight from the older ones, and a
 * twentieth of that where jobs of many users are mixed. */
static const uint32_t growths[PACES][2] = {
	[PACE_FAST] = { GROWTH(39322), GROWTH(64225) },
	[PACE_SLOW] = { GROWTH(63570), GROWTH(65438) },
};

const struct memory *experts_memory(const struct experts *experts, int64_t id)
{
	const struct expert *expert = id != 0 ? map_get(&experts->by_id, id) : NULL;

	for (int i = 0; expert && i < 2; i++)
		if (expert->memories[i].since >= experts->segment - 1 &&
		    expert->memories[i].since > 0)
			return &expert->memories[i];
	return NULL;
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

static void expert_free(struct expert *expert)
{
	free(expert->memories[0].full);
	free(expert->memories[1].full);
	free(expert);
}

/* All at once, or those that are forgotten would count in one core and not in another. `kept`, the
 * newest one or NULL, stays. */
static void experts_limit(struct experts *experts, int64_t most, const struct expert *kept)
{
	while ((int64_t)experts->by_id.count > most) {
		struct expert *expert = experts->oldest;
		if (expert == kept)
			return;
		experts_unlink(experts, expert);
		map_remove(&experts->by_id, expert->id);
		expert_free(expert);
	}
}

static struct expert *experts_add(struct experts *experts, int64_t id, enum expert_kind kind)
{
	struct expert *expert = NEW(struct expert);

	INVARIANT(id > 0);
	expert->id = id;
	expert->kind = kind;
	map_put(&experts->by_id, id, expert);
	experts_link(experts, expert);
	return expert;
}

static void memory_forget(struct memory *memory)
{
	free(memory->full);
	*memory = (struct memory){ 0 };
}

/* Of the two, the first is the older one. What began before the last whole segment is
 * not needed; where nothing of that is left, one memory is enough. */
static void memories_advance(struct expert *expert, int64_t segment)
{
	struct memory *memories = expert->memories;

	if (memories[0].since > 0 && memories[0].since < segment - 1) {
		memory_forget(&memories[0]);
		memories[0] = memories[1];
		memories[1] = (struct memory){ 0 };
	}
	if (memories[0].since > 0 && memories[0].since < segment - 1)
		memory_forget(&memories[0]);
	if (memories[0].since == 0)
		memories[0].since = segment;
	else if (memories[0].since < segment && memories[1].since == 0)
		memories[1].since = segment;
}

static void histograms_add(struct full_memory *full, const struct kernel *kernel, bool wide)
{
	for (enum pace pace = 0; pace < PACES; pace++)
		histogram_add(&full->histograms[pace], kernel, growths[pace][wide]);
}

static void memory_learn(struct memory *memory, enum expert_kind kind, const struct kernel *kernel)
{
	bool wide = expert_kind_is_wide(kind);

	if (memory->samples == 0)
		memory->first = kernel->place;
	if (!memory->full && (memory->samples > 0 || kind == BY_USER)) {
		memory->full = NEW(struct full_memory);
		if (memory->samples > 0) {
			struct kernel first;
			kernel_make(&first, memory->first);
			histograms_add(memory->full, &first, wide);
		}
	}
	if (memory->full)
		histograms_add(memory->full, kernel, wide);
	if (memory->samples < SAMPLES_MAX)
		memory->samples++;
}

struct expert *experts_learn(struct experts *experts, int64_t id, enum expert_kind kind,
                             const struct kernel *kernel, int64_t most)
{
	struct expert *expert = map_get(&experts->by_id, id);

	if (!expert) {
		experts_limit(experts, most - 1, NULL);
		expert = experts_add(experts, id, kind);
	} else if (expert != experts->newest) {
		experts_unlink(experts, expert);
		experts_link(experts, expert);
	}
	/* Always: a core that was loaded may learn as new what this one knew before. */
	experts_limit(experts, most, expert);
	memories_advance(expert, experts->segment);
	for (int i = 0; i < 2; i++)
		if (expert->memories[i].since > 0)
			memory_learn(&expert->memories[i], kind, kernel);
	return expert;
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

const struct histogram *memory_histogram(const struct memory *memory, enum pace pace,
                                         struct histogram *space)
{
	struct kernel first;

	if (memory->full)
		return &memory->full->histograms[pace];
	kernel_make(&first, memory->first);
	*space = (struct histogram){ 0 };
	histogram_add(space, &first, GROWTH(32768)); /* the first one does not grow */
	return space;
}
