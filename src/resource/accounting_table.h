/* accounting_table.h - the fields of runs and reports, in the order in which answers show them. To
 * be included with FIELD and one of the *_ROWS defined: there is no include guard on purpose. */
/* clang-format off */
#ifdef RUN_ROWS
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
#endif

#ifdef QUOTA_ROWS
FIELD(tenant_id, .label = "Tenant ID", .help = "The tenant", .kind = VALUE_ID, .refers = "tenant")
FIELD(tenant, .label = "Tenant", .help = "The tenant's name", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(used_gpus, .label = "Used", .help = "GPUs that it and the tenants below it held on average, by decayed time",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS)
FIELD(quota_gpus, .label = "Quota", .help = "GPUs that it is guaranteed; -1 is unlimited, null guarantees nothing",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .empty = EMPTY_NULL)
FIELD(proposed_gpus, .label = "Proposed", .help = "GPUs that it could be guaranteed instead",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS)
FIELD(quota_gpus_least, .label = "Least", .help = "The lower bound of what is proposed", .kind = VALUE_DECIMAL,
	.digits = 3, .unit = UNIT_GPUS)
FIELD(quota_gpus_most, .label = "Most", .help = "The upper bound; null: it has none, and its quota does not follow",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .empty = EMPTY_NULL)
FIELD(follows, .label = "Follows", .help = "True if its quota follows use where scheduler.quota_follow_days is set",
	.kind = VALUE_FLAG)
#endif

#ifdef ACCURACY_ROWS
FIELD(tenant_id, .label = "Tenant ID", .help = "The tenant; left out where jobs of several count", .kind = VALUE_ID,
	.refers = "tenant", .empty = EMPTY_OMITTED)
FIELD(tenant, .label = "Tenant", .help = "The tenant's name", .kind = VALUE_TEXT, .empty = EMPTY_OMITTED)
FIELD(basis, .label = "Basis", .help = "What the jobs were compared by; left out where several count",
	.kind = VALUE_TEXT, .empty = EMPTY_OMITTED)
FIELD(jobs, .label = "Jobs", .help = "Jobs that ended in the period and had been predicted", .kind = VALUE_INTEGER)
FIELD(within_p90, .label = "Within 90%",
	.help = "The part of them that took no longer than predicted for nine of ten; null: no jobs",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_NULL)
FIELD(within_twice, .label = "Within twice",
	.help = "The part of them that took half to twice the predicted median; null: no jobs",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_NULL)
FIELD(median_error, .label = "Median error",
	.help = "Half of them were predicted within this factor; null: no jobs",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_NULL)
FIELD(promised_starts, .label = "Promised starts",
	.help = "Jobs that started in the period after a start had been promised", .kind = VALUE_INTEGER,
	.empty = EMPTY_OMITTED)
FIELD(kept_starts, .label = "Kept", .help = "Those of them that started as promised", .kind = VALUE_INTEGER,
	.empty = EMPTY_OMITTED)
#endif

#ifdef REPORT_ROWS
FIELD(id, .label = "ID", .help = "Of the line: the same whenever the same period of the same tenant is exported",
	.kind = VALUE_TEXT)
FIELD(tenant_id, .label = "Tenant ID", .help = "The tenant", .kind = VALUE_ID, .refers = "tenant")
FIELD(tenant, .label = "Tenant", .help = "The tenant's name", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
#endif
/* What is counted for a tenant alone, and again for a tenant with those below it. */
#if defined REPORT_ROWS || defined USAGE_ROWS
FIELD(jobs, .label = "Jobs", .help = "Jobs that had a run in the period", .kind = VALUE_INTEGER)
FIELD(completed_jobs, .label = "Completed", .help = "Jobs that succeeded in it", .kind = VALUE_INTEGER)
FIELD(failed_jobs, .label = "Failed", .help = "Jobs that failed in it", .kind = VALUE_INTEGER)
FIELD(cancelled_jobs, .label = "Cancelled", .help = "Jobs that were cancelled in it", .kind = VALUE_INTEGER)
FIELD(runs, .label = "Runs", .help = "Runs of tasks and slots in it", .kind = VALUE_INTEGER)
FIELD(gpu_hours, .label = "GPU hours", .help = "Of each run its part in the period, by the share of each GPU",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_HOURS)
FIELD(useful_gpu_hours, .label = "Useful GPU hours", .help = "Neither idle nor lost; current runs count as useful",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_HOURS)
FIELD(idle_gpu_hours, .label = "Idle GPU hours", .help = "Reserved, before the task had started",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_HOURS)
FIELD(lost_gpu_hours, .label = "Lost GPU hours",
	.help = "After the last checkpoint of runs that failed, were stopped, or were lost with their node",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_HOURS)
FIELD(gpu_memory_mb_hours, .label = "GPU memory hours", .help = "Memory on shared GPUs, over time",
	.kind = VALUE_DECIMAL, .unit = UNIT_MIB_HOURS)
FIELD(cpu_core_hours, .label = "CPU hours", .help = "CPU cores over time", .kind = VALUE_DECIMAL, .digits = 3,
	.unit = UNIT_HOURS)
#endif
#ifdef REPORT_ROWS
FIELD(cost_per_gpu_hour, .label = "Price", .help = "The price of a GPU hour now", .kind = VALUE_DECIMAL,
	.digits = 6, .unit = UNIT_CURRENCY)
#endif
#if defined REPORT_ROWS || defined USAGE_ROWS
FIELD(cost, .label = "Cost", .help = "Of each run, at the price of its time", .kind = VALUE_DECIMAL, .digits = 6,
	.unit = UNIT_CURRENCY)
#endif
#if defined REPORT_ROWS || defined USAGE_ROWS
FIELD(requests, .label = "Requests", .help = "Requests to models, through gateways, on days of the period",
	.kind = VALUE_INTEGER)
FIELD(prompt_tokens, .label = "Prompt tokens", .help = "Tokens of their prompts", .kind = VALUE_INTEGER)
FIELD(cached_tokens, .label = "Cached tokens", .help = "Those of them that servers had cached",
	.kind = VALUE_INTEGER)
FIELD(completion_tokens, .label = "Completion tokens", .help = "Tokens of their answers", .kind = VALUE_INTEGER)
FIELD(tokens_cost, .label = "Cost of tokens", .help = "What tokens of others' models cost, beside the cost of runs",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY)
FIELD(tokens_credit, .label = "Credit for tokens", .help = "What others paid for tokens of its models",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY)
#endif
#ifdef REPORT_ROWS
FIELD(including_children, .label = "Including children",
	.help = "These figures summed over the tenant and all tenants below it, each at its own price", .kind = VALUE_OBJECT,
	.nested = &report_children_resource)
#endif
