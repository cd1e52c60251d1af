/* job_fields.h - the fields of a job that is being read */
#ifndef API_JOB_JOB_FIELDS_H
#define API_JOB_JOB_FIELDS_H

#include "api/job/job_json.h"
#include "api/job/job_payload.h"
#include "api/text/resource_json.h"

/* A job that is being read. */
struct job_reader {
	struct resource_reader fields;
	const struct job_reading *with;
	struct submit_command *submit;
	struct job_record *job;
	struct job_payload payload;
	int64_t gpu_count, gpu_memory_mib, fraction;
	struct rows uneven;
	bool gang;
	const char *group, *spread, *apart, *together; /* maps as lines; NULL: not given */
};

/* Reads all members of the object at the scan's place. What depends on several of them is
 * left to be concluded. */
bool job_fields_read(struct job_reader *reader);

/* Says what is wrong with a field. Returns false. */
bool job_field_fail(struct job_reader *reader, enum job_field field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
