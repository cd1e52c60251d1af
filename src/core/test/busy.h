/* busy.h - a cluster where something of everything happens */
#ifndef CORE_TEST_BUSY_H
#define CORE_TEST_BUSY_H

#include "core/test/harness.h"

static inline struct tenant_record sharing(const char *name, int64_t parent_id, int64_t quota)
{
	struct tenant_record tenant = tenant_named(name);

	tenant.parent_id = parent_id;
	tenant.quota_gpu = quota;
	tenant.cost_per_gpu_hour = 1500000;
	return tenant;
}

/* Jobs of all kinds. */
static inline void submit_all_kinds(struct harness *h, int64_t tenant)
{
	static const int64_t parts[] = { 20000, 10000 };
	struct job_record gang = whole(tenant, 1), split = whole(tenant, 1);
	struct job_record uneven = job_of(tenant, GPU_UNEVEN, 2), array = memory(tenant, 9000);
	struct job_record late = whole(tenant, 4), plain = job_of(tenant, GPU_NONE, 0);
	struct job_record keyed = fraction(tenant, 250);

	gang.tasks = 3;
	gang.min_available = 2;
	gang.movable = true;
	gang.max_runtime_ms = split.max_runtime_ms = uneven.max_runtime_ms = 300000;
	array.max_runtime_ms = keyed.max_runtime_ms = late.max_runtime_ms = 200000;
	int64_t first = submit(h, gang);
	split.split_gpus = 3;
	submit(h, split);
	uneven.uneven = (struct rows){ parts, 2 };
	submit(h, uneven);
	array.array_limit = 2;
	must(h, harness_apply(h, (struct command){
				     .kind = COMMAND_SUBMIT,
				     .submit = { .job = array, .array_from = 1, .array_to = 4 } }));
	late.deadline_ms = h->now_ms + 90000;
	late.priority = 700;
	submit(h, late);
	plain.cpu_milli = 3000;
	plain.host_bytes = INT64_C(1) << 30;
	submit(h, plain);
	keyed.idempotency_key = "once";
	keyed.lease_loss = LEASE_STOP;
	submit(h, keyed);
	const int64_t after[] = { first, AFTER_ANY };
	struct job_record next = whole(tenant, 1);
	next.depends = (struct rows){ after, 1 };
	submit(h, next);
	must(h, apply_to(h, COMMAND_HOLD, h->effects.reply_id - 1));
}

/* Some rounds in which nodes answer, but for one stop in three. */
static inline void live_on(struct harness *h, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		pass(h);
		int count = h->stop_count;
		h->stop_count = 0;
		for (int s = 0; s < count; s++)
			if ((s + i) % 3 != 0 && map_get(&h->sched->reservations, h->stopped[s]))
				must(h,
				     to_task(h, COMMAND_MEMORY_RELEASED, h->stopped[s], 0, false));
		h->now_ms += 17000;
	}
}

/* Ends every n-th job that runs. */
static inline void end_some(struct harness *h, int64_t n)
{
	for (int64_t id = 1; id <= h->sched->meta.last_job_id; id++)
		if (id % n == 0 && job(h, id) && placed(h, id) > 0)
			end_job(h, id, id % 4 == 0);
}

#endif
