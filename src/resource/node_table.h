/* node_table.h - the fields of nodes, of their GPUs and of the holders of these, in the order in
 * which answers show them. To be included with FIELD and one of the *_ROWS defined: there is no
 * include guard on purpose. */
/* clang-format off */
#ifdef HOLDER_ROWS
FIELD(phase, .label = "Phase", .help = "The state of the reservation",
	.kind = VALUE_WORD, .words = &phase_words)
FIELD(memory_mb, .label = "Memory", .help = "Reserved memory", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(measured_memory_mb, .label = "Measured memory", .help = "Memory in use",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(share, .label = "Share", .help = "The share of the GPU, from 0 to 1",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS)
FIELD(whole, .label = "Whole", .help = "True if the GPU is reserved whole", .kind = VALUE_FLAG)
FIELD(job_id, .label = "Job", .help = "The job", .kind = VALUE_ID, .refers = "job",
	.empty = EMPTY_OMITTED)
FIELD(task, .label = "Task", .help = "The task's number in its job", .kind = VALUE_INTEGER,
	.empty = EMPTY_OMITTED)
FIELD(slot_id, .label = "Slot", .help = "The slot", .kind = VALUE_ID, .refers = "slot",
	.empty = EMPTY_OMITTED)
FIELD(model_id, .label = "Model", .help = "The slot's model", .kind = VALUE_ID, .refers = "model",
	.empty = EMPTY_OMITTED)
FIELD(name, .label = "Name", .help = "The name of the job or the model", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED)
FIELD(tenant_id, .label = "Tenant", .help = "The tenant", .kind = VALUE_ID, .refers = "tenant",
	.empty = EMPTY_OMITTED)
FIELD(tenant, .label = "Tenant", .help = "The tenant's name, or 'another tenant'", .kind = VALUE_TEXT,
	.empty = EMPTY_NULL)
#endif

#ifdef GPU_ROWS
FIELD(uuid, .label = "UUID", .help = "The GPU's UUID", .kind = VALUE_TEXT,
	STORED(RECORD_GPU, struct gpu_record, uuid))
FIELD(index, .label = "Index", .help = "Its index on its node", .kind = VALUE_INTEGER,
	STORED(RECORD_GPU, struct gpu_record, place))
FIELD(node, .label = "Node", .help = "Its node", .kind = VALUE_TEXT,
	STORED(RECORD_NODE, struct node_record, name))
FIELD(model, .label = "Model", .help = "The GPU model", .kind = VALUE_TEXT,
	STORED(RECORD_GPU, struct gpu_record, model))
FIELD(mig_parent, .label = "MIG parent", .help = "The UUID of the GPU that it is an instance of",
	.kind = VALUE_TEXT, .empty = EMPTY_OMITTED, STORED(RECORD_GPU, struct gpu_record, mig_parent))
FIELD(total_memory, .label = "Memory", .help = "Its memory", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(free_memory, .label = "Free", .help = "Memory that a new task could have now",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(used_memory, .label = "Used", .help = "Memory that is not free", .kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(allocated_memory, .label = "Allocated", .help = "Reserved and releasing memory",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(reserved_memory, .label = "Reserved", .help = "Memory that tasks and slots have reserved",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(releasing_memory, .label = "Releasing", .help = "Memory of tasks and slots that are stopping",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(claimed_memory, .label = "Claimed", .help = "Memory promised to tasks that wait for its release",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(foreign_memory, .label = "External", .help = "Memory that others use",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(unexplained_memory, .label = "Unexplained",
	.help = "External memory that no process explains and that came while tasks ran there",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, STORED(RECORD_GPU, struct gpu_record, unexplained_mib))
FIELD(overhead_memory, .label = "Overhead", .help = "Memory that the driver keeps",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(share, .label = "Share", .help = "The reserved share of the GPU, from 0 to 1",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS)
FIELD(compute_share, .label = "Compute", .help = "Share of its compute that is reserved, from 0 to 1; 0: those on it take turns",
	.kind = VALUE_DECIMAL, .digits = 3, .unit = UNIT_GPUS, .empty = EMPTY_OMITTED)
FIELD(available, .label = "Available", .help = "True if it could be reserved whole now", .kind = VALUE_FLAG)
FIELD(whole, .label = "Whole", .help = "True if it is reserved whole", .kind = VALUE_FLAG)
FIELD(healthy, .label = "Healthy", .help = "True if its node reports no fault", .kind = VALUE_FLAG,
	STORED(RECORD_GPU, struct gpu_record, healthy))
FIELD(hot, .label = "Hot", .help = "True if it is too hot for new tasks", .kind = VALUE_FLAG,
	STORED(RECORD_GPU, struct gpu_record, hot))
FIELD(over, .label = "Over", .help = "True if more memory is used than it has", .kind = VALUE_FLAG)
FIELD(mig_mode, .label = "MIG mode", .help = "True if it is divided into MIG instances", .kind = VALUE_FLAG,
	STORED(RECORD_GPU, struct gpu_record, mig_mode))
FIELD(present, .label = "Present", .help = "True if its node's last report named it", .kind = VALUE_FLAG,
	STORED(RECORD_GPU, struct gpu_record, present))
FIELD(aliases, .label = "Aliases", .help = "Devices that its node reported under this UUID",
	.kind = VALUE_INTEGER, STORED(RECORD_GPU, struct gpu_record, aliases))
FIELD(nvlink_group, .label = "NVLink group", .help = "GPUs of a node with the same number are linked; 0: not linked",
	.kind = VALUE_INTEGER, STORED(RECORD_GPU, struct gpu_record, nvlink_group))
FIELD(holders, .label = "Holders", .help = "Who has a reservation on it; others' work only as 'another tenant'",
	.kind = VALUE_LIST, .nested = &holder_resource, .empty = EMPTY_OMITTED)
FIELD(temperature_c, .label = "Temperature", .help = "Its temperature", .kind = VALUE_INTEGER,
	.unit = UNIT_CELSIUS, .empty = EMPTY_OMITTED)
FIELD(power_watts, .label = "Power", .help = "The power that it draws", .kind = VALUE_DECIMAL,
	.digits = 3, .unit = UNIT_WATTS, .empty = EMPTY_OMITTED)
FIELD(utilization, .label = "Utilization", .help = "Its utilization, from 0 to 1", .kind = VALUE_DECIMAL,
	.digits = 3, .empty = EMPTY_OMITTED)
FIELD(measured_memory_mb, .label = "Measured memory", .help = "Memory in use, as measured",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB, .empty = EMPTY_OMITTED)
FIELD(sm_active, .label = "SM active", .help = "Time that multiprocessors are active, from 0 to 1, where DCGM reports it",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_OMITTED)
FIELD(dram_active, .label = "DRAM active", .help = "Time that its memory is active, from 0 to 1, where DCGM reports it",
	.kind = VALUE_DECIMAL, .digits = 3, .empty = EMPTY_OMITTED)
FIELD(health_reason, .label = "Health", .help = "Why it is not healthy", .kind = VALUE_TEXT,
	.empty = EMPTY_OMITTED)
#endif

#ifdef NODE_ROWS
FIELD(id, .label = "ID", .help = "The node's name", .kind = VALUE_TEXT,
	STORED(RECORD_NODE, struct node_record, name))
FIELD(name, .label = "Name", .help = "Equal to id", .kind = VALUE_TEXT,
	STORED(RECORD_NODE, struct node_record, name))
FIELD(state, .label = "State", .help = "Whether it reports", .kind = VALUE_WORD, .words = &node_state_words,
	STORED(RECORD_NODE, struct node_record, state))
FIELD(online, .label = "Online", .help = "True if its state is online", .kind = VALUE_FLAG)
FIELD(connected, .label = "Connected", .help = "True if its agent is connected", .kind = VALUE_FLAG)
FIELD(draining, .label = "Draining", .help = "True if no new jobs start there", .kind = VALUE_FLAG,
	STORED(RECORD_NODE, struct node_record, draining))
FIELD(drain_reason, .label = "Drain reason", .help = "Why it is drained; empty: nobody said", .kind = VALUE_TEXT,
	STORED(RECORD_NODE, struct node_record, drain_reason))
FIELD(reported, .label = "Reported", .help = "True if it has reported since the scheduler started",
	.kind = VALUE_FLAG, STORED(RECORD_NODE, struct node_record, reported))
FIELD(zone, .label = "Zone", .help = "Its zone", .kind = VALUE_TEXT,
	STORED(RECORD_NODE, struct node_record, zone))
FIELD(rack, .label = "Rack", .help = "Its rack", .kind = VALUE_TEXT,
	STORED(RECORD_NODE, struct node_record, rack))
FIELD(labels, .label = "Labels", .help = "Its labels", .kind = VALUE_MAP,
	STORED(RECORD_NODE, struct node_record, labels))
FIELD(total_gpus, .label = "GPUs", .help = "Its GPUs", .kind = VALUE_INTEGER, .unit = UNIT_GPUS)
FIELD(available_gpus, .label = "Available", .help = "GPUs that could be reserved whole now",
	.kind = VALUE_INTEGER, .unit = UNIT_GPUS)
FIELD(total_cpu_cores, .label = "CPU cores", .help = "Its CPU cores", .kind = VALUE_DECIMAL, .digits = 3,
	.unit = UNIT_CORES, STORED(RECORD_NODE, struct node_record, cpu_milli))
FIELD(used_cpu_cores, .label = "CPU cores in use", .help = "Reserved CPU cores", .kind = VALUE_DECIMAL,
	.digits = 3, .unit = UNIT_CORES)
FIELD(total_memory_mb, .label = "Host memory", .help = "Its host memory", .kind = VALUE_INTEGER,
	.unit = UNIT_MIB, .scale = MIB_BYTES, STORED(RECORD_NODE, struct node_record, host_bytes))
FIELD(used_memory_mb, .label = "Host memory in use", .help = "Reserved host memory",
	.kind = VALUE_INTEGER, .unit = UNIT_MIB)
FIELD(reservations, .label = "Reservations", .help = "Tasks and slots on it", .kind = VALUE_INTEGER)
FIELD(gpus, .label = "GPUs", .help = "Its GPUs, where one node is asked for", .kind = VALUE_LIST,
	.nested = &gpu_resource, .empty = EMPTY_OMITTED)
#endif
