/* model_table.h - the fields of a model, in the order in which answers show them. To be included
 * with FIELD defined, more than once: there is no include guard on purpose. */
/* clang-format off */
FIELD(id, .label = "ID", .help = "The model's id",
	.kind = VALUE_ID, .refers = "model", .repeatable = true,
	STORED(RECORD_MODEL, struct model_record, id))
FIELD(name, .label = "Name", .help = "A name that is unique in its tenant and does not look like an id",
	.kind = VALUE_TEXT, .least = 1, .most = MODEL_TEXT_BYTES_MAX, .plain = true, .required = true,
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, name),
	.option = { .absent = "the operand" })
FIELD(tenant_id, .label = "Tenant", .help = "The tenant that pays for its slots",
	.kind = VALUE_ID, .refers = "tenant", .also = ALSO_NAME, .empty = EMPTY_OMITTED,
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, tenant_id), .owner_only = true,
	.option = { .absent = "a global option: --tenant-id" })
FIELD(runtime, .label = "Runtime", .help = "What serves it",
	.kind = VALUE_WORD, .words = &runtime_words, .initial = "\"vllm\"", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, runtime),
	.option = { .name = "--runtime", .letter = "-r", .argument = "NAME", .help = "vllm, ollama, llama.cpp or custom" })
FIELD(command, .label = "Command", .help = "What starts the runtime custom: a line for the shell, or words; administrators only",
	.kind = VALUE_TEXT, .also = ALSO_LIST, .most = MODEL_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED,
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, command), .owner_only = true,
	.option = { .name = "--command", .argument = "LINE", .help = "for the shell, instead of a runtime: serve -p {port}" })
FIELD(image, .label = "Image", .help = "A container image to run in",
	.kind = VALUE_TEXT, .most = MODEL_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--image", .argument = "IMAGE" })
FIELD(path, .label = "Path", .help = "Where its files are on the nodes",
	.kind = VALUE_TEXT, .most = MODEL_TEXT_BYTES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--path", .argument = "PATH" })
FIELD(health_path, .label = "Health path", .help = "Where its server answers with 2xx once it is ready; null: as its runtime does",
	.kind = VALUE_TEXT, .most = MODEL_HEALTH_PATH_BYTES_MAX, .pattern = "^/[!-~]*$",
	.empty = EMPTY_OMITTED, .in_payload = true, .setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--health-path", .argument = "PATH", .help = "where its server answers once it is ready" })
FIELD(args, .label = "Arguments", .help = "Further arguments for its server",
	.kind = VALUE_TEXTS, .items = JOB_WORDS_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .owner_only = true, .option = { .absent = "the operands after --" })
FIELD(environment, .label = "Environment", .help = "Environment variables",
	.kind = VALUE_MAP, .items = JOB_VARIABLES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--env", .letter = "-e", .argument = "NAME=VALUE", .repeats = true })
FIELD(secret_environment, .label = "Secret environment",
	.help = "Environment variables that are sealed before they are stored and never shown",
	.kind = VALUE_MAP, .items = JOB_VARIABLES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.shown_as = "sealed", .setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--secret-env", .argument = "NAME=VALUE", .repeats = true })
FIELD(labels, .label = "Labels", .help = "Labels for people",
	.kind = VALUE_MAP, .items = JOB_LABELS_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--label", .letter = "-l", .argument = "NAME=VALUE", .repeats = true })
FIELD(gpu_memory_mb, .label = "GPU memory", .help = "GPU memory of one slot, over all its GPUs",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .least = 1, .most = MIB_MAX, .required = true,
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, memory_mib),
	.option = { .name = "--gpu-memory", .letter = "-m", .argument = "SIZE", .help = "of one slot, over all its GPUs" })
FIELD(uneven, .label = "Uneven", .help = "Its parts need not be equal",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, uneven),
	.option = { .name = "--uneven" })
FIELD(cpu_cores, .label = "CPU cores", .help = "CPU cores of one slot",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_CORES, .most = CPU_MILLI_MAX, .initial = "0",
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, cpu_milli),
	.option = { .name = "--cpus", .letter = "-c", .argument = "N" })
FIELD(memory_mb, .label = "Host memory", .help = "Host memory of one slot",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .most = HOST_BYTES_MAX / MIB_BYTES, .scale = MIB_BYTES,
	.initial = "0", .setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, host_bytes),
	.option = { .name = "--memory", .argument = "SIZE" })
FIELD(context_length, .label = "Context length", .help = "Tokens of each request; 0: the runtime's own",
	.kind = VALUE_INTEGER, .most = INT32_MAX, .initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, context),
	.option = { .name = "--context-length", .argument = "N", .help = "tokens of each request: 8k" })
FIELD(parallel, .label = "Parallel", .help = "Requests that the runtime batches; 0: its own",
	.kind = VALUE_INTEGER, .most = MODEL_COUNT_MAX, .initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, parallel),
	.option = { .name = "--parallel", .argument = "N" })
FIELD(max_concurrency, .label = "Concurrency", .help = "Requests in flight in one slot; 0: by runtime",
	.kind = VALUE_INTEGER, .most = MODEL_COUNT_MAX, .initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, concurrency),
	.option = { .name = "--concurrency", .argument = "N" })
FIELD(splits, .label = "Splits", .help = "GPU counts that it may be split over, rising; empty: any",
	.kind = VALUE_LIST, .nested = &split_resource, .also = ALSO_MEMBER, .items = PARTS_MAX,
	.setter = SET_ANY_TIME,
	.option = { .name = "--splits", .argument = "1,2,4", .help = "GPU counts that it may be split over" })
FIELD(kv_cache_type, .label = "KV cache", .help = "The type of the KV cache; empty: the runtime's own",
	.kind = VALUE_TEXT, .most = MODEL_TEXT_BYTES_MAX, .initial = "\"\"", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, kv_cache), .owner_only = true,
	.option = { .name = "--kv", .argument = "TYPE" })
FIELD(min_replicas, .label = "Min replicas", .help = "Slots that are always wanted",
	.kind = VALUE_INTEGER, .most = MODEL_COUNT_MAX, .initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, min_replicas), .owner_only = true,
	.option = { .name = "--min", .argument = "N" })
FIELD(max_replicas, .label = "Max replicas", .help = "Slots at most; 0: the minimum, and at least 1",
	.kind = VALUE_INTEGER, .most = MODEL_COUNT_MAX, .initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, max_replicas), .owner_only = true,
	.option = { .name = "--max", .argument = "N" })
FIELD(prewarm, .label = "Prewarm", .help = "Loaded, where there is room, before anyone asks",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, prewarm), .owner_only = true,
	.option = { .name = "--prewarm" })
FIELD(pinned, .label = "Pinned", .help = "Never evicted; bound by the tenant's quota",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, pinned), .owner_only = true,
	.option = { .name = "--pinned" })
FIELD(idle_ttl, .label = "Idle TTL", .help = "A slot that was idle for this long may be evicted; 0: 10 s",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .also = ALSO_SECONDS, .most = TIME_MS_MAX,
	.initial = "0", .setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, idle_ttl_ms),
	.owner_only = true,
	.option = { .name = "--idle-ttl", .argument = "TIME" })
FIELD(load_timeout, .label = "Load timeout", .help = "How long loading may take; 0: 10 min",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .also = ALSO_SECONDS, .most = TIME_MS_MAX,
	.initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, load_timeout_ms), .owner_only = true,
	.option = { .name = "--load-timeout", .argument = "TIME" })
FIELD(priority, .label = "Priority", .help = "As for jobs",
	.kind = VALUE_INTEGER, .least = INT32_MIN, .most = INT32_MAX, .initial = "500",
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, priority), .owner_only = true,
	.option = { .name = "--priority", .letter = "-p", .argument = "N" })
FIELD(sleep, .label = "Sleep",
	.help = "How an idle slot gives back its GPUs: off, it is stopped; driver, the driver moves its GPU memory to host memory, as for suspended jobs",
	.kind = VALUE_WORD, .words = &model_sleep_words, .initial = "\"off\"", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, sleep), .owner_only = true,
	.option = { .name = "--sleep", .argument = "HOW", .help = "off or driver" })
FIELD(shared, .label = "Shared", .help = "All tenants may use it; set by administrators",
	.kind = VALUE_FLAG, .initial = "false", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, shared), .owner_only = true,
	.option = { .name = "--shared" })
FIELD(placement, .label = "Placement", .help = "Where its slots go, of all places that cost the same",
	.kind = VALUE_WORD, .words = &slot_policy_words, .initial = "\"spread\"", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, policy), .owner_only = true,
	.option = { .name = "--placement", .argument = "HOW", .help = "spread or pack" })
FIELD(gpu_model, .label = "GPU model", .help = "Allowed GPU models, separated by | or in a list",
	.kind = VALUE_TEXT, .also = ALSO_LIST, .most = JOB_NAME_BYTES_MAX, .initial = "\"\"",
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, gpu_models), .owner_only = true,
	.option = { .name = "--gpu-model", .argument = "MODEL" })
FIELD(node_labels, .label = "Node labels", .help = "Labels that the nodes must have",
	.kind = VALUE_MAP, .items = JOB_LABELS_MAX, .most = JOB_LABEL_BYTES_MAX, .empty = EMPTY_OMITTED,
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, node_labels),
	.owner_only = true,
	.option = { .name = "--node-label", .argument = "NAME=VALUE", .repeats = true })
FIELD(users, .label = "Users", .help = "Tenants that may use it beside its own; those of others take an administrator",
	.kind = VALUE_IDS, .refers = "tenant", .also = ALSO_NAME, .items = MODEL_USERS_MAX,
	.setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--user", .argument = "TENANT", .repeats = true, .help = "a tenant that may use it" })
FIELD(aliases, .label = "Aliases", .help = "Other names under which the gateway serves it",
	.kind = VALUE_TEXTS, .items = MODEL_NAMES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .option = { .name = "--alias", .argument = "NAME", .repeats = true })
FIELD(fallbacks, .label = "Fallbacks",
	.help = "Models that the gateway asks instead while this one cannot be loaded, the first that can be",
	.kind = VALUE_TEXTS, .items = MODEL_NAMES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .owner_only = true,
	.option = { .name = "--fallback", .argument = "MODEL", .repeats = true, .help = "a model to ask while this cannot be loaded" })
FIELD(adapters, .label = "Adapters",
	.help = "Adapters that its server was started with; asked for as MODEL:ADAPTER",
	.kind = VALUE_TEXTS, .items = MODEL_NAMES_MAX, .empty = EMPTY_OMITTED, .in_payload = true,
	.setter = SET_ANY_TIME, .option = { .name = "--adapter", .argument = "NAME", .repeats = true, .help = "an adapter that its server has" })
FIELD(price_per_million_input, .label = "Input price",
	.help = "What other tenants pay for a million tokens of prompts",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .most = TENANT_MONEY_MAX, .initial = "0",
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, price_input),
	.option = { .name = "--price-input", .argument = "PRICE", .help = "of a million tokens of prompts" })
FIELD(price_per_million_cached, .label = "Cached price",
	.help = "What they pay for a million tokens of prompts that the server had cached",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .most = TENANT_MONEY_MAX, .initial = "0",
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, price_cached),
	.option = { .name = "--price-cached", .argument = "PRICE", .help = "of a million cached tokens of prompts" })
FIELD(price_per_million_output, .label = "Output price",
	.help = "What they pay for a million tokens of answers",
	.kind = VALUE_DECIMAL, .digits = 6, .unit = UNIT_CURRENCY, .most = TENANT_MONEY_MAX, .initial = "0",
	.setter = SET_ANY_TIME, STORED(RECORD_MODEL, struct model_record, price_output),
	.option = { .name = "--price-output", .argument = "PRICE", .help = "of a million tokens of answers" })
FIELD(queue_timeout, .label = "Queue timeout",
	.help = "How long a request waits in the gateway for a slot; 0: as the gateway is set",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .also = ALSO_SECONDS, .most = TIME_MS_MAX,
	.initial = "0", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, queue_timeout_ms), .owner_only = true,
	.option = { .name = "--queue-timeout", .argument = "TIME" })
FIELD(keep_alive, .label = "Keep-alive",
	.help = "What a stream gets while it waits: comments, chunks without content, or nothing",
	.kind = VALUE_WORD, .words = &keep_alive_words, .initial = "\"comment\"", .setter = SET_ANY_TIME,
	STORED(RECORD_MODEL, struct model_record, keep_alive), .owner_only = true,
	.option = { .name = "--keep-alive", .argument = "HOW", .help = "comment, chunk or off" })
FIELD(removed, .label = "Removed", .help = "True if it takes no more requests and goes with its last slot",
	.kind = VALUE_FLAG, .repeatable = true, STORED(RECORD_MODEL, struct model_record, removed))
FIELD(load_time, .label = "Load time", .help = "How long loading took so far",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .repeatable = true,
	STORED(RECORD_MODEL, struct model_record, load_ms))
FIELD(wake_time, .label = "Wake time", .help = "How long waking a slot took so far",
	.kind = VALUE_DURATION, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .repeatable = true,
	STORED(RECORD_MODEL, struct model_record, wake_ms))
FIELD(active_requests, .label = "Active requests", .help = "Requests in flight",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(waiting_requests, .label = "Waiting requests", .help = "Requests that wait for a slot",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(places, .label = "Capacity", .help = "Requests that its ready slots can serve at a time",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(ready_slots, .label = "Ready slots", .help = "Slots that serve requests",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(coming_slots, .label = "Coming slots", .help = "Slots that wait for memory or are loading",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(stopping_slots, .label = "Stopping slots", .help = "Slots that are stopping",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(asleep_slots, .label = "Asleep slots", .help = "Slots that are asleep, or going to sleep",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(oldest_wait_ms, .label = "Oldest wait", .help = "How long the oldest request has waited in a gateway",
	.kind = VALUE_INTEGER, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .repeatable = true)
FIELD(answers_per_minute, .label = "Answers per minute",
	.help = "Streams that began to answer in the last minute, through gateways",
	.kind = VALUE_INTEGER, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(first_token_p50_ms, .label = "First token", .help = "The median time from a request to the first token of its stream, in the last minute",
	.kind = VALUE_INTEGER, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .repeatable = true)
FIELD(first_token_p99_ms, .label = "First token, p99", .help = "What 99 of 100 streams did not exceed",
	.kind = VALUE_INTEGER, .unit = UNIT_MILLISECONDS, .empty = EMPTY_NULL, .repeatable = true)
FIELD(tokens_per_second, .label = "Tokens per second", .help = "Tokens of all answers a second, in the last minute",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_OMITTED, .repeatable = true)
FIELD(waiting_tenants, .label = "Who waits", .help = "Tenants whose requests wait in gateways, the longest wait first; for those who may see the model's tenant",
	.kind = VALUE_LIST, .nested = &model_waiting_resource, .empty = EMPTY_OMITTED, .repeatable = true,
	.owner_only = true)
FIELD(gateway_url, .label = "Gateway", .help = "Where a gateway serves it; null: none is connected that says so",
	.kind = VALUE_TEXT, .empty = EMPTY_NULL, .repeatable = true)
FIELD(failures, .label = "Failures", .help = "Failed loads and lost slots in a row",
	.kind = VALUE_INTEGER, .repeatable = true, STORED(RECORD_MODEL, struct model_record, failures),
	.owner_only = true)
FIELD(failed_at, .label = "Failed", .help = "When the last of them was",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .repeatable = true,
	STORED(RECORD_MODEL, struct model_record, failed_ms), .owner_only = true)
FIELD(not_before, .label = "Not before", .help = "No new slot is loaded before this time",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, .repeatable = true,
	STORED(RECORD_MODEL, struct model_record, not_before_ms), .owner_only = true)
FIELD(message, .label = "Message", .help = "What its node said about the last failure",
	.kind = VALUE_TEXT, .repeatable = true, STORED(RECORD_MODEL, struct model_record, message),
	.owner_only = true)
/* clang-format on */
