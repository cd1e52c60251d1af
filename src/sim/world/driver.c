/* driver.c - a core with a world that keeps its records, command by command */
#include "sim/world/driver.h"

#include <string.h>

void driver_start(struct driver *driver)
{
	driver->sched = sched_new();
}

bool driver_load(struct driver *driver, struct error *error)
{
	driver->sched = world_load(&driver->world, error);
	if (!driver->sched)
		return false;
	if (driver->check)
		sched_check(driver->sched);
	return true;
}

static void trace_command(struct driver *driver, const struct command *command)
{
	buffer_clear(&driver->text);
	command_print(&driver->text, command);
	fprintf(driver->trace, "    > %.*s\n", (int)driver->text.size, driver->text.data);
}

static void trace_effects(struct driver *driver)
{
	buffer_clear(&driver->text);
	buffer_text(&driver->text, "");
	effects_print(&driver->text, &driver->effects);
	const char *line = driver->text.data;
	const char *end = line + driver->text.size;
	while (line < end) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		stop = stop ? stop : end;
		fprintf(driver->trace, "        %.*s\n", (int)(stop - line), line);
		line = stop + 1;
	}
}

bool driver_send(struct driver *driver, struct command command, struct error *error)
{
	command.now_ms = driver->now_ms;
	if (driver->trace)
		trace_command(driver, &command);
	effects_clear(&driver->effects);
	if (!sched_apply(driver->sched, &command, &driver->effects, error))
		return false;
	world_apply(&driver->world, &driver->effects);
	if (driver->trace)
		trace_effects(driver);
	if (driver->check)
		sched_check(driver->sched);
	return true;
}

void driver_free(struct driver *driver)
{
	if (driver->sched)
		sched_free(driver->sched);
	world_free(&driver->world);
	effects_free(&driver->effects);
	buffer_free(&driver->text);
	*driver = (struct driver){ 0 };
}
