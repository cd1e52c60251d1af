/* place_why.c - what a fit is refused on */
#include <string.h>

#include "core/place/place.h"
#include "core/place/placement.h"

const char *check_name(enum check check)
{
	static const char *const names[CHECK_REASONS] = {
		[CHECK_NODE] = "the node is offline, draining or has not reported yet",
		[CHECK_LABELS] = "the node lacks a requested label",
		[CHECK_MODEL] = "not the requested GPU model",
		[CHECK_HEALTH] = "unhealthy, gone or split into MIG instances",
		[CHECK_HOT] = "too hot",
		[CHECK_OVER] = "over capacity",
		[CHECK_OCCUPIED] = "in use",
		[CHECK_WHOLE] = "given whole to another",
		[CHECK_MEMORY] = "too little memory",
		[CHECK_SIZE] = "too small, even if it were empty",
		[CHECK_CLAIM] = "free, but claimed",
		[CHECK_PROMISE] = "free, but promised to another",
		[CHECK_WINDOW] = "kept by a window",
		[CHECK_CPU] = "too little CPU on the node",
		[CHECK_HOST] = "too little host memory on the node",
		[CHECK_COUNT] = "it fits, but too few such GPUs are on the node",
		[CHECK_CLASS] = "the node is not among those allowed for it",
		[CHECK_COUNTED] = "too little of a counted resource on the node",
		[CHECK_PORT] = "a port that it needs is taken on the node",
		[CHECK_APART] = "work that it must be apart from is in the same domain",
		[CHECK_KEPT_OFF] = "work in the same domain must be apart from it",
		[CHECK_TOGETHER] = "no work that it must be together with is in the same domain",
		[CHECK_SPREAD] = "too many like it are in the same domain already",
		[CHECK_NO_SHARES] = "its node gives no shares of compute",
		[CHECK_SHARING] = "shared with work that it may not share compute with",
		[CHECK_COMPUTE] = "too little compute left",
	};

	return check >= 0 && check < CHECK_REASONS ? names[check] : "fits";
}

/* A row for each check, by its number, while counting. */
static void place_why_refuse(int64_t rows[][REFUSAL_WIDTH], enum check check, int64_t count,
                             int64_t short_by, int64_t id)
{
	int64_t *row = rows[check];

	if (row[REFUSAL_COUNT] == 0 || short_by < row[REFUSAL_SHORT]) {
		row[REFUSAL_SHORT] = short_by;
		row[REFUSAL_NEAREST] = id;
	}
	row[REFUSAL_COUNT] += count;
}

static void refuse_gpus(const struct placement *placement, const struct search *search,
                        const struct node *node, int64_t rows[][REFUSAL_WIDTH])
{
	enum check checks[GPUS_PER_NODE_MAX];
	int needed = search->shape->split_gpus > 0 ? 1 : search->shape->request.gpu_count;
	int fit = 0;
	int64_t short_by;

	for (int i = 0; i < node->gpu_count; i++) {
		checks[i] = place_check_gpu(placement, search, node->gpus[i], &short_by);
		if (checks[i] == CHECK_OK)
			fit++;
		else
			place_why_refuse(rows, checks[i], 1, short_by, node->gpus[i]->r.id);
	}
	for (int i = 0; i < node->gpu_count && fit < needed; i++)
		if (checks[i] == CHECK_OK)
			place_why_refuse(rows, CHECK_COUNT, 1, needed - fit, node->gpus[i]->r.id);
}

static bool place_why_goes_before(const int64_t *a, const int64_t *b)
{
	return a[REFUSAL_COUNT] != b[REFUSAL_COUNT] ? a[REFUSAL_COUNT] > b[REFUSAL_COUNT]
	                                            : a[REFUSAL_CHECK] < b[REFUSAL_CHECK];
}

/* Moves the rows that count anything to the front, most first. */
static int sort_rows(int64_t rows[][REFUSAL_WIDTH])
{
	int count = 0;

	for (int i = 0; i < CHECK_REASONS; i++) {
		int64_t row[REFUSAL_WIDTH];
		int at = count;
		memcpy(row, rows[i], sizeof(row));
		if (row[REFUSAL_COUNT] == 0)
			continue;
		for (; at > 0 && place_why_goes_before(row, rows[at - 1]); at--)
			memcpy(rows[at], rows[at - 1], sizeof(row));
		memcpy(rows[at], row, sizeof(row));
		count++;
	}
	return count;
}

int place_refusals(struct placement *placement, const struct search *search,
                   int64_t rows[][REFUSAL_WIDTH])
{
	bool gpus = search->shape->request.gpu_count > 0;
	int64_t short_by;

	INVARIANT(search->shape != NULL && !placement->ledger->plan->open);
	INVARIANT(placement->index->built);
	filter_refresh(search->shape->filter, placement->cluster, placement->cluster->version);
	memset(rows, 0, CHECK_REASONS * sizeof(rows[0]));
	for (int i = 0; i < CHECK_REASONS; i++)
		rows[i][REFUSAL_CHECK] = i;
	for (size_t i = 0; i < placement->cluster->node_count; i++) {
		const struct node *node = placement->cluster->by_rank[i];
		enum check check = place_check_node(placement, search, node, &short_by);
		if (check != CHECK_OK)
			place_why_refuse(rows, check,
			                 gpus && node->gpu_count > 0 ? node->gpu_count : 1,
			                 short_by, node->r.id);
		else if (gpus)
			refuse_gpus(placement, search, node, rows);
	}
	return sort_rows(rows);
}
