/* tenant_table.h - the fields of a tenant, in the order in which answers show them. To be included
 * with FIELD defined, more than once: there is no include guard on purpose. */
/* clang-format off */
FIELD(id, .label = "ID", .help = "The tenant's id",
	.kind = VALUE_ID, .refers = "tenant", .repeatable = true,
	STORED(RECORD_TENANT, struct tenant_record, id), .proto = { .reply = 1 })
FIELD(name, .label = "Name", .help = "A unique name that does not look like an id",
	.kind = VALUE_TEXT, .least = 1, .most = TENANT_NAME_BYTES_MAX, .plain = true, .required = true,
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, name),
	.proto = { .request = 7, .reply = 2 },
	.option = { .name = "--name", .letter = "-n", .argument = "NAME" }, .form = { .section = SECTION_GENERAL })
FIELD(parent_id, .label = "Parent", .help = "The tenant above it: an id, number or name",
	.kind = VALUE_ID, .refers = "tenant", .also = ALSO_NAME, .most = TENANT_NAME_BYTES_MAX,
	.empty = EMPTY_NULL, .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, parent_id), .proto = { .request = 8, .reply = 3 },
	.option = { .name = "--parent", .argument = "TENANT", .help = "the tenant above it" },
	.form = { .section = SECTION_GENERAL })
FIELD(email, .label = "Email", .help = "The address of whoever is responsible",
	.kind = VALUE_TEXT, .most = TENANT_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .proto = { .request = 9, .reply = 4 },
	.option = { .name = "--email", .argument = "ADDRESS" }, .form = { .section = SECTION_GENERAL })
FIELD(organization, .label = "Organization", .help = "The organization that it belongs to",
	.kind = VALUE_TEXT, .most = TENANT_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .proto = { .request = 10, .reply = 5 },
	.option = { .name = "--organization", .argument = "NAME" }, .form = { .section = SECTION_GENERAL })
FIELD(unix_user, .label = "Unix user", .help = "The Unix user that its tasks run as",
	.kind = VALUE_TEXT, .most = TENANT_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .proto = { .request = 11, .reply = 6 },
	.option = { .name = "--unix-user", .argument = "USER" }, .form = { .section = SECTION_GENERAL })
FIELD(notify_email, .label = "Notify by email", .help = "Where mail about its jobs goes: an address, or true for email",
	.kind = VALUE_TEXT, .also = ALSO_FLAG, .most = TENANT_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED,
	.in_payload = true, .setter = SET_ANY_TIME, .proto = { .request = 12, .reply = 7 },
	.option = { .name = "--notify-email", .argument = "ADDRESS" }, .form = { .section = SECTION_NOTIFY })
FIELD(notify_webhook, .label = "Webhook", .help = "A URL that is called about its jobs",
	.kind = VALUE_TEXT, .most = TENANT_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .proto = { .request = 13, .reply = 8 },
	.option = { .name = "--notify-webhook", .argument = "URL" }, .form = { .section = SECTION_NOTIFY })
FIELD(notify_secret, .label = "Webhook secret", .help = "Signs calls of the webhook",
	.kind = VALUE_TEXT, .most = TENANT_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.shown_as = "set", .setter = SET_ANY_TIME, .proto = { .request = 14, .reply = 9 },
	.option = { .absent = "a secret on a command line" }, .form = { .section = SECTION_NOTIFY })
FIELD(notify_on, .label = "Notify on", .help = "What is told about its jobs",
	.kind = VALUE_WORDS, .words = &notify_words, .items = 16, .empty = EMPTY_OMITTED,
	.in_payload = true, .setter = SET_ANY_TIME, .proto = { .request = 15, .reply = 10 },
	.option = { .name = "--notify-on", .argument = "EVENT", .repeats = true }, .form = { .section = SECTION_NOTIFY })
FIELD(max_gpus, .label = "Max GPUs", .help = "GPUs that it may hold at a time; null is no limit",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .most = TENANT_COUNT_MAX,
	.none = UNLIMITED, .empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, limit_gpu),
	.proto = { .request = 2, .reply = 11, .type = "int32" },
	.option = { .name = "--max-gpus", .argument = "N", .help = "GPUs it may hold at most" }, .form = { .section = SECTION_LIMITS })
FIELD(max_gpu_memory_mb, .label = "Max GPU memory",
	.help = "Memory that it may hold on shared GPUs; whole GPUs count in max_gpus alone",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .most = MIB_MAX, .none = UNLIMITED,
	.empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, limit_gpu_memory),
	.proto = { .request = 3, .reply = 12 },
	.option = { .name = "--max-gpu-memory", .argument = "SIZE", .help = "memory on shared GPUs at most" }, .form = { .section = SECTION_LIMITS })
FIELD(max_cpu_cores, .label = "Max CPU cores", .help = "CPU cores that it may hold at a time",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_CORES, .most = TENANT_COUNT_MAX,
	.none = UNLIMITED, .empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, limit_cpu),
	.proto = { .request = 4, .reply = 13, .type = "int32" },
	.option = { .name = "--max-cpus", .argument = "N", .help = "CPU cores at most" }, .form = { .section = SECTION_LIMITS })
FIELD(max_memory_mb, .label = "Max host memory", .help = "Host memory that it may hold at a time",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .most = HOST_BYTES_MAX / MIB_BYTES, .scale = MIB_BYTES,
	.none = UNLIMITED, .empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, limit_host), .proto = { .request = 5, .reply = 14 },
	.option = { .name = "--max-memory", .argument = "SIZE", .help = "host memory at most" }, .form = { .section = SECTION_LIMITS })
FIELD(max_concurrent_jobs, .label = "Max jobs", .help = "Jobs that may hold resources at a time",
	.kind = VALUE_INTEGER, .most = TENANT_COUNT_MAX, .none = UNLIMITED, .empty = EMPTY_NULL,
	.initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, limit_jobs),
	.proto = { .request = 6, .reply = 15, .type = "int32" },
	.option = { .name = "--max-jobs", .argument = "N", .help = "jobs at a time at most" }, .form = { .section = SECTION_LIMITS })
FIELD(max_queued_jobs, .label = "Max queued jobs", .help = "Jobs that may wait",
	.kind = VALUE_INTEGER, .most = TENANT_COUNT_MAX, .none = UNLIMITED, .empty = EMPTY_NULL,
	.initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, queue_max), .proto = { .request = 16, .reply = 16 },
	.option = { .name = "--max-queued", .argument = "N", .help = "waiting jobs at most" }, .form = { .section = SECTION_LIMITS })
FIELD(quota_gpus, .label = "Quota GPUs",
	.help = "GPUs that it is guaranteed; -1 is unlimited, null guarantees nothing",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .also = ALSO_UNLIMITED,
	.most = TENANT_COUNT_MAX, .none = QUOTA_UNSET, .empty = EMPTY_NULL, .initial = "null",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, quota_gpu),
	.proto = { .request = 17, .reply = 17 },
	.option = { .name = "--gpus", .letter = "-g", .argument = "N", .help = "guaranteed GPUs; -1: unlimited" }, .form = { .section = SECTION_LIMITS })
FIELD(quota_gpus_least, .label = "Quota GPUs, least",
	.help = "GPUs that it is guaranteed at the least where the quota follows use",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .most = TENANT_COUNT_MAX, .initial = "0",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, quota_gpu_least), .since = "0.2",
	.proto = { .request = 40, .reply = 50 },
	.option = { .name = "--gpus-least", .argument = "N", .help = "guaranteed GPUs at the least, where they follow use" }, .form = { .section = SECTION_LIMITS })
FIELD(quota_gpus_most, .label = "Quota GPUs, most",
	.help = "GPUs that it is guaranteed at most where the quota follows use (scheduler.quota_follow_days); null: it does not",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .most = TENANT_COUNT_MAX,
	.none = 0, .empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME, .since = "0.2",
	STORED(RECORD_TENANT, struct tenant_record, quota_gpu_most), .proto = { .request = 41, .reply = 51 },
	.option = { .name = "--gpus-most", .argument = "N", .help = "guaranteed GPUs at most, where they follow use" }, .form = { .section = SECTION_LIMITS })
FIELD(quota_cpu_cores, .label = "Quota CPU cores", .help = "CPU cores that it is guaranteed",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_CORES, .also = ALSO_UNLIMITED,
	.most = TENANT_COUNT_MAX, .none = QUOTA_UNSET, .empty = EMPTY_NULL, .initial = "null",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, quota_cpu),
	.proto = { .request = 18, .reply = 18 },
	.option = { .name = "--cpus", .argument = "N", .help = "guaranteed CPU cores" }, .form = { .section = SECTION_LIMITS })
FIELD(quota_memory_mb, .label = "Quota host memory", .help = "Host memory that it is guaranteed",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .also = ALSO_UNLIMITED,
	.most = HOST_BYTES_MAX / MIB_BYTES, .scale = MIB_BYTES, .none = QUOTA_UNSET,
	.empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, quota_host),
	.proto = { .request = 19, .reply = 19 },
	.option = { .name = "--memory", .argument = "SIZE", .help = "guaranteed host memory" }, .form = { .section = SECTION_LIMITS })
FIELD(priority_tier, .label = "Tier", .help = "Its priority in a word: low is 100, medium 500, high 1000, critical 5000",
	.kind = VALUE_WORD, .words = &tier_words, .empty = EMPTY_NULL, .initial = "\"medium\"",
	.setter = SET_ANY_TIME, .proto = { .request = 20, .reply = 20 },
	.option = { .name = "--tier", .argument = "TIER", .help = "low, medium, high or critical" }, .form = { .section = SECTION_GENERAL })
FIELD(priority, .label = "Priority", .help = "Its priority among its siblings",
	.kind = VALUE_INTEGER, .most = TENANT_PRIORITY_MAX, .initial = "500", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, priority), .proto = { .request = 21, .reply = 21 },
	.option = { .name = "--priority", .argument = "N", .help = "its priority as a number" }, .form = { .section = SECTION_GENERAL })
FIELD(fair_share_weight, .label = "Weight", .help = "Its part of what nobody is guaranteed",
	.kind = VALUE_DECIMAL, .digits = 3, .most = TENANT_WEIGHT_MAX, .initial = "1",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, weight),
	.proto = { .request = 22, .reply = 22 },
	.option = { .name = "--weight", .argument = "N" }, .form = { .section = SECTION_LIMITS })
FIELD(allow_preemption, .label = "Allow preemption", .help = "Whether its jobs may be preempted, where they do not say",
	.kind = VALUE_FLAG, .initial = "true", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, allow_preemption),
	.proto = { .request = 23, .reply = 23 },
	.option = { .name = "--preemptible", .argument = "yes|no", .help = "whether its jobs may be preempted by default" }, .form = { .section = SECTION_LIMITS })
FIELD(can_preempt_others, .label = "Preempts others", .help = "Whether others may be preempted for its jobs",
	.kind = VALUE_FLAG, .initial = "true", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, can_preempt_others),
	.proto = { .request = 24, .reply = 24 },
	.option = { .name = "--may-preempt", .argument = "yes|no", .help = "whether others may be preempted for it" }, .form = { .section = SECTION_LIMITS })
FIELD(max_preemptions, .label = "Max preemptions", .help = "Preemptions of one job, which is protected after that",
	.kind = VALUE_INTEGER, .most = TENANT_COUNT_MAX, .none = UNLIMITED, .empty = EMPTY_NULL,
	.initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, max_preemptions),
	.proto = { .request = 25, .reply = 25 },
	.option = { .name = "--max-preemptions", .argument = "N" }, .form = { .section = SECTION_LIMITS })
FIELD(cost_per_gpu_hour, .label = "Cost per GPU hour", .help = "The price of a GPU for an hour",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .most = TENANT_MONEY_MAX,
	.initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, cost_per_gpu_hour),
	.proto = { .request = 26, .reply = 26 },
	.option = { .name = "--cost", .argument = "PRICE" }, .form = { .section = SECTION_LIMITS })
FIELD(budget_per_month, .label = "Budget per month",
	.help = "Once it is spent, no job that requests GPUs starts and no model answers until the next month",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .most = TENANT_MONEY_MAX,
	.none = UNLIMITED, .empty = EMPTY_NULL, .initial = "null", .setter = SET_ANY_TIME,
	STORED(RECORD_TENANT, struct tenant_record, budget_per_month),
	.proto = { .request = 27, .reply = 27 },
	.option = { .name = "--budget", .argument = "SUM", .help = "the budget of a month" }, .form = { .section = SECTION_LIMITS })
FIELD(requests_per_minute, .label = "Requests a minute",
	.help = "Requests to models that it and all below it may make in a minute; null is no limit",
	.kind = VALUE_INTEGER, .most = TENANT_COUNT_MAX, .none = 0, .empty = EMPTY_NULL, .initial = "null",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, requests_per_minute),
	.proto = { .request = 28, .reply = 42 },
	.option = { .name = "--requests-per-minute", .argument = "N", .help = "requests to models in a minute at most" }, .form = { .section = SECTION_LIMITS })
FIELD(tokens_per_minute, .label = "Tokens a minute",
	.help = "Tokens of models that it and all below it may use in a minute; null is no limit",
	.kind = VALUE_INTEGER, .most = TENANT_COUNT_MAX, .none = 0, .empty = EMPTY_NULL, .initial = "null",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, tokens_per_minute),
	.proto = { .request = 29, .reply = 43 },
	.option = { .name = "--tokens-per-minute", .argument = "N", .help = "tokens of models in a minute at most" }, .form = { .section = SECTION_LIMITS })
FIELD(max_streams, .label = "Max streams",
	.help = "Streams of models that it and all below it may have open at a time; null is no limit",
	.kind = VALUE_INTEGER, .most = TENANT_COUNT_MAX, .none = 0, .empty = EMPTY_NULL, .initial = "null",
	.setter = SET_ANY_TIME, STORED(RECORD_TENANT, struct tenant_record, max_streams),
	.proto = { .request = 30, .reply = 44 },
	.option = { .name = "--max-streams", .argument = "N", .help = "streams of models at a time at most" }, .form = { .section = SECTION_LIMITS })
FIELD(current_gpus, .label = "GPUs in use", .help = "GPUs that it holds now",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .repeatable = true, .proto = { .reply = 28 })
FIELD(current_gpu_memory, .label = "GPU memory in use", .help = "Memory that it holds on shared GPUs",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .repeatable = true, .proto = { .reply = 29 })
FIELD(current_cpu_cores, .label = "CPU cores in use", .help = "CPU cores that it holds",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_CORES, .repeatable = true, .proto = { .reply = 30 })
FIELD(current_memory, .label = "Host memory in use", .help = "Host memory that it holds",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .repeatable = true, .proto = { .reply = 31 })
FIELD(current_jobs, .label = "Jobs", .help = "Jobs that hold resources",
	.kind = VALUE_INTEGER, .repeatable = true, .proto = { .reply = 32 })
FIELD(waiting_jobs, .label = "Waiting jobs", .help = "Jobs in its queue",
	.kind = VALUE_INTEGER, .repeatable = true, .proto = { .reply = 33 })
FIELD(fair_share_gpus, .label = "Fair share", .help = "GPUs that would be fair now",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .repeatable = true, .proto = { .reply = 34 })
FIELD(total_gpu_hours, .label = "GPU hours", .help = "GPU hours used so far",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_HOURS, .repeatable = true, .proto = { .reply = 35 })
FIELD(total_jobs, .label = "Jobs in all", .help = "Jobs submitted so far",
	.kind = VALUE_INTEGER, .repeatable = true, .proto = { .reply = 36 })
FIELD(successful_jobs, .label = "Completed jobs", .help = "Jobs that succeeded",
	.kind = VALUE_INTEGER, .repeatable = true,
	STORED(RECORD_TENANT, struct tenant_record, jobs_completed), .proto = { .reply = 37 })
FIELD(failed_jobs, .label = "Failed jobs", .help = "Jobs that failed",
	.kind = VALUE_INTEGER, .repeatable = true,
	STORED(RECORD_TENANT, struct tenant_record, jobs_failed), .proto = { .reply = 38 })
FIELD(cancelled_jobs, .label = "Cancelled jobs", .help = "Jobs that were cancelled",
	.kind = VALUE_INTEGER, .repeatable = true,
	STORED(RECORD_TENANT, struct tenant_record, jobs_cancelled), .proto = { .reply = 39 })
FIELD(total_cost, .label = "Cost", .help = "The cost so far",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .repeatable = true, .proto = { .reply = 40 })
FIELD(month_cost, .label = "Cost this month", .help = "The cost of this month",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .repeatable = true, .proto = { .reply = 41 })
FIELD(tokens_cost, .label = "Cost of tokens", .help = "The part of the cost that was for tokens of others' models",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .repeatable = true,
	STORED(RECORD_TENANT, struct tenant_record, token_cost), .proto = { .reply = 45 })
FIELD(tokens_credit, .label = "Credit for tokens", .help = "What others were charged for tokens of its models",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .repeatable = true,
	STORED(RECORD_TENANT, struct tenant_record, token_credit), .proto = { .reply = 46 })
/* clang-format on */
