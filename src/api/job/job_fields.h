/* job_fields.h - the fields of a job that is being read, one by one */
#ifndef API_JOB_JOB_FIELDS_H
#define API_JOB_JOB_FIELDS_H

#include "api/job/job_json.h"
#include "api/job/job_payload.h"

/* A job that is being read. */
struct job_reader {
	struct json_scan *scan;
	const struct job_reading *with;
	struct error *error;
	struct submit_command *submit;
	struct job_record *job;
	struct job_payload payload;
	const char *name; /* of the field that is being read */
	int64_t gpu_count, gpu_memory_mib, fraction;
	struct rows uneven;
	bool has_tasks, has_gang, gang, has_preemptible;
};

/* Reads all members of the object at the scan's place. What depends on several of them is
 * left to be concluded. */
bool job_fields_read(struct job_reader *reader);

/* Says what is wrong with the field `reader->name`. Returns false. */
bool job_field_fail(struct job_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A copy in the arena with a NUL behind it. */
const char *job_field_own(struct job_reader *reader, struct text value);

#endif
