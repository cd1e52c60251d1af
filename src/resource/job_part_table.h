/* job_part_table.h - the fields of the parts of a job, in the order in which answers show them. To
 * be included with FIELD and one of the *_ROWS defined: there is no include guard on purpose. */
/* clang-format off */
#ifdef GUARD_ROWS
FIELD(limit_mb, .label = "Limit", .help = "The limit on each GPU; the least where they differ",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .proto = { .reply = 1 })
FIELD(peak_mb, .label = "Peak", .help = "The most that the guard has counted on one GPU",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .proto = { .reply = 2 })
FIELD(refusals, .label = "Refusals", .help = "How often a request for more was refused",
	.kind = VALUE_INTEGER, .proto = { .reply = 3 })
FIELD(last_refused_mb, .label = "Last refused", .help = "The size of the last request that was refused",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .empty = EMPTY_NULL, .proto = { .reply = 4 })
FIELD(unguarded, .label = "Unguarded",
	.help = "True if a process was seen on a GPU without the guard, such as a static program",
	.kind = VALUE_FLAG, .proto = { .reply = 5 })
#endif

#ifdef ALLOCATED_GPU_ROWS
FIELD(uuid, .label = "UUID", .help = "The GPU", .kind = VALUE_TEXT, .empty = EMPTY_NULL,
	.proto = { .reply = 1 })
FIELD(index, .label = "Index", .help = "The GPU's index on its node", .kind = VALUE_INTEGER,
	.empty = EMPTY_OMITTED, .proto = { .reply = 2 })
FIELD(memory_mb, .label = "Memory", .help = "Reserved memory",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .proto = { .reply = 3 })
FIELD(share, .label = "Share", .help = "The share of the GPU, from 0 to 1",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .proto = { .reply = 4 })
FIELD(measured_memory_mb, .label = "Measured memory", .help = "Memory in use",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .proto = { .reply = 5 })
FIELD(whole, .label = "Whole", .help = "True if the GPU is reserved whole",
	.kind = VALUE_FLAG, .proto = { .reply = 6 })
#endif

#ifdef ALLOCATION_ROWS
FIELD(task, .label = "Task", .help = "The task's number in its job",
	.kind = VALUE_INTEGER, STORED(RECORD_TASK, struct task_record, place), .proto = { .reply = 1 })
FIELD(state, .label = "State", .help = "Where the task is in its life",
	.kind = VALUE_WORD, .words = &task_state_words,
	STORED(RECORD_TASK, struct task_record, state), .proto = { .reply = 2 })
FIELD(started_at, .label = "Started", .help = "When the task started",
	.kind = VALUE_TIME, .empty = EMPTY_NULL,
	STORED(RECORD_TASK, struct task_record, started_ms), .proto = { .reply = 3 })
FIELD(ended_at, .label = "Ended", .help = "When the task ended",
	.kind = VALUE_TIME, .empty = EMPTY_NULL,
	STORED(RECORD_TASK, struct task_record, ended_ms), .proto = { .reply = 4 })
FIELD(exit_code, .label = "Exit code", .help = "The exit code of an ended task",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .proto = { .reply = 5 })
FIELD(peak_gpu_memory_mb, .label = "Peak GPU memory",
	.help = "The most memory that it used on one GPU, measured every second and by the guard",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .proto = { .reply = 6 })
FIELD(gpu_seconds, .label = "GPU time", .help = "Time on GPUs over all runs, by the share of each GPU",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_SECONDS, .proto = { .reply = 7 })
FIELD(energy_joules, .label = "Energy", .help = "Energy that the GPUs used, by the share of each GPU",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_JOULES, .proto = { .reply = 8 })
FIELD(peak_memory_mb, .label = "Peak host memory",
	.help = "The most host memory that it used; known when it has ended",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .proto = { .reply = 9 })
FIELD(cpu_seconds, .label = "CPU time", .help = "Processor time; known when it has ended",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_SECONDS, .proto = { .reply = 10 })
FIELD(guard, .label = "Guard", .help = "The hard limit on GPU memory; null where there is none",
	.kind = VALUE_OBJECT, .nested = &guard_resource, .empty = EMPTY_NULL, .proto = { .reply = 11 })
FIELD(node, .label = "Node", .help = "The node that it is on",
	.kind = VALUE_TEXT, .empty = EMPTY_OMITTED, .proto = { .reply = 12 })
FIELD(phase, .label = "Phase", .help = "The state of its reservation",
	.kind = VALUE_WORD, .words = &phase_words, .empty = EMPTY_OMITTED, .proto = { .reply = 13 })
FIELD(gpus, .label = "GPUs", .help = "What it has of each GPU",
	.kind = VALUE_LIST, .nested = &part_resource, .empty = EMPTY_OMITTED, .proto = { .reply = 14 })
#endif

#ifdef DEPENDENCY_ROWS
FIELD(job, .label = "Job", .help = "The job to wait for",
	.kind = VALUE_ID, .empty = EMPTY_OMITTED, .refers = "job", .also = ALSO_NAME,
	.setter = SET_AT_CREATION, .proto = { .request = 1, .reply = 1 },
	.option = { .absent = "part of --after" }, .form = { .section = SECTION_PLACEMENT })
FIELD(job_id, .label = "Job", .help = "Equal to job",
	.kind = VALUE_ID, .refers = "job", .also = ALSO_NAME, .setter = SET_AT_CREATION,
	.hidden = "shown as job", .proto = { .absent = "job sets it" },
	.option = { .absent = "part of --after" }, .form = { .absent = "job sets it" })
FIELD(array, .label = "Array", .help = "A job of the array to wait for, all of it; instead of job",
	.kind = VALUE_ID, .refers = "job", .also = ALSO_NAME, .empty = EMPTY_OMITTED, .since = "0.2",
	.setter = SET_AT_CREATION, .proto = { .request = 3, .reply = 3 },
	.option = { .absent = "part of --after" }, .form = { .section = SECTION_PLACEMENT })
FIELD(condition, .label = "Condition", .help = "Whether it must succeed, or just finish",
	.kind = VALUE_WORD, .words = &dependency_words, .initial = "\"success\"",
	.setter = SET_AT_CREATION, .proto = { .request = 2, .reply = 2 },
	.option = { .absent = "part of --after" }, .form = { .section = SECTION_PLACEMENT })
#endif
