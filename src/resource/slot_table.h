/* slot_table.h - the fields of slots and of the GPUs that they have, in the order in which answers
 * show them. To be included with FIELD and one of the *_ROWS defined: there is no include guard on
 * purpose. */
/* clang-format off */
#ifdef SLOT_PART_ROWS
FIELD(index, .label = "Index", .help = "The GPU's index on its node; -1: the GPU was removed",
	.kind = VALUE_INTEGER)
FIELD(uuid, .label = "UUID", .help = "The GPU", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(memory_mb, .label = "Memory", .help = "Reserved memory", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(measured_memory_mb, .label = "Measured memory", .help = "Memory in use",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
#endif

#ifdef SLOT_ROWS
FIELD(id, .label = "ID", .help = "The slot's id", .kind = VALUE_ID, .refers = "slot",
	STORED(RECORD_SLOT, struct slot_record, id))
FIELD(runner_id, .label = "Node", .help = "Its node", .kind = VALUE_TEXT, .empty = EMPTY_NULL)
FIELD(model, .label = "Model", .help = "The name of its model", .kind = VALUE_TEXT,
	STORED(RECORD_MODEL, struct model_record, name))
FIELD(model_id, .label = "Model ID", .help = "Its model", .kind = VALUE_ID, .refers = "model",
	STORED(RECORD_SLOT, struct slot_record, model_id))
FIELD(tenant_id, .label = "Tenant", .help = "The tenant that pays for it; only shown to that tenant",
	.kind = VALUE_ID, .refers = "tenant", .empty = EMPTY_OMITTED)
FIELD(runtime, .label = "Runtime", .help = "What serves it", .kind = VALUE_WORD, .words = &runtime_words,
	STORED(RECORD_MODEL, struct model_record, runtime))
FIELD(gpu_allocation, .label = "GPUs", .help = "What it has of each GPU", .kind = VALUE_LIST,
	.nested = &part_resource)
FIELD(active_requests, .label = "Active requests", .help = "Requests in flight", .kind = VALUE_INTEGER)
FIELD(guard, .label = "Guard", .help = "The hard limit on GPU memory; null where there is none",
	.kind = VALUE_OBJECT, .nested = &guard_resource, .empty = EMPTY_NULL)
FIELD(max_concurrency, .label = "Concurrency", .help = "Requests that it serves at a time",
	.kind = VALUE_INTEGER, STORED(RECORD_SLOT, struct slot_record, concurrency))
FIELD(status, .label = "Status", .help = "Where it is in its life", .kind = VALUE_WORD,
	.words = &slot_state_words, STORED(RECORD_SLOT, struct slot_record, state))
FIELD(address, .label = "Address", .help = "Where requests go; empty until it is ready",
	.kind = VALUE_TEXT, STORED(RECORD_SLOT, struct slot_record, address))
FIELD(adopted, .label = "Adopted", .help = "True if it was found running on its node",
	.kind = VALUE_FLAG, STORED(RECORD_SLOT, struct slot_record, adopted))
FIELD(pinned, .label = "Pinned", .help = "True if it is never evicted", .kind = VALUE_FLAG,
	STORED(RECORD_SLOT, struct slot_record, fixed))
FIELD(created, .label = "Created", .help = "When its node was told to load it", .kind = VALUE_TIME,
	.empty = EMPTY_NULL)
FIELD(ready_at, .label = "Ready", .help = "When it was ready", .kind = VALUE_TIME, .empty = EMPTY_NULL,
	STORED(RECORD_SLOT, struct slot_record, ready_ms))
FIELD(last_used_at, .label = "Last used", .help = "When a request last began or ended",
	.kind = VALUE_TIME, .empty = EMPTY_NULL, STORED(RECORD_SLOT, struct slot_record, used_ms))
#endif
