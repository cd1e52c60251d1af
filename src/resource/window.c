/* window.c - the table of windows */
#include "resource/table.h"

/* clang-format off */
static const struct resource_field window_fields[] = {
#define WINDOW_ROWS
#include "resource/window_table.h"
#undef WINDOW_ROWS
};
/* clang-format on */

const struct resource window_resource = {
	.id = RESOURCE_WINDOW,
	.name = "window",
	.help = "A time in which nodes or GPUs are for some jobs alone, or for maintenance",
	FIELDS_OF(window_fields),
	.schema = "Window",
	.null_is_default = true,
	.request_message = "CreateWindowRequest",
	.reply_message = "Window",
	.no_form = "the dashboard has a form of its own for windows",
};
