/* state.c - the guard within one process: its segment, and its place in it */
#include "guard/calls/state.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "guard/budget/budget.h"
#include "guard/budget/heir.h"
#include "guard/budget/limits.h"
#include "guard/budget/mutex.h"
#include "guard/calls/charge.h"
#include "guard/calls/context.h"
#include "guard/calls/device.h"
#include "guard/calls/overhead.h"
#include "guard/calls/pool.h"
#include "guard/calls/stash.h"
#include "guard/calls/track.h"
#include "guard/guard.h"

enum { INHERITED_MAX = 8 };

static struct {
	_Atomic(bool) attached; /* whether `segment` is known, or known to be none */
	_Atomic(struct segment *) segment;
	_Atomic(const struct member *) joined;
	struct member member; /* written once, before `joined` points to it */
	struct mutex joining;
	uint64_t inherited[INHERITED_MAX]; /* the owners whose descriptors this process has */
	int inherited_count;
} state;

/* A segment that this process and its forked children share. */
static struct segment *make_segment(const char *limits)
{
	struct segment *segment =
	    mmap(NULL, sizeof *segment, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (segment == MAP_FAILED)
		return NULL;
	segment_init(segment);
	limits_read(limits, segment);
	return segment;
}

void state_attach(const char *path, const char *limits)
{
	struct segment *segment = path != NULL && path[0] != '\0' ? segment_open(path) : NULL;
	if (segment == NULL && limits != NULL && limits[0] != '\0')
		segment = make_segment(limits);
	/* Only a process that called exec can have a place already. */
	if (segment != NULL && segment_process_end(segment) > SEGMENT_FIRST_PLACE)
		budget_forget(segment, process_self());
	atomic_store(&state.joined, NULL);
	atomic_store(&state.segment, segment);
	atomic_store(&state.attached, true);
}

struct segment *state_segment(void)
{
	if (!atomic_load_explicit(&state.attached, memory_order_acquire))
		state_attach(getenv(GUARD_SEGMENT_VARIABLE), getenv(GUARD_LIMITS_VARIABLE));
	return atomic_load_explicit(&state.segment, memory_order_acquire);
}

const struct member *state_member(void)
{
	const struct member *member = atomic_load_explicit(&state.joined, memory_order_acquire);
	struct segment *segment = state_segment();
	if (member != NULL || segment == NULL)
		return member;
	mutex_lock(&state.joining);
	member = atomic_load(&state.joined);
	if (member == NULL && budget_join(&state.member, segment, process_self())) {
		member = &state.member;
		atomic_store_explicit(&state.joined, member, memory_order_release);
	}
	mutex_unlock(&state.joining);
	return member;
}

/* A child has its parent's descriptors of the driver, and those that the parent had inherited. */
static void inherit(void)
{
	const struct member *parent = atomic_load(&state.joined);
	struct segment *segment = atomic_load(&state.segment);
	if (parent != NULL && state.inherited_count < INHERITED_MAX)
		state.inherited[state.inherited_count++] = parent->identity.owner;
	uint64_t owner = state.inherited_count > 0 ? process_self().owner : 0;
	for (int i = 0; segment != NULL && i < state.inherited_count; i++)
		heir_add(segment, owner, state.inherited[i]);
}

/* A forked child is another process: it may use none of its parent's memory on a GPU, and
 * the locks that its parent's other threads held are nobody's. */
static void become_child(void)
{
	inherit();
	atomic_store(&state.joined, NULL);
	atomic_store(&state.joining.word, 0);
	track_reset();
	pool_reset();
	charge_reset();
	context_reset();
	device_reset();
	overhead_reset();
	stash_reset();
}

__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(NULL, NULL, become_child);
	state_segment();
}
