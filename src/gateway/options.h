/* options.h - what gpu-gateway is told on its command line and by its environment */
#ifndef GATEWAY_OPTIONS_H
#define GATEWAY_OPTIONS_H

#include "base/memory.h"
#include "gateway/program.h"
#include "uplink/uplink.h"

enum { OPTIONS_SCHEDULERS_MAX = 8 };

struct options {
	struct program_settings program;
	struct uplink_settings link;
	const char *schedulers[OPTIONS_SCHEDULERS_MAX + 1];
	const char *routes; /* a file; NULL: they come from the scheduler */
	struct arena arena; /* of texts that are made */
};

enum options_result { OPTIONS_RUN, OPTIONS_SHOWN /* help or version */, OPTIONS_WRONG };

/* Each option --some-name may also be given as GPU_GATEWAY_SOME_NAME; what is on the command line
 * counts. OPTIONS_WRONG comes with a reason. */
enum options_result options_read(struct options *options, int argc, char **argv,
                                 struct error *error);
/* Everything that points into them is invalid afterwards. */
void options_free(struct options *options);

#endif
