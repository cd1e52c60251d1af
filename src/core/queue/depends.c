/* depends.c - the jobs that a job depends on */
#include "core/queue/depends.h"

#include "core/queue/job.h"
#include "core/state.h"

/* The id that the walk is at, and its kind; false behind the last. */
static bool dependency_step(const struct job_record *record, struct dependency_walk *walk,
                            int64_t *id, enum dependency *kind)
{
	if (walk->row < record->depends.count) {
		const int64_t *row = record->depends.at + 2 * walk->row++;
		*id = row[0];
		*kind = (enum dependency)row[1];
		return true;
	}
	int64_t place = walk->row - record->depends.count;
	if (place >= record->depends_arrays.count)
		return false;
	const int64_t *row = record->depends_arrays.at + 3 * place;
	*id = row[0] + walk->element++;
	*kind = (enum dependency)row[1];
	if (walk->element >= row[2]) {
		walk->element = 0;
		walk->row++;
	}
	return true;
}

struct job *dependency_next(const struct sched *sched, const struct job_record *record,
                            struct dependency_walk *walk, enum dependency *kind)
{
	int64_t id;

	while (dependency_step(record, walk, &id, kind)) {
		struct job *other = map_get(&sched->jobs, id);
		if (other)
			return other;
	}
	return NULL;
}
