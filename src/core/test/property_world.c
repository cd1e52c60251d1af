/* property_world.c - machines with GPUs that come, change, fail and go */
#include "core/test/property_world.h"

#include <stdio.h>
#include <string.h>

#include "core/test/property_random.h"

#define GIB (INT64_C(1) << 30)

void world_init(struct world *world, uint64_t *random)
{
	*world = (struct world){ .random = random };
	for (int i = 0; i < MACHINES; i++)
		snprintf(world->machines[i].name, sizeof(world->machines[i].name), "node-%02d", i);
}

const struct node_record *machine_record(const struct machine *machine, const struct keeper *keeper)
{
	for (size_t i = 0; i < keeper_node_count(keeper); i++)
		if (strcmp(keeper_node(keeper, i)->name, machine->name) == 0)
			return keeper_node(keeper, i);
	return NULL;
}

static void chip_build(struct world *world, struct chip *chip, int place)
{
	uint64_t *random = world->random;
	int model = chance(random, 70) ? 0 : 1;

	*chip = (struct chip){
		.number = ++world->last_chip,
		.model = world->hardware.models[model],
		.capacity_mib = world->hardware.capacity_mib[model],
		.overhead_mib = chance(random, 50) ? 0 : between(random, 1, 600),
		.temperature_c = 40,
		.nvlink_group = chance(random, 70) ? 1 + place / 4 : 0,
		.replicas = (int)between(random, 1, world->hardware.replicas),
		.there = true,
		.healthy = true,
	};
}

void machine_build(struct world *world, struct machine *machine)
{
	static const char *const zones[] = { "", "east", "west" };
	static const char *const racks[] = { "", "rack-1", "rack-2", "rack-3" };
	static const char *const labels[] = { "",
		                              "disk=ssd",
		                              "disk=ssd\nnet=fast",
		                              "net=fast",
		                              NODE_COMPUTE_SHARES "=mps",
		                              "disk=ssd\n" NODE_COMPUTE_SHARES "=mps" };
	uint64_t *random = world->random;

	machine->built = true;
	machine->boots++;
	machine->zone = ONE_OF(random, zones);
	machine->rack = ONE_OF(random, racks);
	machine->labels = ONE_OF(random, labels);
	machine->cpu_milli = 1000 * between(random, 8, 128);
	machine->host_bytes = GIB * between(random, 32, 512);
	machine->chip_count =
	    (int)between(random, chance(random, 10) ? 0 : 1, world->hardware.chips);
	for (int i = 0; i < machine->chip_count; i++)
		chip_build(world, &machine->chips[i], i);
}

static void chip_wear(struct world *world, struct chip *chip)
{
	uint64_t *random = world->random;

	switch (between(random, 0, 15)) {
	case 0:
		chip->there = chance(random, 50);
		break;
	case 1:
		chip->healthy = chance(random, 60);
		break;
	case 2: /* part of its memory is gone, or there again */
		chip->capacity_mib = max64(chip->capacity_mib * between(random, 60, 150) / 100, 1);
		break;
	case 3:
		chip->capacity_mib = world->hardware.capacity_mib[0];
		break;
	case 4:
		chip->overhead_mib = min64(between(random, 0, 800), chip->capacity_mib);
		break;
	case 5:
		chip->instances = world->hardware.mig && chance(random, 40)
		                      ? (int)between(random, 1, INSTANCES)
		                      : 0;
		break;
	case 6:
		chip->replicas = (int)between(random, 1, world->hardware.replicas);
		break;
	case 7:
	case 8:
	case 9:
		chip->temperature_c = between(random, 40, 85);
		break;
	case 10:
	case 11:
		chip->foreign_mib = between(random, 0, chip->capacity_mib * 5 / 4);
		break;
	default:
		chip->foreign_mib = 0;
		chip->healthy = chip->there = true;
		break;
	}
	chip->overhead_mib = min64(chip->overhead_mib, chip->capacity_mib);
}

void machine_wear(struct world *world, struct machine *machine)
{
	uint64_t *random = world->random;

	if (chance(random, 5))
		machine->cpu_milli = 1000 * between(random, 8, 128);
	if (chance(random, 5))
		machine->host_bytes = GIB * between(random, 32, 512);
	if (chance(random, 3))
		machine->boots++;
	if (chance(random, 3))
		machine->labels = chance(random, 50) ? "disk=ssd\n" NODE_COMPUTE_SHARES "=mps"
		                                     : "disk=ssd\nnet=fast";
	if (chance(random, 3))
		machine->rack = chance(random, 50) ? "rack-1" : "rack-2";
	if (machine->chip_count > 0)
		chip_wear(world, &machine->chips[between(random, 0, machine->chip_count - 1)]);
}

void machine_trade(struct world *world, struct machine *from, struct machine *to)
{
	if (from == to || from->chip_count == 0 || to->chip_count == CHIPS)
		return;
	int at = (int)between(world->random, 0, from->chip_count - 1);
	to->chips[to->chip_count++] = from->chips[at];
	from->chips[at] = from->chips[--from->chip_count];
}

void machine_heal(struct machine *machine)
{
	for (int i = 0; i < machine->chip_count; i++) {
		struct chip *chip = &machine->chips[i];
		chip->there = chip->healthy = true;
		chip->foreign_mib = 0;
		chip->temperature_c = 40;
	}
}

static const char *uuid_of(const struct chip *chip, int instance, struct arena *arena)
{
	char text[48];

	if (instance == 0)
		snprintf(text, sizeof(text), "GPU-%04lld", (long long)chip->number);
	else
		snprintf(text, sizeof(text), "MIG-%04lld-%d", (long long)chip->number, instance);
	return arena_string(arena, text);
}

static struct device device_of(const struct chip *chip, int place, int instance,
                               struct arena *arena)
{
	struct device device = {
		.uuid = uuid_of(chip, instance, arena),
		.model = chip->model,
		.mig_parent = instance ? uuid_of(chip, 0, arena) : "",
		.place = place * (INSTANCES + 1) + instance,
		.capacity_mib = chip->capacity_mib,
		.overhead_mib = chip->overhead_mib,
		.foreign_mib = chip->foreign_mib,
		.temperature_c = chip->temperature_c,
		.nvlink_group = instance ? 0 : chip->nvlink_group,
		.healthy = chip->healthy,
		.mig_mode = chip->instances > 0 && instance == 0,
	};

	if (instance) {
		device.capacity_mib /= chip->instances;
		device.overhead_mib /= chip->instances;
		device.foreign_mib = instance == 1 ? chip->foreign_mib / chip->instances : 0;
	}
	return device;
}

static void list_devices(const struct machine *machine, struct node_report_command *report,
                         struct arena *arena)
{
	size_t most = CHIPS * (INSTANCES + 1) * 8, count = 0;
	struct device *devices = arena_alloc(arena, most * sizeof(*devices));

	for (int i = 0; i < machine->chip_count; i++) {
		const struct chip *chip = &machine->chips[i];
		if (!chip->there)
			continue;
		for (int r = 0; r < chip->replicas && r < 8; r++)
			devices[count++] = device_of(chip, i, 0, arena);
		for (int instance = 1; instance <= chip->instances; instance++)
			devices[count++] = device_of(chip, i, instance, arena);
	}
	report->devices = devices;
	report->device_count = (int64_t)count;
}

/* What an owner uses: about what it may, but for those that are not honest. */
static int64_t measured_of(struct world *world, int64_t mib, bool honest)
{
	if (!honest && rarely(world->random, 30))
		return mib + between(world->random, 1, mib / 2 + 1);
	return mib * between(world->random, 0, 4) / 4;
}

static size_t property_world_measure(struct world *world, const struct keeper *keeper,
                                     const struct reservation_record *reservation, bool honest,
                                     struct measurement *measurements, struct arena *arena)
{
	size_t count = 0;

	for (int64_t p = 0; p < reservation->parts.count; p++) {
		const int64_t *part = reservation->parts.at + p * PART_WIDTH;
		const struct gpu_record *gpu = keeper_find(keeper, RECORD_GPU, part[PART_GPU], 0);
		bool away = reservation->away && honest;
		if (!gpu || (!away && chance(world->random, 40)))
			continue;
		measurements[count++] = (struct measurement){
			.reservation_id = reservation->id,
			.uuid = arena_string(arena, gpu->uuid),
			.memory_mib = away ? reservation->residue_mib
			                   : measured_of(world, part[PART_MIB], honest),
		};
	}
	return count;
}

/* Whether the machine says that it has it. A dishonest one forgets some. */
static bool is_running(struct world *world, const struct reservation_record *reservation,
                       bool honest)
{
	if (!honest && rarely(world->random, 30))
		return false;
	if (reservation->phase == PHASE_GRANTED)
		return chance(world->random, 50);
	return reservation->phase == PHASE_LIVE || chance(world->random, 70);
}

/* What the machine says about a slot: it loads, or it is ready. Now and then it is
 * ahead of what it told before, or behind. */
static struct slot_report report_slot(struct world *world, const struct keeper *keeper,
                                      const struct slot_record *slot, struct arena *arena)
{
	const struct model_record *model = keeper_find(keeper, RECORD_MODEL, slot->model_id, 0);
	bool ready =
	    slot->state == SLOT_READY ? chance(world->random, 95) : chance(world->random, 25);

	return (struct slot_report){
		.reservation_id = slot->id,
		.model = arena_string(arena, model->name),
		.address = ready ? "http://node:1" : "",
		.ready = ready,
	};
}

/* A slot that the core does not know, of a model that it may know. */
static struct slot_report report_orphan(struct world *world, const struct keeper *keeper,
                                        struct arena *arena)
{
	size_t models = keeper_model_count(keeper);
	const char *name = "nobody";

	if (models > 0 && chance(world->random, 80))
		name = keeper_model(keeper, random_below(world->random, models))->name;
	return (struct slot_report){
		.reservation_id = between(world->random, 1, 200000),
		.model = arena_string(arena, name),
		.address = "http://node:3",
		.ready = chance(world->random, 70),
	};
}

/* The orphan is on one or two GPUs of the machine. */
static size_t measure_orphan(struct world *world, const struct machine *machine, int64_t id,
                             struct measurement *measurements, struct arena *arena)
{
	int count = (int)min64(between(world->random, 1, 2), machine->chip_count);

	for (int i = 0; i < count; i++)
		measurements[i] = (struct measurement){
			.reservation_id = id,
			.uuid = uuid_of(&machine->chips[i], 0, arena),
			.memory_mib =
			    machine->chips[i].capacity_mib / between(world->random, 2, 20),
		};
	return (size_t)count;
}

/* Whether the machine knows of it: not of a slot that it was not told to load. */
static bool was_ordered(const struct keeper *keeper, const struct reservation_record *reservation)
{
	const struct slot_record *slot =
	    reservation->job_id == 0 ? keeper_find(keeper, RECORD_SLOT, reservation->id, 0) : NULL;

	return reservation->phase != PHASE_CLAIM && !(slot && slot->state == SLOT_PLACED);
}

static void list_running(struct world *world, const struct machine *machine,
                         const struct node_record *node, const struct keeper *keeper, bool honest,
                         struct node_report_command *report, struct arena *arena)
{
	size_t most = keeper_reservation_count(keeper), count = 0, measured = 0;
	int64_t *running = arena_alloc(arena, (most + 1) * sizeof(*running));
	struct measurement *measurements =
	    arena_alloc(arena, (most * PARTS_MAX + PARTS_MAX) * sizeof(*measurements));
	struct slot_report *slots = arena_alloc(arena, (most + 1) * sizeof(*slots));
	int64_t slot_count = 0;

	for (size_t i = 0; node && i < most; i++) {
		const struct reservation_record *reservation = keeper_reservation(keeper, i);
		if (reservation->node_id != node->id || !was_ordered(keeper, reservation))
			continue;
		measured += property_world_measure(world, keeper, reservation, honest,
		                                   measurements + measured, arena);
		if (!is_running(world, reservation, honest))
			continue;
		running[count++] = reservation->id;
		const struct slot_record *slot =
		    keeper_find(keeper, RECORD_SLOT, reservation->id, 0);
		if (reservation->job_id == 0 && chance(world->random, 80))
			slots[slot_count++] = report_slot(world, keeper, slot, arena);
	}
	if (!honest && keeper_model_count(keeper) > 0 && chance(world->random, 8)) {
		slots[slot_count] = report_orphan(world, keeper, arena);
		measured += measure_orphan(world, machine, slots[slot_count++].reservation_id,
		                           measurements + measured, arena);
	}
	if (!honest && chance(world->random, 10)) /* one that nobody knows */
		running[count++] = between(world->random, 1, 100000);
	report->running = running;
	report->running_count = (int64_t)count;
	report->measurements = measurements;
	report->measurement_count = (int64_t)measured;
	report->slots = slots;
	report->slot_count = slot_count;
}

struct node_report_command machine_report(struct world *world, const struct machine *machine,
                                          const struct keeper *keeper, bool honest,
                                          struct arena *arena)
{
	char boot[24];
	struct node_report_command report = {
		.name = machine->name,
		.zone = machine->zone,
		.rack = machine->rack,
		.labels = machine->labels,
		.cpu_milli = machine->cpu_milli,
		.host_bytes = machine->host_bytes,
	};

	snprintf(boot, sizeof(boot), "boot-%lld", (long long)machine->boots);
	report.boot = arena_string(arena, boot);
	list_devices(machine, &report, arena);
	list_running(world, machine, machine_record(machine, keeper), keeper, honest, &report,
	             arena);
	report.snapshot = chance(world->random, 50);
	return report;
}

void report_spoil(struct world *world, struct node_report_command *report, struct arena *arena)
{
	size_t count = (size_t)report->device_count;
	struct device *devices = arena_alloc(arena, (count + 2) * sizeof(*devices));

	if (count > 0)
		memcpy(devices, report->devices, count * sizeof(*devices));
	if (count == 0)
		devices[count++] = (struct device){ .uuid = "", .model = "", .mig_parent = "" };
	struct device *device = &devices[random_below(world->random, count)];
	switch (between(world->random, 0, 6)) {
	case 0: /* the same one twice, and not the same */
		devices[count] = *device;
		devices[count++].capacity_mib++;
		break;
	case 1:
		devices[count] = *device;
		devices[count++].foreign_mib++;
		break;
	case 2:
		device->capacity_mib = -1;
		break;
	case 3:
		device->foreign_mib = -between(world->random, 1, 1000);
		break;
	case 4:
		device->overhead_mib = device->capacity_mib + 1;
		break;
	case 5:
		device->uuid = "";
		break;
	default:
		report->labels = "b=1\na=1";
		break;
	}
	report->devices = devices;
	report->device_count = (int64_t)count;
}
