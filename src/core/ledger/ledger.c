/* ledger.c - reservations of GPU memory: the one file that changes them */
#include "core/ledger/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "core/cluster/index.h"
#include "core/ledger/plan.h"
#include "core/model/slot.h"
#include "core/queue/demand.h"
#include "core/queue/job.h"
#include "core/tenant/tenant.h"

#define COPY_SLACK_MIB 1024 /* it runs on until the driver has locked it */

static int64_t part_amount(const struct part *part)
{
	return max64(part->mib, part->measured_mib);
}

static bool phase_claims(enum phase phase)
{
	return phase == PHASE_CLAIM || phase == PHASE_WAKING;
}

/* Its GPU memory counts, and will be back. */
static bool phase_returns(enum phase phase)
{
	return phase == PHASE_RELEASING || phase == PHASE_SUSPENDING;
}

/* What is away counts on its GPU with its residue, and at least with what is measured there. One
 * without a residue should have nothing there, and owns nothing of the GPU. */
static void count_part(const struct reservation *reservation, const struct part *part, int sign)
{
	struct gpu_books *books = &part->gpu->books;
	enum phase phase = reservation->phase;
	bool away = reservation->away, late = reservation->late;
	int64_t residue_mib = reservation->residue_mib;
	bool returns = phase_returns(phase) && !late;

	if (phase_claims(phase)) {
		books->claimed_mib += sign * reservation_missing_mib(reservation, part);
		books->claims += sign;
		books->whole_claims += part->whole ? sign : 0;
		compute_sum_add(&books->compute_claimed, part, sign);
	}
	if (away) {
		books->used_mib += sign * reservation_held_mib(reservation, part);
		books->owners += residue_mib > 0 ? sign : 0;
		books->releasing_mib += returns ? sign * residue_mib : 0;
		books->releasing_owners += returns && residue_mib > 0 ? sign : 0;
	}
	if (away || phase_claims(phase))
		return;
	books->used_mib += sign * part_amount(part);
	books->owners += sign;
	books->whole_owners += part->whole ? sign : 0;
	compute_sum_add(&books->compute, part, sign);
	if (returns) {
		bool stays = phase == PHASE_SUSPENDING && residue_mib > 0;
		books->releasing_mib +=
		    sign * (part_amount(part) - (phase == PHASE_SUSPENDING ? residue_mib : 0));
		books->releasing_owners += stays ? 0 : sign;
		books->whole_releasing += part->whole ? sign : 0;
		compute_sum_add(&books->compute_releasing, part, sign);
	}
}

static void count_host(struct host_books *books, int64_t amount, enum phase phase, bool late,
                       int sign)
{
	if (phase == PHASE_CLAIM) {
		books->claimed += sign * amount;
		return;
	}
	books->used += sign * amount;
	if (phase == PHASE_RELEASING && !late)
		books->releasing += sign * amount;
}

/* What a suspended task has given back of its host. */
static enum phase cpu_phase(const struct reservation *reservation)
{
	if (reservation->phase == PHASE_WAKING)
		return PHASE_CLAIM;
	return reservation->phase == PHASE_SUSPENDING ? PHASE_RELEASING : reservation->phase;
}

static void count_cpu(struct host_books *books, const struct reservation *reservation, int sign)
{
	if (!reservation->away || reservation->phase == PHASE_WAKING)
		count_host(books, reservation->cpu_milli, cpu_phase(reservation), reservation->late,
		           sign);
}

static void count_memory(struct host_books *books, const struct reservation *reservation, int sign)
{
	bool late = reservation->late || reservation->phase == PHASE_SUSPENDING;

	count_host(books, reservation->host_bytes + reservation->copy_bytes, reservation->phase,
	           late, sign);
}

static int32_t *ledger_count_of(struct job *job, enum phase phase)
{
	if (phase_is_suspended(phase))
		return &job->counts.suspended;
	switch (phase) {
	case PHASE_CLAIM:
		return &job->counts.claims;
	case PHASE_GRANTED:
		return &job->counts.granted;
	case PHASE_LIVE:
		return &job->counts.live;
	default:
		return &job->counts.releasing;
	}
}

struct amounts reservation_asks(const struct reservation *reservation)
{
	struct amounts amounts = { { 0 } };

	for (int i = 0; i < reservation->part_count; i++) {
		const struct part *part = &reservation->parts[i];
		amounts.of[AMOUNT_GPU] += part->share;
		if (!part->whole)
			amounts.of[AMOUNT_GPU_MEMORY] += part->mib;
	}
	amounts.of[AMOUNT_CPU] = reservation->cpu_milli;
	amounts.of[AMOUNT_HOST] = reservation->host_bytes;
	return amounts;
}

struct amounts reservation_amounts(const struct reservation *reservation)
{
	struct amounts amounts = { { 0 } };

	if (reservation->phase != PHASE_SUSPENDING && reservation->phase != PHASE_SUSPENDED)
		amounts = reservation_asks(reservation);
	amounts.of[AMOUNT_HOST] = reservation->host_bytes + reservation->copy_bytes;
	return amounts;
}

/* Who has a GPU to itself, or serves a model, rarely uses all of it: what was measured, and some
 * more. */
static int64_t part_copy_mib(const struct part *part, bool sparing)
{
	int64_t measured_mib = part->measured_mib;

	if (!sparing || measured_mib == 0)
		return part_amount(part);
	return min64(measured_mib + measured_mib / 8 + COPY_SLACK_MIB, part_amount(part));
}

int64_t reservation_copy_bytes(const struct reservation *reservation)
{
	int64_t mib = 0;

	for (int i = 0; i < reservation->part_count; i++)
		mib += part_copy_mib(&reservation->parts[i],
		                     reservation->slot || reservation->parts[i].whole);
	return min64(mib, HOST_BYTES_MAX >> 20) << 20;
}

struct tenant *reservation_tenant(const struct reservation *reservation)
{
	return reservation->job ? reservation->job->tenant : reservation->slot->model->tenant;
}

bool reservation_preemptible(const struct reservation *reservation)
{
	return reservation->job ? reservation->job->r.preemptible : !reservation->slot->r.fixed;
}

/* Counts it with its job, which itself counts once, with its first reservation
 * that is not releasing: how many jobs that adds. */
static int64_t count_job(struct job *job, enum phase phase, int sign)
{
	int32_t active = job_active(job);

	*ledger_count_of(job, phase) += sign;
	return (active == 0) != (job_active(job) == 0) ? 1 : 0;
}

static void count_demand(const struct reservation *reservation, int sign)
{
	const struct demand *demand = reservation->job->filter->demand;

	for (int i = 0; i < demand->count_count; i++)
		count_host(&node_count_made(reservation->node, demand->counts[i].name)->books,
		           demand->counts[i].amount, reservation->phase, reservation->late, sign);
}

/* Rules may find something else now, and counted resources may be free. */
static void demand_moved(struct ledger *ledger, const struct reservation *reservation, bool came)
{
	if (!reservation->job || !reservation->job->filter->demand)
		return;
	ledger->cluster->rules_version++;
	if (ledger->index->built && !ledger->plan->undoing && (!came || ledger->cluster->has_rules))
		index_freed(ledger->index);
}

/* Adds or takes all that a reservation counts for, in its present phase. */
static void ledger_count(struct ledger *ledger, struct reservation *reservation, int sign)
{
	struct node *node = reservation->node;
	enum phase phase = reservation->phase;
	int64_t jobs = 0;

	for (int i = 0; i < reservation->part_count; i++)
		count_part(reservation, &reservation->parts[i], sign);
	count_cpu(&node->cpu, reservation, sign);
	count_memory(&node->host, reservation, sign);
	if (reservation->job && reservation->job->filter->demand)
		count_demand(reservation, sign);
	if (reservation->job)
		jobs = count_job(reservation->job, phase, sign);
	if (phase == PHASE_RELEASING)
		return;
	struct amounts amounts = reservation_amounts(reservation);
	amounts.of[AMOUNT_JOBS] = jobs;
	tenant_charge(ledger->tenants, reservation_tenant(reservation), &amounts,
	              reservation_preemptible(reservation), sign);
}

static void tell_index(struct ledger *ledger, struct node *node)
{
	if (ledger->index->built && !ledger->plan->undoing)
		index_touch(ledger->index, node, ledger->config);
}

static void tell_index_of(struct ledger *ledger, const struct reservation *reservation)
{
	if (ledger->index->built && !ledger->plan->undoing)
		index_touch_parts(ledger->index, reservation->node, reservation->parts,
		                  reservation->part_count, ledger->config);
}

static void node_list_add(struct node *node, struct reservation *reservation)
{
	if (node->reservation_count == node->reservation_capacity) {
		node->reservation_capacity =
		    node->reservation_capacity ? 2 * node->reservation_capacity : 8;
		node->reservations =
		    memory_resize(node->reservations,
		                  (size_t)node->reservation_capacity * sizeof(*node->reservations));
	}
	int at = node->reservation_count++;
	for (; at > 0 && node->reservations[at - 1]->id > reservation->id; at--)
		node->reservations[at] = node->reservations[at - 1];
	node->reservations[at] = reservation;
}

static void node_list_remove(struct node *node, const struct reservation *reservation)
{
	int at = node->reservation_count - 1;

	while (at >= 0 && node->reservations[at] != reservation)
		at--;
	INVARIANT(at >= 0);
	node->reservation_count--;
	memmove(node->reservations + at, node->reservations + at + 1,
	        (size_t)(node->reservation_count - at) * sizeof(*node->reservations));
}

void ledger_enter(struct ledger *ledger, struct reservation *reservation)
{
	INVARIANT(!reservation->entered);
	reservation->entered = true;
	node_list_add(reservation->node, reservation);
	ledger_count(ledger, reservation, 1);
	tell_index_of(ledger, reservation);
	demand_moved(ledger, reservation, true);
}

void ledger_leave(struct ledger *ledger, struct reservation *reservation)
{
	INVARIANT(reservation->entered);
	ledger_count(ledger, reservation, -1);
	node_list_remove(reservation->node, reservation);
	reservation->entered = false;
	tell_index_of(ledger, reservation);
	demand_moved(ledger, reservation, false);
}

static bool is_running(enum phase phase)
{
	return phase == PHASE_GRANTED || phase == PHASE_LIVE;
}

void ledger_phase(struct ledger *ledger, struct reservation *reservation, enum phase phase,
                  bool late)
{
	bool runs_on = is_running(reservation->phase) && is_running(phase);

	INVARIANT(reservation->entered);
	ledger_count(ledger, reservation, -1);
	reservation->away = phase == PHASE_SUSPENDED || phase == PHASE_WAKING ||
	                    (phase == PHASE_RELEASING && reservation->away);
	reservation->phase = phase;
	reservation->late = late;
	ledger_count(ledger, reservation, 1);
	if (!runs_on)
		demand_moved(ledger, reservation, false);
	if (!runs_on && !reservation->leaving) /* otherwise the node has as much as before */
		tell_index_of(ledger, reservation);
}

void ledger_copy(struct ledger *ledger, struct reservation *reservation, enum phase phase,
                 int64_t copy_bytes)
{
	INVARIANT(copy_bytes >= 0 && reservation->entered);
	ledger_count(ledger, reservation, -1);
	reservation->copy_bytes = copy_bytes;
	ledger_count(ledger, reservation, 1);
	ledger_phase(ledger, reservation, phase, false);
}

void ledger_residue(struct ledger *ledger, struct reservation *reservation, int64_t residue_mib)
{
	INVARIANT(reservation->slot && residue_mib >= 0 && reservation->entered);
	for (int i = 0; i < reservation->part_count; i++)
		INVARIANT(residue_mib <= reservation->parts[i].mib);
	ledger_count(ledger, reservation, -1);
	reservation->residue_mib = residue_mib;
	ledger_count(ledger, reservation, 1);
	tell_index_of(ledger, reservation);
}

void ledger_facts(struct ledger *ledger, struct gpu *gpu, int64_t capacity_mib,
                  int64_t overhead_mib, int64_t foreign_mib)
{
	INVARIANT(foreign_mib >= 0 && overhead_mib >= 0);
	gpu->r.capacity_mib = capacity_mib;
	gpu->r.overhead_mib = overhead_mib;
	gpu->r.foreign_mib = foreign_mib;
	tell_index(ledger, gpu->node);
}

void ledger_measure(struct ledger *ledger, struct reservation *reservation, struct gpu *gpu,
                    int64_t measured_mib)
{
	INVARIANT(measured_mib >= 0);
	for (int i = 0; i < reservation->part_count; i++) {
		struct part *part = &reservation->parts[i];
		if (part->gpu != gpu || part->measured_mib == measured_mib)
			continue;
		count_part(reservation, part, -1);
		part->measured_mib = measured_mib;
		count_part(reservation, part, 1);
		tell_index(ledger, gpu->node);
	}
}

bool ledger_may_share(const struct ledger *ledger, const struct part *part,
                      const struct compute_view *view, struct error *error)
{
	if (!compute_matches(view, part, ledger->config->sharing_mixed))
		return error_set(error, ERROR_NO_ROOM, "GPU %s is shared %s", part->gpu->r.uuid,
		                 part->compute == 0                ? "by shares of its compute"
		                 : view->sum.parts == view->owners ? "by another tenant"
		                                                   : "by turns");
	if (part->compute > 0 && !gpu_gives_compute(part->gpu))
		return error_set(error, ERROR_NO_ROOM, "GPU %s gives no shares of its compute",
		                 part->gpu->r.uuid);
	if (part->compute > compute_left(view))
		return error_set(error, ERROR_NO_ROOM,
		                 "GPU %s: %d thousandths of its compute asked, %d left",
		                 part->gpu->r.uuid, part->compute, compute_left(view));
	return true;
}

/* Nothing is given away of its compute twice, now or once claims are served. */
static bool may_grant_compute(const struct ledger *ledger, const struct part *part, bool own_claim,
                              struct error *error)
{
	if (part->compute == 0 && gpu_takes_turns(part->gpu))
		return true;
	struct compute_view now = compute_now(part->gpu), later = compute_later(part->gpu);

	if (own_claim)
		later = compute_without(later, part);
	return ledger_may_share(ledger, part, &now, error) &&
	       ledger_may_share(ledger, part, &later, error);
}

/* The memory invariant for one part. A claim that is already entered does not block itself. */
static bool may_grant_part(const struct ledger *ledger, const struct reservation *reservation,
                           const struct part *part, bool own_claim, struct error *error)
{
	const struct gpu *gpu = part->gpu;
	const struct gpu_books *books = &gpu->books;
	int32_t own = own_claim ? 1 : 0;
	int64_t asked = reservation_missing_mib(reservation, part);
	int64_t now = gpu_free_now(gpu), later = gpu_free_later(gpu) + (own_claim ? asked : 0);

	if (!gpu_is_open(gpu, ledger->config))
		return error_set(error, ERROR_NO_ROOM, "GPU %s takes nothing new", gpu->r.uuid);
	if (part->whole && (books->owners > 0 || books->claims > own))
		return error_set(error, ERROR_NO_ROOM, "GPU %s is asked for whole and is not empty",
		                 gpu->r.uuid);
	if (part->whole && gpu->r.foreign_mib > ledger->config->foreign_tolerance_mib)
		return error_set(
		    error, ERROR_NO_ROOM,
		    "GPU %s is asked for whole and has %lld MiB of foreign memory on it",
		    gpu->r.uuid, (long long)gpu->r.foreign_mib);
	if (!part->whole && (books->whole_owners > 0 || books->whole_claims > 0))
		return error_set(error, ERROR_NO_ROOM, "GPU %s is given whole to another",
		                 gpu->r.uuid);
	if (asked > now)
		return error_set(error, ERROR_NO_ROOM,
		                 "GPU %s: %lld overhead + %lld foreign + %lld used + %lld asked > "
		                 "%lld MiB capacity",
		                 gpu->r.uuid, (long long)gpu->r.overhead_mib,
		                 (long long)gpu->r.foreign_mib, (long long)books->used_mib,
		                 (long long)asked, (long long)gpu->r.capacity_mib);
	if (asked > later)
		return error_set(error, ERROR_NO_ROOM,
		                 "GPU %s: %lld MiB asked, %lld are not claimed", gpu->r.uuid,
		                 (long long)asked, (long long)max64(later, 0));
	return part->whole || may_grant_compute(ledger, part, own_claim, error);
}

static bool may_grant_host(const struct host_books *books, int64_t total, int64_t amount,
                           bool own_claim, const char *what, struct error *error)
{
	int64_t now = host_free_now(books, total);
	int64_t later = host_free_later(books, total) + (own_claim ? amount : 0);

	if (amount > 0 && amount > min64(now, later))
		return error_set(error, ERROR_NO_ROOM, "%s: %lld asked, %lld free", what,
		                 (long long)amount, (long long)max64(min64(now, later), 0));
	return true;
}

static bool may_grant_counts(const struct reservation *reservation, bool own, struct error *error)
{
	const struct demand *demand = reservation->job->filter->demand;
	static const struct node_count none = { .capacity = 0 };

	for (int i = 0; demand && i < demand->count_count; i++) {
		const struct counted *counted = &demand->counts[i];
		const struct node_count *count = node_count(reservation->node, counted->name);
		if (!count)
			count = &none;
		if (!may_grant_host(&count->books, count_total(count), counted->amount, own,
		                    counted->name, error))
			return false;
	}
	return true;
}

bool ledger_may_grant(const struct ledger *ledger, const struct reservation *reservation,
                      struct error *error)
{
	const struct node *node = reservation->node;
	bool wakes = reservation->phase == PHASE_WAKING; /* it has its host memory already */
	bool own = reservation->entered && phase_claims(reservation->phase);

	INVARIANT(own || !reservation->entered);
	if (!node_is_open(node))
		return error_set(error, ERROR_NO_ROOM, "node %s takes nothing new", node->r.name);
	for (int i = 0; i < reservation->part_count; i++)
		if (!may_grant_part(ledger, reservation, &reservation->parts[i], own, error))
			return false;
	if (reservation->job && !wakes && !may_grant_counts(reservation, own, error))
		return false;
	return may_grant_host(&node->cpu, node_cpu_milli(node), reservation->cpu_milli, own,
	                      "CPU (thousandths)", error) &&
	       may_grant_host(&node->host, node_host_bytes(node),
	                      wakes ? 0 : reservation->host_bytes, own, "host memory (bytes)",
	                      error);
}

/* Host memory of the node that suspended tasks have for what was on GPUs. */
static int64_t copied_bytes(const struct node *node)
{
	int64_t sum = 0;

	for (int i = 0; i < node->reservation_count; i++)
		sum += node->reservations[i]->copy_bytes;
	return sum;
}

bool ledger_may_copy(const struct ledger *ledger, const struct reservation *reservation,
                     struct error *error)
{
	const struct node *node = reservation->node;
	int64_t total = node_host_bytes(node), copy = reservation_copy_bytes(reservation);
	int64_t most = muldiv_down(total, ledger->config->suspend_host, 1000);
	int64_t free_bytes =
	    min64(host_free_now(&node->host, total), host_free_later(&node->host, total));

	if (copy > most - copied_bytes(node))
		return error_set(
		    error, ERROR_NO_ROOM,
		    "suspended tasks may have %lld MiB of host memory on node %s: %lld "
		    "MiB are taken, %lld MiB asked",
		    (long long)(most >> 20), node->r.name, (long long)(copied_bytes(node) >> 20),
		    (long long)(copy >> 20));
	if (copy > free_bytes)
		return error_set(
		    error, ERROR_NO_ROOM, "host memory of node %s: %lld MiB asked, %lld MiB free",
		    node->r.name, (long long)(copy >> 20), (long long)(max64(free_bytes, 0) >> 20));
	return true;
}

/* The recount: every total from the reservations alone. */
static void ledger_check_gpu(const struct gpu *gpu)
{
	struct gpu recount = *gpu;

	memset(&recount.books, 0, sizeof(recount.books));
	for (int i = 0; i < gpu->node->reservation_count; i++) {
		const struct reservation *reservation = gpu->node->reservations[i];
		for (int j = 0; j < reservation->part_count; j++) {
			if (reservation->parts[j].gpu != gpu)
				continue;
			struct part part = reservation->parts[j];
			part.gpu = &recount;
			count_part(reservation, &part, 1);
		}
	}
	INVARIANT(gpu->books.compute.milli <= WHOLE_GPU);
	if (memcmp(&recount.books, &gpu->books, sizeof(recount.books)) != 0)
		panic("the ledger of GPU %s has %lld MiB used, its reservations add up to %lld",
		      gpu->r.uuid, (long long)gpu->books.used_mib,
		      (long long)recount.books.used_mib);
}

static void check_count(const struct node *node, const struct node_count *count)
{
	struct host_books recount = { 0, 0, 0 };

	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		const struct demand *demand =
		    reservation->job ? reservation->job->filter->demand : NULL;
		for (int j = 0; demand && j < demand->count_count; j++)
			if (strcmp(demand->counts[j].name, count->name) == 0)
				count_host(&recount, demand->counts[j].amount, reservation->phase,
				           reservation->late, 1);
	}
	if (memcmp(&recount, &count->books, sizeof(recount)) != 0)
		panic("the ledger of node %s has %lld of resource %s used, its reservations add up "
		      "to %lld",
		      node->r.name, (long long)count->books.used, count->name,
		      (long long)recount.used);
}

static void ledger_check_node(const struct node *node)
{
	struct host_books cpu = { 0, 0, 0 }, host = { 0, 0, 0 };

	for (int i = 0; i < node->reservation_count; i++) {
		const struct reservation *reservation = node->reservations[i];
		INVARIANT(reservation->entered && reservation->node == node);
		INVARIANT(i == 0 || node->reservations[i - 1]->id < reservation->id);
		INVARIANT(reservation->copy_bytes >= 0);
		INVARIANT(reservation->copy_bytes == 0 || phase_is_suspended(reservation->phase) ||
		          reservation->phase == PHASE_RELEASING);
		count_cpu(&cpu, reservation, 1);
		count_memory(&host, reservation, 1);
	}
	for (int i = 0; i < node->count_count; i++)
		check_count(node, &node->counts[i]);
	if (memcmp(&cpu, &node->cpu, sizeof(cpu)) != 0 ||
	    memcmp(&host, &node->host, sizeof(host)) != 0)
		panic("the ledger of node %s differs from its reservations", node->r.name);
	for (int i = 0; i < node->gpu_count; i++)
		ledger_check_gpu(node->gpus[i]);
}

/* Every job's counts and its tenant's part in them; the sums are then compared per tenant. */
static void check_tenants(const struct ledger *ledger)
{
	size_t count = ledger->tenants->count;
	struct amounts *allocated = memory_zero(count ? 2 * count : 1, sizeof(*allocated));
	struct amounts *fixed = allocated + count;
	struct map place = { 0 };

	for (size_t i = 0; i < count; i++)
		map_put(&place, ledger->tenants->all[i]->r.id, (void *)(allocated + i));
	for (size_t i = 0; i < ledger->cluster->node_count; i++) {
		const struct node *node = ledger->cluster->nodes[i];
		for (int j = 0; j < node->reservation_count; j++) {
			const struct reservation *reservation = node->reservations[j];
			if (reservation->phase == PHASE_RELEASING)
				continue;
			struct amounts amounts = reservation_amounts(reservation);
			for (const struct tenant *t = reservation_tenant(reservation); t;
			     t = t->parent) {
				struct amounts *sum = map_get(&place, t->r.id);
				amounts_add(sum, &amounts);
				if (!reservation_preemptible(reservation))
					amounts_add(fixed + (sum - allocated), &amounts);
			}
		}
	}
	for (size_t i = 0; i < count; i++) {
		const struct tenant *tenant = ledger->tenants->all[i];
		for (int k = 0; k < AMOUNT_JOBS; k++)
			if (tenant->allocated.of[k] != allocated[i].of[k] ||
			    tenant->fixed.of[k] != fixed[i].of[k])
				panic("the ledger of tenant %s differs from its reservations (kind "
				      "%d)",
				      tenant->r.name, k);
	}
	map_free(&place);
	free(allocated);
}

void ledger_check(const struct ledger *ledger)
{
	for (size_t i = 0; i < ledger->cluster->node_count; i++)
		ledger_check_node(ledger->cluster->nodes[i]);
	check_tenants(ledger);
}
