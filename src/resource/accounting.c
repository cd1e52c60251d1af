/* accounting.c - the tables of runs and reports */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field run_fields[] = {
FIELD(task, .label = "Task", .help = "The task's number in its job", .kind = VALUE_INTEGER,
	STORED(RECORD_RUN, struct run_record, task))
FIELD(attempt, .label = "Attempt", .help = "How often the task had been started; null: its node did not start it",
	.kind = VALUE_INTEGER, .empty = EMPTY_NULL)
FIELD(node, .label = "Node", .help = "Its node; null: the node was removed", .kind = VALUE_TEXT,
	.empty = EMPTY_NULL)
FIELD(gpus, .label = "GPUs", .help = "Billed GPUs, by the share of each", .kind = VALUE_DECIMAL, .digits = 3,
	.unit = UNIT_GPUS, STORED(RECORD_RUN, struct run_record, share))
FIELD(began_at, .label = "Began", .help = "Billed from here: its GPUs were granted or promised",
	.kind = VALUE_TIME, STORED(RECORD_RUN, struct run_record, began_ms))
FIELD(started_at, .label = "Started", .help = "When its node started it", .kind = VALUE_TIME,
	.empty = EMPTY_NULL, STORED(RECORD_RUN, struct run_record, started_ms))
FIELD(ended_at, .label = "Ended", .help = "Billed up to here; null: it is running", .kind = VALUE_TIME,
	.empty = EMPTY_NULL, STORED(RECORD_RUN, struct run_record, ended_ms))
FIELD(ending, .label = "Ending", .help = "How it ended; withdrawn: a promise of GPUs was taken back",
	.kind = VALUE_WORD, .words = &run_ending_words, STORED(RECORD_RUN, struct run_record, ending))
FIELD(exit_code, .label = "Exit code", .help = "The exit code", .kind = VALUE_INTEGER, .empty = EMPTY_NULL)
FIELD(peak_gpu_memory_mb, .label = "Peak GPU memory", .help = "The most memory that it used on one GPU",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, STORED(RECORD_RUN, struct run_record, peak_mib))
FIELD(energy_joules, .label = "Energy", .help = "Energy that its GPUs used, by the share of each",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_JOULES,
	STORED(RECORD_RUN, struct run_record, energy_mj))
};
const struct resource run_resource = {
	.id = RESOURCE_RUN, .name = "run", .help = "One time that a task had its GPUs: what is billed",
	FIELDS_OF(run_fields), .schema = "Run", .no_proto = "runs are shown over REST",
};

/* What is counted for a tenant alone, and again for a tenant with those below it. */
#define USAGE_ROWS \
FIELD(jobs, .label = "Jobs", .help = "Jobs that had a run in the period", .kind = VALUE_INTEGER) \
FIELD(completed_jobs, .label = "Completed", .help = "Jobs that succeeded in it", .kind = VALUE_INTEGER) \
FIELD(failed_jobs, .label = "Failed", .help = "Jobs that failed in it", .kind = VALUE_INTEGER) \
FIELD(cancelled_jobs, .label = "Cancelled", .help = "Jobs that were cancelled in it", .kind = VALUE_INTEGER) \
FIELD(runs, .label = "Runs", .help = "Runs of tasks and slots in it", .kind = VALUE_INTEGER) \
FIELD(gpu_hours, .label = "GPU hours", .help = "Of each run its part in the period, by the share of each GPU", \
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_HOURS) \
FIELD(gpu_memory_mb_hours, .label = "GPU memory hours", .help = "Memory on shared GPUs, over time", \
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_MIB_HOURS) \
FIELD(cpu_core_hours, .label = "CPU hours", .help = "CPU cores over time", .kind = VALUE_DECIMAL, .digits = 3, \
	.unit = UNIT_HOURS)
#define COST_ROW \
FIELD(cost, .label = "Cost", .help = "Of each run, at the price of its time", .kind = VALUE_DECIMAL, .digits = 6, \
	.unit = UNIT_CURRENCY)
static const struct resource_field report_children_fields[] = {
USAGE_ROWS
COST_ROW
};
static const struct resource report_children_resource = {
	.name = "usage_including_children", .help = "What a tenant and all tenants below it used in a period",
	FIELDS_OF(report_children_fields),
};

static const struct resource_field report_fields[] = {
FIELD(tenant_id, .label = "Tenant ID", .help = "The tenant", .kind = VALUE_ID, .refers = "tenant")
FIELD(tenant, .label = "Tenant", .help = "The tenant's name", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
USAGE_ROWS
FIELD(cost_per_gpu_hour, .label = "Price", .help = "The price of a GPU hour now", .kind = VALUE_DECIMAL,
	.digits = 6, .unit = UNIT_CURRENCY)
COST_ROW
FIELD(including_children, .label = "Including children",
	.help = "These figures summed over the tenant and all tenants below it, each at its own price", .kind = VALUE_OBJECT,
	.nested = &report_children_resource)
};
const struct resource report_resource = {
	.id = RESOURCE_REPORT, .name = "report", .help = "What a tenant itself used in a period",
	FIELDS_OF(report_fields), .schema = "Usage", .no_proto = "reports are made over REST",
};
/* clang-format on */
