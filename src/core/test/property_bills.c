/* property_bills.c - the runs that a core writes, as someone who bills by them */
#include "core/test/property_bills.h"

#include <stdlib.h>

#include "core/sched.h"

static struct bill *bill_of(struct bills *bills, int64_t tenant_id)
{
	struct bill *bill = map_get(&bills->by_tenant, tenant_id);

	if (bill)
		return bill;
	bill = NEW(struct bill);
	bill->tenant_id = tenant_id;
	map_put(&bills->by_tenant, tenant_id, bill);
	return bill;
}

/* A run is written again when its node says what it used. */
static void add_run(struct bills *bills, const struct run_record *run)
{
	if (run->id <= bills->last_run_id)
		return;
	if (run->id != bills->last_run_id + 1 || run->ending == RUN_GOES_ON ||
	    run->began_ms > run->ended_ms || run->started_ms > run->ended_ms)
		panic("run %lld cannot be", (long long)run->id);
	bills->last_run_id = run->id;
	bills->runs++;
	bill_of(bills, run->tenant_id)->gpu_ms += run->share * (run->ended_ms - run->began_ms);
}

void bills_add(struct bills *bills, const struct effects *effects)
{
	for (size_t i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->at[i];
		if (effect->kind != EFFECT_PUT)
			continue;
		const struct tenant_record *tenant = effect->record;
		if (effect->record_kind == RECORD_RUN)
			add_run(bills, effect->record);
		else if (effect->record_kind == RECORD_TENANT && tenant->parent_id)
			bill_of(bills, tenant->parent_id)->is_parent = true;
	}
}

static int64_t property_bills_tenant_of(const struct keeper *keeper,
                                        const struct reservation_record *reservation)
{
	const struct job_record *job = keeper_find(keeper, RECORD_JOB, reservation->job_id, 0);
	const struct model_record *model =
	    keeper_find(keeper, RECORD_MODEL, reservation->model_id, 0);

	return job ? job->tenant_id : model->tenant_id;
}

static int64_t goes_on_gpu_ms(const struct keeper *keeper, int64_t tenant_id, int64_t now_ms)
{
	int64_t gpu_ms = 0;

	for (size_t i = 0; i < keeper_reservation_count(keeper); i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		if (reservation->phase == PHASE_RELEASING ||
		    reservation->phase == PHASE_SUSPENDING ||
		    reservation->phase == PHASE_SUSPENDED ||
		    property_bills_tenant_of(keeper, reservation) != tenant_id)
			continue;
		for (int64_t p = 0; p < reservation->parts.count; p++)
			gpu_ms += reservation->parts.at[p * PART_WIDTH + PART_SHARE] *
			          (now_ms - reservation->counted_ms);
	}
	return gpu_ms;
}

void bills_check(const struct bills *bills, const struct keeper *keeper, const struct sched *sched)
{
	int64_t now_ms = sched_meta(sched)->now_ms;

	for (size_t i = 0; i < keeper_tenant_count(keeper); i++) {
		const struct tenant_record *tenant = keeper_tenant(keeper, i);
		const struct bill *bill = map_get(&bills->by_tenant, tenant->id);
		struct tenant_figures figures;
		if ((bill && bill->is_parent) || !sched_tenant_figures(sched, tenant->id, &figures))
			continue;
		int64_t billed =
		    (bill ? bill->gpu_ms : 0) + goes_on_gpu_ms(keeper, tenant->id, now_ms);
		if (billed != figures.gpu_ms)
			panic("tenant %s has runs of %lld GPU-ms, its meter says %lld",
			      tenant->name, (long long)billed, (long long)figures.gpu_ms);
	}
}

void bills_free(struct bills *bills)
{
	for (size_t i = 0; i < bills->by_tenant.capacity; i++)
		free(bills->by_tenant.entries[i].value);
	map_free(&bills->by_tenant);
}
