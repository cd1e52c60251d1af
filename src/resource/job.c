/* job.c - the table of jobs */
#include "resource/table.h"

static const struct words notify_words =
    WORDS("started", "completed", "failed", "preempted", "cancelled");
static const struct words standard_input_words = WORDS("none", "first", "all", "terminal");
static const struct words gpu_sharing_words = WORDS("none", "whole", "fraction", "memory");

/* clang-format off */
static const struct resource_field guard_fields[] = {
#define GUARD_ROWS
#include "resource/job_part_table.h"
#undef GUARD_ROWS
};

static const struct resource_field part_fields[] = {
#define ALLOCATED_GPU_ROWS
#include "resource/job_part_table.h"
#undef ALLOCATED_GPU_ROWS
};
static const struct resource part_resource = {
	.name = "allocated_gpu", .help = "A GPU, or a part of one, that a task has",
	FIELDS_OF(part_fields), .reply_message = "AllocatedGpu",
};

static const struct resource_field allocation_fields[] = {
#define ALLOCATION_ROWS
#include "resource/job_part_table.h"
#undef ALLOCATION_ROWS
};
static const struct resource allocation_resource = {
	.name = "allocation", .help = "A task that was placed",
	FIELDS_OF(allocation_fields), .reply_message = "Allocation",
};

static const struct resource_field dependency_fields[] = {
#define DEPENDENCY_ROWS
#include "resource/job_part_table.h"
#undef DEPENDENCY_ROWS
};
static const struct resource dependency_resource = {
	.name = "dependency", .help = "A job that must finish first",
	FIELDS_OF(dependency_fields), .request_message = "Dependency", .reply_message = "Dependency",
};
/* clang-format on */

const struct resource guard_resource = {
	.name = "guard",
	.help = "The hard limit on GPU memory that tasks are under",
	FIELDS_OF(guard_fields),
	.reply_message = "Guard",
};

static const struct resource_field job_fields[] = {
#include "resource/job_table.h"
};
_Static_assert(sizeof(job_fields) / sizeof(job_fields[0]) == JOB_FIELDS_COUNT,
               "the enum numbers the rows");

const struct resource job_resource = {
	.id = RESOURCE_JOB,
	.name = "job",
	.help = "Something to run, and what became of it",
	FIELDS_OF(job_fields),
	.schema = "Job",
	.request_schema = "JobRequest",
	.request_message = "SubmitJobRequest",
	.reply_message = "Job",
};
