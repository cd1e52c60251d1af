/* job_table.h - the fields of a job, in the order in which answers show them. To be included with
 * FIELD defined, more than once: there is no include guard on purpose. */
/* clang-format off */
FIELD(id, .label = "ID", .help = "The job's id",
	.kind = VALUE_ID, .refers = "job", .repeatable = true,
	STORED(RECORD_JOB, struct job_record, id), .proto = { .reply = 1 })
FIELD(job_id, .label = "Job ID", .help = "Equal to id",
	.kind = VALUE_ID, .refers = "job", .repeatable = true,
	STORED(RECORD_JOB, struct job_record, id), .proto = { .reply = 2 })
FIELD(tenant_id, .label = "Tenant",
	.help = "The tenant that the job belongs to: its id, number or name (default: the token's)",
	.kind = VALUE_ID, .refers = "tenant", .also = ALSO_NAME, .most = JOB_NAME_BYTES_MAX,
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, tenant_id),
	.proto = { .request = 1, .reply = 3 },
	.option = { .absent = "a global option: --tenant-id" },
	.form = { .section = SECTION_GENERAL })
FIELD(name, .label = "Name",
	.help = "What people know the job by; runtimes are predicted from jobs whose names differ in numbers alone",
	.kind = VALUE_TEXT, .most = JOB_NAME_BYTES_MAX, .plain = true, .initial = "\"job\"",
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, name),
	.proto = { .request = 2, .reply = 4 },
	.option = { .name = "--name", .letter = "-n", .argument = "NAME", .help = "what people know the job by" },
	.form = { .section = SECTION_GENERAL })
FIELD(state, .label = "State", .help = "Where the job is in its life",
	.kind = VALUE_WORD, .words = &job_state_words, .repeatable = true,
	STORED(RECORD_JOB_STATE, struct job_state_record, state), .proto = { .reply = 5 })
FIELD(held, .label = "Held", .help = "True if the job waits to be released",
	.kind = VALUE_FLAG, STORED(RECORD_JOB_STATE, struct job_state_record, held),
	.proto = { .reply = 6 })
FIELD(priority, .label = "Priority",
	.help = "100 to 500 is background, 500 to 1000 normal, 1000 to 2000 high, above that urgent; 0 is the configured default",
	.kind = VALUE_INTEGER, .least = INT32_MIN, .most = INT32_MAX, .initial = "0",
	.setter = SET_ANY_TIME, STORED(RECORD_JOB, struct job_record, priority),
	.proto = { .request = 3, .reply = 7, .type = "int32" },
	.option = { .name = "--priority", .letter = "-p", .argument = "N",
		.help = "a number, or low (100), normal or medium (500), high (1000), urgent (2500), critical (5000)" },
	.form = { .section = SECTION_GENERAL })
FIELD(gpu_sharing, .label = "GPU sharing",
	.help = "What the GPU fields mean: no GPU, gpu_count whole GPUs, gpu_fraction of a GPU, or gpu_memory_mb of a GPU",
	.kind = VALUE_WORD, .words = &gpu_sharing_words, .proto = { .reply = 8 })
FIELD(gpu_count, .label = "GPUs", .help = "Whole GPUs for each task",
	.kind = VALUE_INTEGER, .unit = UNIT_GPUS, .least = 0, .most = TASKS_MAX, .initial = "0",
	.setter = SET_AT_CREATION, .proto = { .request = 4, .reply = 9, .type = "int32" },
	.option = { .name = "--gpus", .letter = "-g", .argument = "N",
		.help = "whole GPUs for each task, or 0.5: a part of one" },
	.form = { .section = SECTION_GPUS })
FIELD(gpu_memory_mb, .label = "GPU memory",
	.help = "With gpu_count, the least memory of each GPU; without it, a part of one GPU of this size, or a list with the part of each GPU",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .also = ALSO_LIST, .least = 0, .most = MIB_MAX,
	.items = PARTS_MAX, .initial = "0", .setter = SET_AT_CREATION,
	.proto = { .request = 5, .reply = 10, .extra = 37, .extra_name = "gpu_memory_mb_each",
		.extra_type = "repeated int64" },
	.option = { .name = "--gpu-memory", .letter = "-m", .argument = "SIZE",
		.help = "memory of each GPU: 20G. Without --gpus, a part of one GPU; 40G,20G: of two" },
	.form = { .section = SECTION_GPUS })
FIELD(gpu_fraction, .label = "GPU fraction", .help = "A part of one GPU",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .least = 0, .most = WHOLE_GPU,
	.empty = EMPTY_NULL, .setter = SET_AT_CREATION, .proto = { .request = 18, .reply = 11 },
	.option = { .absent = "--gpus 0.5 sets it" }, .form = { .section = SECTION_GPUS })
FIELD(gpu_compute, .label = "GPU compute",
	.help = "With a part of one GPU, the share of its compute that each task has; without it, the tasks on a GPU take turns",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .least = 0, .most = WHOLE_GPU,
	.empty = EMPTY_NULL, .since = "0.2", .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, compute), .proto = { .request = 58, .reply = 83 },
	.option = { .name = "--gpu-compute", .argument = "SHARE",
		.help = "with a part of a GPU, its share of the compute: 50%, 0.5" },
	.form = { .section = SECTION_GPUS })
FIELD(gpu_processes, .label = "GPU processes",
	.help = "With gpu_compute, how many processes of each task use its GPU: they divide its share evenly (default: 1)",
	.kind = VALUE_INTEGER, .least = 0, .most = COMPUTE_PROCESSES_MAX, .initial = "0",
	.empty = EMPTY_OMITTED, .since = "0.2", .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, compute_processes),
	.proto = { .request = 59, .reply = 84, .type = "int32" },
	.option = { .name = "--gpu-processes", .argument = "N",
		.help = "with --gpu-compute, how many processes divide the share (default: 1)" },
	.form = { .section = SECTION_GPUS })
FIELD(cpu_cores, .label = "CPU cores", .help = "CPU cores for each task",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_CORES, .least = 0, .most = CPU_MILLI_MAX,
	.initial = "0", .setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, cpu_milli),
	.proto = { .request = 6, .reply = 12, .type = "int32", .extra = 38,
		.extra_name = "cpu_cores_decimal", .extra_type = "double" },
	.option = { .name = "--cpus", .letter = "-c", .argument = "N" },
	.form = { .section = SECTION_TASKS })
FIELD(memory_mb, .label = "Host memory", .help = "Host memory for each task",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .least = 0, .most = HOST_BYTES_MAX / MIB_BYTES,
	.scale = MIB_BYTES, .initial = "0", .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, host_bytes), .proto = { .request = 7, .reply = 13 },
	.option = { .name = "--memory", .argument = "SIZE" },
	.form = { .section = SECTION_TASKS })
FIELD(command, .label = "Command", .help = "The program and its arguments, one text each",
	.kind = VALUE_TEXTS, .items = JOB_WORDS_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 11, .reply = 14 },
	.option = { .absent = "the operands" }, .form = { .section = SECTION_WORK })
FIELD(args, .label = "Arguments", .help = "Arguments that follow the command, or those of the image or script",
	.kind = VALUE_TEXTS, .items = JOB_WORDS_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 12, .reply = 15 },
	.option = { .absent = "the operands after --script" }, .form = { .section = SECTION_WORK })
FIELD(script, .label = "Script", .help = "A shell script to run instead of a command",
	.kind = VALUE_TEXT, .most = JOB_SCRIPT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 8, .reply = 16 },
	.option = { .name = "--script", .argument = "FILE", .help = "a script to run instead of a command; - reads standard input" },
	.form = { .section = SECTION_WORK })
FIELD(image, .label = "Image", .help = "A container image to run in",
	.kind = VALUE_TEXT, .most = JOB_PATH_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 10, .reply = 17 },
	.option = { .name = "--image", .argument = "IMAGE" }, .form = { .section = SECTION_WORK })
FIELD(environment, .label = "Environment", .help = "Environment variables",
	.kind = VALUE_MAP, .items = JOB_VARIABLES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 9, .reply = 18 },
	.option = { .name = "--env", .letter = "-e", .argument = "NAME=VALUE", .repeats = true,
		.help = "a variable; NAME alone takes its value from here" },
	.form = { .section = SECTION_WORK })
FIELD(secret_environment, .label = "Secret environment",
	.help = "Environment variables that are sealed before they are stored and never shown",
	.kind = VALUE_MAP, .items = JOB_VARIABLES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.shown_as = "sealed", .setter = SET_AT_CREATION, .proto = { .request = 33, .reply = 19 },
	.option = { .name = "--secret-env", .argument = "NAME=VALUE", .repeats = true,
		.help = "a variable that is sealed and never shown" },
	.form = { .section = SECTION_WORK })
FIELD(labels, .label = "Labels", .help = "Labels for people, and for ?label= in lists",
	.kind = VALUE_MAP, .items = JOB_LABELS_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 16, .reply = 20 },
	.option = { .name = "--label", .letter = "-l", .argument = "NAME=VALUE", .repeats = true,
		.help = "for people, and for 'list --label'" },
	.form = { .section = SECTION_GENERAL })
FIELD(annotations, .label = "Annotations",
	.help = "Names and texts that the scheduler stores and shows, and does not interpret",
	.kind = VALUE_MAP, .items = JOB_ANNOTATIONS_MAX, .most = JOB_ANNOTATION_BYTES_MAX,
	.empty = EMPTY_OMITTED, .in_payload = true, .since = "0.2",
	.setter = SET_AT_CREATION, .proto = { .request = 40, .reply = 65 },
	.option = { .name = "--annotation", .argument = "NAME=VALUE", .repeats = true,
		.help = "stored and shown with the job, not interpreted" },
	.form = { .section = SECTION_MORE })
FIELD(working_directory, .label = "Working directory",
	.help = "The directory that the task starts in, on its node or in its image: an absolute path",
	.kind = VALUE_TEXT, .most = JOB_PATH_BYTES_MAX, .pattern = "^(/|$)", .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 34, .reply = 21 },
	.option = { .name = "--workdir", .argument = "DIR", .help = "the directory to run in" },
	.form = { .section = SECTION_WORK })
FIELD(submit_directory, .label = "Submitted from",
	.help = "Without working_directory, the task starts there if its user may enter it, and otherwise in its home",
	.kind = VALUE_TEXT, .most = JOB_PATH_BYTES_MAX, .pattern = "^(/|$)", .empty = EMPTY_OMITTED, .in_payload = true,
	.since = "0.2", .setter = SET_AT_CREATION, .proto = { .request = 42, .reply = 67 },
	.option = { .absent = "the directory that gpu-cli is called in" },
	.form = { .absent = "working_directory sets where it starts" })
FIELD(checkpoint_path, .label = "Checkpoint path",
	.help = "The file or directory that changes when the task has saved its work: an absolute path",
	.kind = VALUE_TEXT, .most = JOB_PATH_BYTES_MAX, .pattern = "^(/|$)", .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_AT_CREATION, .proto = { .request = 35, .reply = 22 },
	.option = { .name = "--checkpoint-path", .argument = "DIR", .help = "where it saves its work" },
	.form = { .section = SECTION_MORE })
FIELD(gang_scheduling, .label = "Gang",
	.help = "All tasks start together; without tasks, a gang larger than a node is split over nodes",
	.kind = VALUE_FLAG, .setter = SET_AT_CREATION, .proto = { .request = 13, .reply = 23 },
	.option = { .name = "--gang", .help = "start together; more GPUs than a node has are split over nodes" },
	.form = { .section = SECTION_TASKS })
FIELD(tasks, .label = "Tasks", .help = "Copies of the job, on one node or several",
	.kind = VALUE_INTEGER, .unit = UNIT_TASKS, .least = 1, .most = TASKS_MAX, .initial = "1",
	.empty = EMPTY_OMITTED, .setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, tasks),
	.proto = { .request = 19, .reply = 24, .type = "int32" },
	.option = { .name = "--tasks", .argument = "N" }, .form = { .section = SECTION_TASKS })
FIELD(min_available, .label = "Minimum tasks",
	.help = "Tasks that start together or not at all (default: all of them)",
	.kind = VALUE_INTEGER, .unit = UNIT_TASKS, .least = 1, .most = TASKS_MAX,
	.empty = EMPTY_OMITTED, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, min_available),
	.proto = { .request = 20, .reply = 25, .type = "int32" },
	.option = { .name = "--min-available", .argument = "N" }, .form = { .section = SECTION_TASKS })
FIELD(preemptible, .label = "Preemptible",
	.help = "True if the job may be stopped for others (default: the tenant's allow_preemption)",
	.kind = VALUE_FLAG, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, preemptible), .proto = { .request = 21, .reply = 26 },
	.option = { .name = "--preemptible", .negative = "--no-preemptible",
		.help = "it may be stopped for others (default: as its tenant says)" },
	.form = { .section = SECTION_MORE })
FIELD(max_runtime_minutes, .label = "Max runtime", .help = "The job is ended after this time",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_MINUTES, .least = 0, .most = TIME_MS_MAX / 60,
	.scale = 60, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, max_runtime_ms),
	.proto = { .request = 36, .reply = 27 },
	.option = { .absent = "--max-runtime sets it" },
	.form = { .absent = "max_runtime sets it" })
FIELD(max_runtime, .label = "Max runtime", .help = "The time limit as a duration, such as 1h30m",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .hidden = "shown as max_runtime_minutes",
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, max_runtime_ms),
	.proto = { .request = 14 },
	.option = { .name = "--max-runtime", .argument = "TIME", .help = "end it after this time: 2h, 90m, 1d12h" },
	.form = { .section = SECTION_TIME })
FIELD(estimated_runtime_minutes, .label = "Estimated runtime",
	.help = "How long the owner expects the job to run; counts where GPUs are shared in time, and has no effect when the job runs longer",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_MINUTES, .least = 0, .most = TIME_MS_MAX / 60,
	.scale = 60, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, estimate_ms), .proto = { .request = 22, .reply = 28 },
	.option = { .name = "--estimated-runtime", .argument = "TIME", .help = "how long it should run: 2h, 90m" },
	.form = { .section = SECTION_TIME })
FIELD(deadline, .label = "Deadline", .help = "When the job should be finished",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, deadline_ms), .proto = { .request = 23, .reply = 29 },
	.option = { .name = "--deadline", .argument = "TIME", .help = "when it should be finished: 2030-01-31T12:00:00Z" },
	.form = { .section = SECTION_TIME })
FIELD(begin, .label = "Begin", .help = "The job does not start before",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .since = "0.2", .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, begin_ms), .proto = { .request = 41, .reply = 66 },
	.option = { .name = "--begin", .argument = "TIME",
		.help = "do not start before: 2030-01-31T12:00:00Z, or 2h from now" },
	.form = { .section = SECTION_TIME })
FIELD(window, .label = "Window",
	.help = "The window that the job runs in: it starts there alone, and while it is open",
	.kind = VALUE_TEXT, .most = 64, .plain = true, .empty = EMPTY_OMITTED, .since = "0.2",
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, window),
	.proto = { .request = 61, .reply = 95 },
	.option = { .name = "--window", .argument = "NAME", .help = "run in this window ('gpu-cli reserve' lists them)" },
	.form = { .section = SECTION_TIME })
FIELD(checkpoint_enabled, .label = "Checkpoints",
	.help = "The job saves its work, so it may be moved",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, movable), .proto = { .request = 15, .reply = 30 },
	.option = { .name = "--checkpoint" }, .form = { .section = SECTION_MORE })
FIELD(on_lease_loss, .label = "On lease loss",
	.help = "What happens to the job when its node is lost: keep it, or stop and requeue it",
	.kind = VALUE_WORD, .words = &lease_loss_words, .initial = "\"keep\"",
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, lease_loss),
	.proto = { .request = 24, .reply = 31 },
	.option = { .name = "--on-lease-loss", .argument = "HOW", .help = "when its node is lost: keep (default) or stop" },
	.form = { .section = SECTION_MORE })
FIELD(suspend, .label = "Suspend",
	.help = "Whether its GPU memory may go to host memory for a while: once its program came back "
		"on such a GPU (auto, or else as the setting suspend says), always, or never",
	.kind = VALUE_WORD, .words = &suspend_words, .initial = "\"auto\"",
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, suspend),
	.proto = { .request = 48, .reply = 73 },
	.option = { .name = "--suspend", .argument = "HOW", .help = "its GPU memory may go to host memory: auto, always, never" },
	.form = { .section = SECTION_MORE })
FIELD(standard_input, .label = "Standard input",
	.help = "Which tasks have a standard input, written through the service while they run: none, the first, or all; gpu-cli run passes on its own. terminal: the first has a terminal, which sessions attach to",
	.kind = VALUE_WORD, .words = &standard_input_words, .initial = "\"none\"", .empty = EMPTY_OMITTED,
	.in_payload = true, .since = "0.2", .setter = SET_AT_CREATION,
	.proto = { .request = 49, .reply = 74 },
	.option = { .name = "--stdin", .argument = "TASKS",
		.help = "which tasks have a standard input: first (default of run), all, none; terminal" },
	.form = { .absent = "the form has no input to pass on" })
FIELD(notify, .label = "Notify",
	.help = "Who is told about this job beside its tenant's recipients: mail addresses, and URLs that are posted to, such as Slack's",
	.kind = VALUE_TEXTS, .items = JOB_RECIPIENTS_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.since = "0.2", .setter = SET_AT_CREATION, .proto = { .request = 50, .reply = 75 },
	.option = { .name = "--notify", .argument = "ADDRESS", .repeats = true,
		.help = "tell this mail address or webhook (Slack's format) about the job" },
	.form = { .section = SECTION_MORE })
FIELD(notify_on, .label = "Notify on",
	.help = "What those in notify are told (default: completed, failed and cancelled)",
	.kind = VALUE_WORDS, .words = &notify_words, .items = 16, .empty = EMPTY_OMITTED, .in_payload = true,
	.since = "0.2", .setter = SET_AT_CREATION, .proto = { .request = 51, .reply = 76 },
	.option = { .name = "--notify-on", .argument = "EVENT", .repeats = true,
		.help = "started, completed, failed, preempted or cancelled (default: its end)" },
	.form = { .section = SECTION_MORE })
FIELD(depends_on, .label = "Depends on", .help = "Jobs of the same tenant that must finish first",
	.kind = VALUE_LIST, .nested = &dependency_resource, .also = ALSO_MEMBER,
	.most = JOB_NAME_BYTES_MAX, .items = JOB_DEPENDS_MAX, .setter = SET_AT_CREATION, .proto = { .request = 25, .reply = 32 },
	.option = { .name = "--after", .argument = "JOB", .repeats = true,
		.help = "start when JOB has succeeded; JOB:any: when it has finished; JOB:array: its whole array" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(array, .label = "Array", .help = "One job for each index: 1-100, 0-90:10 or 1,3,7, and 1-100%8 for 8 at a time",
	.kind = VALUE_TEXT, .most = JOB_NAME_BYTES_MAX,
	.pattern = "^[0-9]+(-[0-9]+(:[0-9]+)?)?(,[0-9]+(-[0-9]+(:[0-9]+)?)?)*(%[0-9]+)?$",
	.hidden = "shown as array_id and array_index",
	.setter = SET_AT_CREATION, .proto = { .request = 26 },
	.option = { .name = "--array", .argument = "1-100%8", .help = "one job for each index, 8 at a time; also 1,3,7 and 0-90:10" },
	.form = { .section = SECTION_TASKS })
FIELD(array_id, .label = "Array", .help = "The first job of the array",
	.kind = VALUE_ID, .refers = "job", .empty = EMPTY_OMITTED,
	STORED(RECORD_JOB, struct job_record, array_id), .proto = { .reply = 33 })
FIELD(array_index, .label = "Array index", .help = "The job's index in its array",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED,
	STORED(RECORD_JOB, struct job_record, array_index), .proto = { .reply = 34 })
FIELD(array_limit, .label = "Array limit", .help = "Jobs of the array that may run at a time",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED,
	STORED(RECORD_JOB, struct job_record, array_limit), .proto = { .reply = 35 })
FIELD(gpu_model, .label = "GPU model", .help = "Allowed GPU models, separated by | or in a list",
	.kind = VALUE_TEXT, .also = ALSO_LIST, .most = JOB_NAME_BYTES_MAX, .empty = EMPTY_OMITTED,
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, gpu_models),
	.proto = { .request = 27, .reply = 36 },
	.option = { .name = "--gpu-model", .argument = "MODEL", .help = "allowed models: H100, or several separated by |" },
	.form = { .section = SECTION_GPUS })
FIELD(node_labels, .label = "Node labels", .help = "Labels that the nodes must have",
	.kind = VALUE_MAP, .items = JOB_LABELS_MAX, .most = JOB_LABEL_BYTES_MAX,
	.empty = EMPTY_OMITTED, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, node_labels), .proto = { .request = 30, .reply = 37 },
	.option = { .name = "--node-label", .argument = "NAME=VALUE", .repeats = true,
		.help = "a label that its nodes must have" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(closeness, .label = "Closeness", .help = "How close together the GPUs should be",
	.kind = VALUE_WORD, .words = &closeness_words, .initial = "\"any\"", .empty = EMPTY_OMITTED,
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, closeness),
	.proto = { .request = 28, .reply = 38 },
	.option = { .name = "--close", .argument = "HOW", .help = "how close its GPUs should be: any, nvlink, node, rack" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(closeness_required, .label = "Closeness required",
	.help = "The job waits until its GPUs can be that close",
	.kind = VALUE_FLAG, .initial = "false", .empty = EMPTY_OMITTED, .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, closeness_required),
	.proto = { .request = 29, .reply = 39 },
	.option = { .name = "--close-required", .help = "wait until its GPUs can be that close" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(resources, .label = "Counted resources",
	.help = "Counted resources that each task takes of its node, as name and number",
	.kind = VALUE_MAP, .items = JOB_LABELS_MAX, .most = JOB_LABEL_BYTES_MAX,
	.empty = EMPTY_OMITTED, .since = "0.2", .setter = SET_AT_CREATION,
	STORED(RECORD_JOB, struct job_record, resources), .proto = { .request = 43, .reply = 68 },
	.option = { .name = "--resource", .argument = "NAME=N", .repeats = true,
		.help = "a counted resource that each task takes of its node" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(group, .label = "Group",
	.help = "The group of its tasks, by which spread, apart and together select within a tenant",
	.kind = VALUE_TEXT, .most = JOB_GROUP_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.since = "0.2", .setter = SET_AT_CREATION, .proto = { .request = 44, .reply = 69 },
	.option = { .name = "--group", .argument = "GROUP", .help = "the group that its tasks are in" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(spread, .label = "Spread",
	.help = "Domains over which the tasks of its group are spread, with the largest difference: node, rack, zone or a label of nodes",
	.kind = VALUE_MAP, .items = JOB_RULES_MAX, .most = JOB_LABEL_BYTES_MAX,
	.empty = EMPTY_OMITTED, .in_payload = true, .since = "0.2", .setter = SET_AT_CREATION,
	.proto = { .request = 45, .reply = 70 },
	.option = { .name = "--spread", .argument = "DOMAIN=N", .repeats = true,
		.help = "spread its group over node, rack, zone or a label, N apart at most" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(apart, .label = "Apart",
	.help = "Domains that its tasks do not share with tasks of a group: node, rack, zone or a label of nodes",
	.kind = VALUE_MAP, .items = JOB_RULES_MAX, .most = JOB_LABEL_BYTES_MAX,
	.empty = EMPTY_OMITTED, .in_payload = true, .since = "0.2", .setter = SET_AT_CREATION,
	.proto = { .request = 46, .reply = 71 },
	.option = { .name = "--apart", .argument = "DOMAIN=GROUP", .repeats = true,
		.help = "not in one node, rack, zone or label with tasks of GROUP" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(together, .label = "Together",
	.help = "Domains that its tasks share with tasks of a group: node, rack, zone or a label of nodes",
	.kind = VALUE_MAP, .items = JOB_RULES_MAX, .most = JOB_LABEL_BYTES_MAX,
	.empty = EMPTY_OMITTED, .in_payload = true, .since = "0.2", .setter = SET_AT_CREATION,
	.proto = { .request = 47, .reply = 72 },
	.option = { .name = "--together", .argument = "DOMAIN=GROUP", .repeats = true,
		.help = "in one node, rack, zone or label with tasks of GROUP" },
	.form = { .section = SECTION_PLACEMENT })
FIELD(idempotency_key, .label = "Idempotency key",
	.help = "A second submission with the same key returns the first job; also the header Idempotency-Key",
	.kind = VALUE_TEXT, .most = JOB_NAME_BYTES_MAX, .empty = EMPTY_OMITTED,
	.setter = SET_AT_CREATION, STORED(RECORD_JOB, struct job_record, idempotency_key),
	.proto = { .request = 17, .reply = 40 },
	.option = { .name = "--idempotency-key", .argument = "KEY", .help = "a second submission with KEY returns the first job" },
	.form = { .absent = "for programs that retry" })
FIELD(hold, .label = "Hold", .help = "The job does not start before it is released",
	.kind = VALUE_FLAG, .initial = "false", .hidden = "shown as held", .setter = SET_AT_CREATION,
	.proto = { .request = 31 }, .option = { .name = "--hold" }, .form = { .section = SECTION_TIME })
FIELD(check, .label = "Check", .help = "Refuse with 422 a job that could never run on this cluster",
	.kind = VALUE_FLAG, .hidden = "not stored", .setter = SET_AT_CREATION,
	.proto = { .request = 32 },
	.option = { .name = "--refuse-impossible", .help = "refuse a job that could never run on this cluster" },
	.form = { .section = SECTION_MORE })
FIELD(user, .label = "User",
	.help = "Who submitted the job: the id of the token, or the subject of the JWT",
	.kind = VALUE_TEXT, .most = JOB_NAME_BYTES_MAX, .plain = true, .empty = EMPTY_OMITTED, .since = "0.2",
	.setter = SET_BY_ADMINISTRATOR, STORED(RECORD_JOB, struct job_record, user),
	.proto = { .request = 39, .reply = 64 },
	.option = { .name = "--user", .argument = "NAME",
		.help = "on whose behalf it is submitted (administrators)" },
	.form = { .absent = "set by the service" })
FIELD(submitted_at, .label = "Submitted", .help = "When the job was submitted",
	.kind = VALUE_TIME, .repeatable = true, STORED(RECORD_JOB, struct job_record, submitted_ms),
	.proto = { .reply = 41 })
FIELD(scheduled_at, .label = "Scheduled", .help = "When the job was first placed",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .repeatable = true, .proto = { .reply = 42 })
FIELD(started_at, .label = "Started", .help = "When the job first started",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .repeatable = true, .proto = { .reply = 43 })
FIELD(completed_at, .label = "Completed", .help = "When the job finished",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .repeatable = true,
	STORED(RECORD_JOB_STATE, struct job_state_record, completed_ms), .proto = { .reply = 44 })
FIELD(estimated_duration, .label = "Estimated duration", .help = "How long similar jobs took",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .repeatable = true,
	STORED(RECORD_JOB_STATE, struct job_state_record, expected_ms), .proto = { .reply = 45 })
FIELD(prediction_confidence, .label = "Confidence",
	.help = "How far estimated_duration can be trusted, from 0 to 1",
	.kind = VALUE_DECIMAL, .digits = 3, .repeatable = true,
	STORED(RECORD_JOB_STATE, struct job_state_record, confidence), .proto = { .reply = 46 })
FIELD(preempted_count, .label = "Preempted", .help = "How often the job was preempted",
	.kind = VALUE_INTEGER, .repeatable = true,
	STORED(RECORD_JOB_STATE, struct job_state_record, preempted_count), .proto = { .reply = 47 })
FIELD(exit_code, .label = "Exit code", .help = "The exit code of a finished job",
	.kind = VALUE_INTEGER, .empty = EMPTY_NULL, .repeatable = true, .proto = { .reply = 48 })
FIELD(message, .label = "Message", .help = "Why the job failed",
	.kind = VALUE_TEXT, .repeatable = true,
	STORED(RECORD_JOB_STATE, struct job_state_record, message), .proto = { .reply = 49 })
FIELD(peak_gpu_memory_mb, .label = "Peak GPU memory",
	.help = "The most memory that a task used on one GPU, measured every second and by the guard",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .empty = EMPTY_NULL, .proto = { .reply = 50 })
FIELD(gpu_seconds, .label = "GPU time", .help = "Time on GPUs over all runs, by the share of each GPU",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_SECONDS, .empty = EMPTY_NULL,
	.proto = { .reply = 51 })
FIELD(energy_joules, .label = "Energy", .help = "Energy that the GPUs used, by the share of each GPU",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_JOULES, .empty = EMPTY_NULL,
	.proto = { .reply = 52 })
FIELD(peak_memory_mb, .label = "Peak host memory",
	.help = "The most host memory that a task used; known when the task has ended",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .empty = EMPTY_NULL, .proto = { .reply = 53 })
FIELD(cpu_seconds, .label = "CPU time", .help = "Processor time; known when the task has ended",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_SECONDS, .empty = EMPTY_NULL,
	.proto = { .reply = 54 })
FIELD(guard, .label = "Guard", .help = "The hard limit on GPU memory; null where there is none",
	.kind = VALUE_OBJECT, .nested = &guard_resource, .empty = EMPTY_NULL, .proto = { .reply = 55 })
FIELD(queue_position, .label = "Queue position", .help = "The place in the queue, from 1",
	.kind = VALUE_INTEGER, .empty = EMPTY_NULL, .proto = { .reply = 56 })
FIELD(tenant_queue_position, .label = "Tenant queue position",
	.help = "The place among the tenant's waiting jobs, from 1",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .proto = { .reply = 57 })
FIELD(estimated_wait, .label = "Estimated wait", .help = "Time until the expected start",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .proto = { .reply = 58 })
FIELD(estimated_start, .label = "Estimated start", .help = "The expected start",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .proto = { .reply = 59 })
FIELD(promised_start, .label = "Promised start",
	.help = "The start that was promised when the job waited; nine of ten jobs start by then",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .repeatable = true, .since = "0.2",
	STORED(RECORD_JOB_STATE, struct job_state_record, promised_ms), .proto = { .reply = 90 })
FIELD(deadline_risk, .label = "Deadline risk",
	.help = "The chance that the job misses its deadline, from 0 to 1; null: unknown, or it has none",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_NULL, .repeatable = true, .since = "0.2",
	STORED(RECORD_JOB_STATE, struct job_state_record, deadline_risk), .proto = { .reply = 91 })
FIELD(reason, .label = "Reason", .help = "Why the job waits",
	.kind = VALUE_TEXT, .empty = EMPTY_OMITTED, .proto = { .reply = 60 })
FIELD(node_name, .label = "Node", .help = "The node of the first placed task",
	.kind = VALUE_TEXT, .empty = EMPTY_NULL, .proto = { .reply = 61 })
FIELD(allocated_gpus, .label = "GPUs", .help = "The UUIDs of the job's GPUs",
	.kind = VALUE_TEXTS, .proto = { .reply = 62 })
FIELD(allocations, .label = "Allocations", .help = "The tasks that were placed, with their nodes and GPUs",
	.kind = VALUE_LIST, .nested = &allocation_resource, .proto = { .reply = 63 })
/* clang-format on */
