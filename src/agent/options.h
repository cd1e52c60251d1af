/* options.h - what gpu-agent is told on its command line and by its environment */
#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H

#include "agent/agent.h"
#include "agent/gpu/dcgm.h"

#define OPTIONS_SCHEDULERS_MAX 8

struct options {
	struct agent_settings agent;
	const char *schedulers[OPTIONS_SCHEDULERS_MAX + 1];
	const char *fake_gpus, *nvml_library;
	struct dcgm_settings dcgm;        /* all NULL: there is none */
	const char *device_plugin_config; /* of the device plugin, where time slices are shared out
	                                   */
	bool no_gpus;
	struct arena arena; /* of texts that are made */
};

enum options_result { OPTIONS_RUN, OPTIONS_SHOWN /* help or version */, OPTIONS_WRONG };

/* Each option --some-name may also be given as GPU_AGENT_SOME_NAME; what is on the command line
 * counts. OPTIONS_WRONG comes with a reason. */
enum options_result agent_options_read(struct options *options, int argc, char **argv,
                                       struct error *error);

/* Everything that points into them is invalid afterwards. */
void options_free(struct options *options);

/* The GPUs that the options ask for: simulated, none, or what there is. NULL with a reason. */
struct gpu_source *options_source(const struct options *options, struct error *error);

#endif
