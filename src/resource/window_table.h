/* window_table.h - the fields of windows, in the order in which answers show them. To be
 * included with FIELD and one of the *_ROWS defined: there is no include guard on purpose. */
/* clang-format off */
#ifdef WINDOW_ROWS
FIELD(name, .label = "Name", .help = "A unique name of letters, digits, '-', '_' and '.'",
	.kind = VALUE_TEXT, .least = 1, .most = 64, .plain = true, .required = true,
	.setter = SET_AT_CREATION, STORED(RECORD_WINDOW, struct window_record, name),
	.option = { .absent = "the argument of 'gpu-cli reserve create'" },
	.proto = { .request = 1, .reply = 1 })
FIELD(reason, .label = "Reason", .help = "What it is for", .kind = VALUE_TEXT, .most = 1024, .plain = true,
	.setter = SET_AT_CREATION, STORED(RECORD_WINDOW, struct window_record, reason),
	.option = { .name = "--reason", .argument = "TEXT" },
	.proto = { .request = 2, .reply = 2 })
FIELD(maintenance, .label = "Maintenance", .help = "Nothing runs there while it is open",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, maintenance),
	.option = { .name = "--maintenance" },
	.proto = { .request = 3, .reply = 3 })
FIELD(tenant_id, .label = "Tenant", .help = "The tenant whose jobs may run there, with the tenants below it; null: any job that names the window",
	.kind = VALUE_ID, .refers = "tenant", .also = ALSO_NAME, .most = TENANT_NAME_BYTES_MAX,
	.empty = EMPTY_NULL, .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, tenant_id),
	.option = { .name = "--for", .argument = "TENANT", .help = "for the jobs of this tenant and of those below it" },
	.proto = { .request = 4, .reply = 4 })
FIELD(start, .label = "Start", .help = "When it opens, for the first time; default: now",
	.kind = VALUE_TIME, .setter = SET_AT_CREATION, STORED(RECORD_WINDOW, struct window_record, start_ms),
	.option = { .name = "--start", .argument = "TIME", .help = "2030-01-31T12:00:00Z, or 2h from now (default: now)" },
	.proto = { .request = 5, .reply = 5 })
FIELD(length, .label = "Length", .help = "How long it stays open", .kind = VALUE_DURATION,
	.unit = UNIT_MILLISECONDS, .required = true, .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, length_ms),
	.option = { .name = "--length", .argument = "TIME", .help = "how long it stays open: 90m, 4h, 2d" },
	.proto = { .request = 6, .reply = 6 })
FIELD(repeat, .label = "Repeat", .help = "Whether it opens again after 24 hours, or after 7 days",
	.kind = VALUE_WORD, .words = &window_repeat_words, .initial = "\"none\"", .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, repeat),
	.option = { .name = "--repeat", .argument = "HOW", .help = "none, daily (every 24 hours) or weekly" },
	.proto = { .request = 7, .reply = 7 })
FIELD(nodes, .label = "Nodes", .help = "Nodes that it is on, with all their GPUs", .kind = VALUE_TEXTS,
	.items = 4096, .most = JOB_NAME_BYTES_MAX, .setter = SET_AT_CREATION,
	.option = { .name = "--node", .argument = "NODE", .repeats = true },
	.proto = { .request = 8, .reply = 8 })
FIELD(gpus, .label = "GPUs", .help = "UUIDs of GPUs that it is on", .kind = VALUE_TEXTS,
	.items = 4096, .most = JOB_NAME_BYTES_MAX, .setter = SET_AT_CREATION,
	.option = { .name = "--gpu", .argument = "UUID", .repeats = true },
	.proto = { .request = 9, .reply = 9 })
FIELD(gpu_count, .label = "Number of GPUs", .help = "That many GPUs, which the scheduler chooses where the fewest are in use",
	.kind = VALUE_INTEGER, .least = 1, .most = 65536, .hidden = "shown as gpus", .setter = SET_AT_CREATION,
	.option = { .name = "--gpus", .argument = "N", .help = "this many GPUs, which the scheduler chooses" },
	.proto = { .request = 10 })
FIELD(gpu_model, .label = "GPU model", .help = "Of gpu_count: GPUs of this model alone", .kind = VALUE_TEXT,
	.most = JOB_NAME_BYTES_MAX, .hidden = "shown as gpus", .setter = SET_AT_CREATION,
	.option = { .name = "--gpu-model", .argument = "MODEL" },
	.proto = { .request = 11 })
FIELD(lead, .label = "Lead", .help = "Jobs without a time limit whose duration is not known do not start there in this time before",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .initial = "\"24h\"", .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, lead_ms),
	.option = { .name = "--lead", .argument = "TIME", .help = "jobs of unknown length do not start there this long before (default: 24h)" },
	.proto = { .request = 12, .reply = 10 })
FIELD(evict, .label = "Evict", .help = "What still runs there when it opens is stopped and queued again",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, evict),
	.option = { .name = "--evict", .help = "stop what still runs there when it opens, and queue it again" },
	.proto = { .request = 13, .reply = 11 })
FIELD(grace, .label = "Grace", .help = "With evict: how long after it opened", .kind = VALUE_DURATION,
	.unit = UNIT_MILLISECONDS, .initial = "\"0s\"", .setter = SET_AT_CREATION,
	STORED(RECORD_WINDOW, struct window_record, grace_ms),
	.option = { .name = "--grace", .argument = "TIME", .help = "with --evict: so long after it opened" },
	.proto = { .request = 14, .reply = 12 })
FIELD(open, .label = "Open", .help = "True while it is open", .kind = VALUE_FLAG,
	.proto = { .reply = 13 })
FIELD(next_start, .label = "Opens", .help = "When the time began that is under way, or else the next one begins",
	.kind = VALUE_TIME, .empty = EMPTY_NULL,
	.proto = { .reply = 14 })
FIELD(next_end, .label = "Closes", .help = "When that time ends", .kind = VALUE_TIME, .empty = EMPTY_NULL,
	.proto = { .reply = 15 })
FIELD(user, .label = "User", .help = "Who made it", .kind = VALUE_TEXT,
	STORED(RECORD_WINDOW, struct window_record, user),
	.proto = { .reply = 16 })
FIELD(created_at, .label = "Created", .help = "When it was made", .kind = VALUE_TIME,
	STORED(RECORD_WINDOW, struct window_record, made_ms),
	.proto = { .reply = 17 })
#endif
