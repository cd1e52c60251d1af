/* decision_table.h - the fields of decisions and their parts, in the order in which answers show
 * them. To be included with FIELD and one of the *_ROWS defined: there is no include guard on
 * purpose. */
/* clang-format off */
#ifdef DECISION_GPU_ROWS
FIELD(uuid, .label = "UUID", .help = "The GPU", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(node, .label = "Node", .help = "Its node", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(capacity_mb, .label = "Capacity", .help = "Its memory", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(overhead_mb, .label = "Overhead", .help = "Memory that the driver keeps", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(foreign_mb, .label = "External", .help = "Memory that others use", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(unexplained_mb, .label = "Unexplained", .help = "The part of foreign_mb that no process explains", .kind = VALUE_INTEGER,
	.unit = UNIT_MIB, .empty = EMPTY_OMITTED)
FIELD(used_before_mb, .label = "Used before", .help = "Memory in use before the decision", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(releasing_mb, .label = "Releasing", .help = "Memory of tasks and slots that are stopping", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(claimed_mb, .label = "Claimed", .help = "Memory that was promised to others", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(asked_mb, .label = "Requested", .help = "Memory that was requested", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(used_after_mb, .label = "Used after", .help = "Memory in use after the decision", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
#endif

#ifdef VICTIM_ROWS
FIELD(job_id, .label = "Job", .help = "The job, or 'another tenant'", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(task, .label = "Task", .help = "The task's number in its job", .kind = VALUE_INTEGER)
FIELD(moved, .label = "Moved", .help = "True if it moves to another GPU", .kind = VALUE_FLAG)
FIELD(lost_gpu_seconds, .label = "Lost", .help = "Work that is lost", .kind = VALUE_DECIMAL, .digits = 3,
	.unit = UNIT_SECONDS)
#endif

#ifdef EVICTED_SLOT_ROWS
FIELD(slot_id, .label = "Slot", .help = "The slot", .kind = VALUE_ID, .refers = "slot", .empty = EMPTY_OMITTED)
FIELD(model, .label = "Model", .help = "Its model, or 'another tenant'", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(memory_mb, .label = "Memory", .help = "Memory that it frees, over all its GPUs", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(reload, .label = "Reload", .help = "How long loading it again should take", .kind = VALUE_DURATION,
	.unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL)
FIELD(idle, .label = "Idle", .help = "How long it was idle", .kind = VALUE_DURATION,
	.unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL)
#endif

#ifdef DECISION_ROWS
FIELD(id, .label = "ID", .help = "The decision's number", .kind = VALUE_INTEGER,
	STORED(RECORD_DECISION, struct decision_record, id))
FIELD(type, .label = "Type", .help = "What was decided", .kind = VALUE_WORD, .words = &decision_words,
	STORED(RECORD_DECISION, struct decision_record, kind))
FIELD(time, .label = "Time", .help = "When it was decided", .kind = VALUE_TIME,
	STORED(RECORD_DECISION, struct decision_record, time_ms))
FIELD(job_id, .label = "Job", .help = "The job that it is about", .kind = VALUE_ID, .refers = "job",
	.empty = EMPTY_OMITTED, STORED(RECORD_DECISION, struct decision_record, job_id))
FIELD(name, .label = "Job name", .help = "The name of the job, while it is in memory", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED)
FIELD(array_index, .label = "Index", .help = "The job's index in its array", .kind = VALUE_INTEGER,
	.empty = EMPTY_OMITTED)
FIELD(tenant_id, .label = "Tenant", .help = "The tenant that it is about", .kind = VALUE_ID,
	.refers = "tenant", .empty = EMPTY_NULL, STORED(RECORD_DECISION, struct decision_record, tenant_id))
FIELD(model_id, .label = "Model ID", .help = "The model that it is about", .kind = VALUE_ID,
	.refers = "model", .empty = EMPTY_OMITTED, STORED(RECORD_DECISION, struct decision_record, model_id))
FIELD(model, .label = "Model", .help = "The name of the model; null: it was removed", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED, .nullable = true)
FIELD(slot_id, .label = "Slot", .help = "The slot that it is about", .kind = VALUE_ID, .refers = "slot",
	.empty = EMPTY_OMITTED, .nullable = true)
FIELD(for_job_id, .label = "For job", .help = "The job that it was done for, or 'another tenant'",
	.kind = VALUE_TEXT, .empty = EMPTY_OMITTED, .nullable = true)
FIELD(for_model_id, .label = "For model", .help = "The model that it was done for", .kind = VALUE_ID,
	.refers = "model", .empty = EMPTY_OMITTED)
FIELD(runner_id, .label = "Node", .help = "The node of its first GPU", .kind = VALUE_TEXT,
	.empty = EMPTY_NULL)
FIELD(tasks, .label = "Tasks", .help = "How many tasks it is about", .kind = VALUE_INTEGER,
	.unit = UNIT_TASKS, STORED(RECORD_DECISION, struct decision_record, tasks))
FIELD(candidates, .label = "Candidates", .help = "Nodes that fit the last task", .kind = VALUE_INTEGER,
	STORED(RECORD_DECISION, struct decision_record, candidates))
FIELD(score, .label = "Score", .help = "The score of the last task's node; lower is better",
	.kind = VALUE_INTEGER, STORED(RECORD_DECISION, struct decision_record, score))
FIELD(premium, .label = "Premium",
	.help = "The part of the score for how much jobs that insist on the GPU model value it; 1 doubles the value",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_OMITTED,
	STORED(RECORD_DECISION, struct decision_record, premium_milli))
FIELD(until, .label = "Until", .help = "The promised start, or when a claim expires", .kind = VALUE_TIME,
	.empty = EMPTY_NULL, STORED(RECORD_DECISION, struct decision_record, until_ms))
FIELD(wait_gpu_seconds, .label = "Wait", .help = "GPU time that waiting would cost", .kind = VALUE_DECIMAL,
	.digits = 3, .unit = UNIT_SECONDS, .empty = EMPTY_OMITTED)
FIELD(lost_gpu_seconds, .label = "Lost", .help = "GPU time that preemption would lose", .kind = VALUE_DECIMAL,
	.digits = 3, .unit = UNIT_SECONDS, .empty = EMPTY_OMITTED)
FIELD(gpus, .label = "GPUs", .help = "The arithmetic, GPU by GPU", .kind = VALUE_LIST,
	.nested = &line_resource)
FIELD(victims, .label = "Victims", .help = "Tasks that make room", .kind = VALUE_LIST,
	.nested = &victim_resource, .empty = EMPTY_OMITTED)
FIELD(evicted, .label = "Evicted", .help = "Idle slots that make room", .kind = VALUE_LIST,
	.nested = &evicted_resource, .empty = EMPTY_OMITTED)
FIELD(message, .label = "Message", .help = "What the node said about a failure", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED, STORED(RECORD_DECISION, struct decision_record, message))
FIELD(explanation, .label = "Explanation", .help = "The decision in sentences", .kind = VALUE_TEXTS,
	.empty = EMPTY_OMITTED)
#endif
