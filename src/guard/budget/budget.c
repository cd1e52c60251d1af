/* budget.c - the budget of a task: how much of its GPU memory each process has */
#include "guard/budget/budget.h"

#include <string.h>

#include "guard/budget/heir.h"
#include "guard/budget/share.h"
#include "guard/budget/system.h"

#define USUAL_CONTEXT_BYTES ((int64_t)512 << 20)

static void keep_peak(struct segment_gpu *gpu)
{
	int64_t used_bytes = segment_get(&gpu->used_bytes);
	if (used_bytes > segment_get(&gpu->peak_bytes))
		segment_set(&gpu->peak_bytes, used_bytes);
}

/* Totals from their parts. What a place holds is never negative, even if somebody
 * wrote that there. */
static void count_totals(struct segment *segment)
{
	uint32_t end = segment_process_end(segment);
	for (uint32_t gpu = 0; gpu < segment_gpu_count(segment); gpu++) {
		int64_t used_bytes = 0;
		for (uint32_t place = 0; place < end; place++) {
			const struct segment_process *process = &segment->processes[place];
			int64_t parts[] = { segment_get(&process->charged_bytes[gpu]),
				            segment_get(&process->overhead_bytes[gpu]) };
			for (int i = 0; i < 2; i++) {
				if (parts[i] > 0 &&
				    __builtin_add_overflow(used_bytes, parts[i], &used_bytes))
					used_bytes = INT64_MAX;
			}
		}
		segment_set(&segment->gpus[gpu].used_bytes, used_bytes);
	}
}

/* Charges what the agent has measured for other processes. */
static void take_what_was_told(struct segment *segment, uint32_t told)
{
	atomic_store_explicit(&segment->told_seen, told, memory_order_relaxed);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < segment_process_end(segment); place++) {
		struct segment_process *process = &segment->processes[place];
		for (uint32_t gpu = 0; gpu < segment_gpu_count(segment); gpu++) {
			int64_t told_bytes = segment_get(&process->told_bytes[gpu]);
			if (told_bytes > 0)
				segment_set(&process->overhead_bytes[gpu], told_bytes - 1);
		}
	}
	count_totals(segment);
	for (uint32_t gpu = 0; gpu < segment_gpu_count(segment); gpu++)
		keep_peak(&segment->gpus[gpu]);
}

void budget_lock(const struct member *member)
{
	struct segment *segment = member->segment;
	if (lock_take(member))
		count_totals(segment);
	uint32_t told = atomic_load_explicit(&segment->told, memory_order_acquire);
	if (told != atomic_load_explicit(&segment->told_seen, memory_order_relaxed))
		take_what_was_told(segment, told);
}

bool budget_fits(const struct segment *segment, uint32_t gpu, int64_t bytes)
{
	int64_t used_bytes = segment_get(&segment->gpus[gpu].used_bytes);
	int64_t with_it;
	return !__builtin_add_overflow(used_bytes, bytes, &with_it) &&
	       with_it <= segment_get(&segment->gpus[gpu].limit_bytes);
}

/* Adds to the total and keeps the peak. */
static void add_used(struct segment_gpu *gpu, int64_t bytes)
{
	int64_t used_bytes = segment_get(&gpu->used_bytes);
	if (__builtin_add_overflow(used_bytes, bytes, &used_bytes))
		used_bytes = INT64_MAX;
	segment_set(&gpu->used_bytes, used_bytes > 0 ? used_bytes : 0);
	keep_peak(gpu);
}

static void add_part(_Atomic(int64_t) *part, int64_t bytes)
{
	int64_t sum;
	if (__builtin_add_overflow(segment_get(part), bytes, &sum))
		sum = INT64_MAX;
	segment_set(part, sum > 0 ? sum : 0);
}

void budget_move(struct segment *segment, uint32_t place, uint32_t gpu, int64_t bytes)
{
	add_part(&segment->processes[place].charged_bytes[gpu], bytes);
	add_used(&segment->gpus[gpu], bytes);
}

/* Empties a place. What it alone held of shared memory is free, the rest goes to
 * another holder. The totals are counted by the caller. */
static void clear_place(struct segment *segment, uint32_t place)
{
	struct segment_process *process = &segment->processes[place];
	for (uint32_t gpu = 0; gpu < SEGMENT_GPUS_MAX; gpu++) {
		segment_set(&process->charged_bytes[gpu], 0);
		segment_set(&process->hidden_bytes[gpu], 0);
		segment_set(&process->overhead_bytes[gpu], 0);
		segment_set(&process->told_bytes[gpu], 0);
	}
	segment_set(&process->imports, 0);
	atomic_store_explicit(&process->gone_owner, 0, memory_order_relaxed);
	share_drop_all(segment, place);
}

static void vacate(struct segment *segment, uint32_t place)
{
	clear_place(segment, place);
	atomic_store_explicit(&segment->processes[place].namespace_id, 0, memory_order_relaxed);
	atomic_store_explicit(&segment->processes[place].owner, 0, memory_order_release);
}

static void reap_locked(const struct member *member)
{
	struct segment *segment = member->segment;
	uint32_t end = segment_process_end(segment);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < end; place++) {
		if (place != member->place && lock_holder_is_gone(member, place) &&
		    !heir_lives(segment, atomic_load(&segment->processes[place].owner)))
			vacate(segment, place);
	}
	count_totals(segment);
}

void budget_reap(const struct member *member)
{
	budget_lock(member);
	reap_locked(member);
	lock_give(member);
}

void budget_reap_place(const struct member *member, uint32_t place)
{
	budget_lock(member);
	vacate(member->segment, place);
	count_totals(member->segment);
	lock_give(member);
}

/* Takes a free place in one step, so that nobody who dies here leaves one that is
 * taken by nobody. */
static bool take_place(struct member *member)
{
	struct segment *segment = member->segment;
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < SEGMENT_PROCESSES_MAX; place++) {
		uint64_t nobody = 0;
		struct segment_process *process = &segment->processes[place];
		if (!atomic_compare_exchange_strong(&process->owner, &nobody,
		                                    member->identity.owner))
			continue;
		atomic_store(&process->namespace_id, member->identity.namespace_id);
		uint32_t end = atomic_load(&segment->process_end);
		while (end <= place &&
		       !atomic_compare_exchange_weak(&segment->process_end, &end, place + 1))
			;
		member->place = place;
		return true;
	}
	return false;
}

/* The place that this process has taken before, or 0. */
static uint32_t find_place(const struct segment *segment, struct process_identity identity)
{
	uint32_t end = segment_process_end(segment);
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < end; place++) {
		const struct segment_process *process = &segment->processes[place];
		if (atomic_load(&process->owner) == identity.owner &&
		    (atomic_load(&process->namespace_id) == 0 ||
		     atomic_load(&process->namespace_id) == identity.namespace_id))
			return place;
	}
	return 0;
}

/* The one who had the place before may have ended with the lock in its hand. */
static void free_lock_of(struct segment *segment, uint32_t place)
{
	uint32_t holder = place + 1;
	atomic_compare_exchange_strong(&segment->lock, &holder, 0);
}

bool budget_join(struct member *member, struct segment *segment, struct process_identity identity)
{
	budget_forget(segment, identity);
	*member = (struct member){ .segment = segment, .identity = identity };
	if (take_place(member))
		return true;
	/* Nobody can take the lock without a place. The places are only read here, and
	 * each is taken over from the dead in one step. */
	for (uint32_t place = SEGMENT_FIRST_PLACE; place < SEGMENT_PROCESSES_MAX; place++) {
		struct segment_process *process = &segment->processes[place];
		uint64_t owner = atomic_load(&process->owner);
		if (!lock_holder_is_gone(member, place) ||
		    !atomic_compare_exchange_strong(&process->owner, &owner, identity.owner))
			continue;
		member->place = place;
		atomic_store(&process->namespace_id, identity.namespace_id);
		free_lock_of(segment, place);
		budget_lock(member);
		clear_place(segment, place);
		count_totals(segment);
		lock_give(member);
		return true;
	}
	return false;
}

void budget_forget(struct segment *segment, struct process_identity identity)
{
	uint32_t place = find_place(segment, identity);
	if (place == 0)
		return;
	struct member member = { .segment = segment, .identity = identity, .place = place };
	/* A thread that exec ended may have held the lock: it was this process's. */
	free_lock_of(segment, place);
	budget_reap_place(&member, place);
}

int budget_find_gpu(const struct segment *segment, const uint8_t uuid[16])
{
	uint32_t count = segment_gpu_count(segment);
	for (uint32_t gpu = 0; gpu < count; gpu++) {
		if (memcmp(segment->gpus[gpu].uuid, uuid, 16) == 0)
			return (int)gpu;
	}
	return -1;
}

int budget_gpu(const struct member *member, const uint8_t uuid[16])
{
	struct segment *segment = member->segment;
	int gpu = budget_find_gpu(segment, uuid);
	if (gpu >= 0)
		return gpu;
	budget_lock(member);
	gpu = budget_find_gpu(segment, uuid);
	uint32_t count = segment_gpu_count(segment);
	if (gpu < 0 && count < SEGMENT_GPUS_MAX) {
		gpu = (int)count;
		struct segment_gpu *added = &segment->gpus[count];
		memcpy(added->uuid, uuid, 16);
		segment_set(&added->limit_bytes, segment_get(&segment->others_limit_bytes));
		segment_set(&added->context_bytes, segment_get(&segment->others_context_bytes));
		atomic_store_explicit(&segment->gpu_count, count + 1, memory_order_release);
	}
	lock_give(member);
	return gpu;
}

bool budget_take(const struct member *member, int gpu, int64_t bytes)
{
	struct segment *segment = member->segment;
	budget_lock(member);
	bool fits = budget_fits(segment, (uint32_t)gpu, bytes);
	if (!fits && bytes <= segment_get(&segment->gpus[gpu].limit_bytes)) {
		reap_locked(member);
		fits = budget_fits(segment, (uint32_t)gpu, bytes);
	}
	if (fits)
		budget_move(segment, member->place, (uint32_t)gpu, bytes);
	lock_give(member);
	return fits;
}

void budget_take_fact(const struct member *member, int gpu, int64_t bytes)
{
	budget_lock(member);
	budget_move(member->segment, member->place, (uint32_t)gpu, bytes);
	lock_give(member);
}

void budget_give(const struct member *member, int gpu, int64_t bytes)
{
	budget_take_fact(member, gpu, -bytes);
}

void budget_hide(const struct member *member, int gpu, int64_t bytes)
{
	atomic_fetch_add_explicit(&member->segment->processes[member->place].hidden_bytes[gpu],
	                          bytes, memory_order_relaxed);
}

int64_t budget_visible(const struct segment_process *process, int gpu)
{
	int64_t charged_bytes = segment_get(&process->charged_bytes[gpu]);
	int64_t hidden_bytes = segment_get(&process->hidden_bytes[gpu]);
	if (hidden_bytes <= 0)
		return charged_bytes;
	return hidden_bytes < charged_bytes ? charged_bytes - hidden_bytes : 0;
}

void budget_refuse(const struct member *member, int gpu, int64_t bytes)
{
	struct segment_gpu *refused = &member->segment->gpus[gpu];
	segment_set(&refused->last_refused_bytes, bytes);
	atomic_fetch_add_explicit(&refused->refusals, 1, memory_order_relaxed);
}

void budget_fail(const struct member *member, int gpu, int64_t bytes)
{
	struct segment_gpu *full = &member->segment->gpus[gpu];
	segment_set(&full->last_failed_bytes, bytes);
	segment_set(&full->last_failed_ms, system_boot_ms());
	atomic_fetch_add_explicit(&full->failures, 1, memory_order_relaxed);
}

void budget_import(const struct member *member, int change)
{
	atomic_fetch_add_explicit(&member->segment->processes[member->place].imports, change,
	                          memory_order_relaxed);
}

/* Under the lock: a process's overhead becomes `bytes`. */
static void set_overhead(struct segment *segment, uint32_t place, int gpu, int64_t bytes)
{
	_Atomic(int64_t) *overhead_bytes = &segment->processes[place].overhead_bytes[gpu];
	int64_t before_bytes = segment_get(overhead_bytes);
	segment_set(overhead_bytes, bytes);
	add_used(&segment->gpus[gpu], bytes - before_bytes);
}

static int64_t usual_context(int64_t limit_bytes)
{
	return limit_bytes / 8 < USUAL_CONTEXT_BYTES ? limit_bytes / 8 : USUAL_CONTEXT_BYTES;
}

bool budget_expect_context(const struct member *member, int gpu)
{
	struct segment *segment = member->segment;
	budget_lock(member);
	int64_t expected_bytes = segment_get(&segment->gpus[gpu].context_bytes);
	int64_t peak_bytes = segment_get(&segment->gpus[gpu].peak_bytes);
	bool guessed = expected_bytes == 0 && segment_get(&segment->gpus[gpu].context_known) == 0;
	if (guessed)
		expected_bytes = usual_context(segment_get(&segment->gpus[gpu].limit_bytes));
	int64_t had_bytes = segment_get(&segment->processes[member->place].overhead_bytes[gpu]);
	int64_t more_bytes = expected_bytes > had_bytes ? expected_bytes - had_bytes : 0;
	/* However little a context takes, it is not nothing. */
	bool fits = segment_get(&segment->gpus[gpu].limit_bytes) > 0;
	if (fits && !budget_fits(segment, (uint32_t)gpu, more_bytes)) {
		reap_locked(member);
		fits = budget_fits(segment, (uint32_t)gpu, more_bytes);
	}
	if (fits)
		set_overhead(segment, member->place, gpu, had_bytes + more_bytes);
	/* A guess is nothing that was ever used. */
	if (guessed)
		segment_set(&segment->gpus[gpu].peak_bytes, peak_bytes);
	lock_give(member);
	return fits;
}

bool budget_promise(const struct member *member, int gpu, int64_t bytes)
{
	struct segment *segment = member->segment;
	budget_lock(member);
	int64_t had_bytes = segment_get(&segment->processes[member->place].overhead_bytes[gpu]);
	bool fits = bytes <= 0 || budget_fits(segment, (uint32_t)gpu, bytes);
	if (!fits) {
		reap_locked(member);
		fits = budget_fits(segment, (uint32_t)gpu, bytes);
	}
	if (fits)
		set_overhead(segment, member->place, gpu,
		             had_bytes + bytes > 0 ? had_bytes + bytes : 0);
	lock_give(member);
	return fits;
}

void budget_measure(const struct member *member, uint32_t place, int gpu, int64_t bytes)
{
	budget_lock(member);
	if (atomic_load(&member->segment->processes[place].owner) != 0)
		set_overhead(member->segment, place, gpu, bytes);
	lock_give(member);
}
