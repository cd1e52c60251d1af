/* main.c - gpu-agent: a node's half of the scheduler */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/options.h"
#include "agent/uplink/enroll.h"
#include "base/log.h"

static void main_stop(uv_signal_t *signal, int number)
{
	struct agent *agent = signal->data;

	log_at(LOG_INFO, "the agent stops; tasks keep running", LOG_NUMBER("signal", number));
	agent_free(agent);
	uv_stop(signal->loop);
}

static int main_fail(const struct error *error)
{
	fprintf(stderr, "gpu-agent: %s\n", error->text);
	return 1;
}

static int main_run(struct options *options)
{
	struct error error = { 0 };
	struct gpu_source *source = options_source(options, &error);
	uv_loop_t *loop = uv_default_loop();
	uv_signal_t signals[2];
	static const int numbers[] = { SIGTERM, SIGINT };

	if (!source)
		return main_fail(&error);
	struct agent *agent = agent_new(loop, &options->agent, source, &error);
	if (!agent)
		return main_fail(&error);
	for (int i = 0; i < 2; i++) {
		uv_signal_init(loop, &signals[i]);
		signals[i].data = agent;
		uv_signal_start(&signals[i], main_stop, numbers[i]);
	}
	uv_run(loop, UV_RUN_DEFAULT);
	for (int i = 0; i < 2; i++)
		uv_close((uv_handle_t *)&signals[i], NULL);
	uv_run(loop, UV_RUN_DEFAULT);
	return 0;
}

int main(int argc, char **argv)
{
	struct options options;
	struct error error = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (argc >= 2 && strcmp(argv[1], "enroll") == 0)
		return enroll_main(argc - 1, argv + 1);
	int status = 0;
	enum options_result result = agent_options_read(&options, argc, argv, &error);
	if (result == OPTIONS_RUN)
		status = main_run(&options);
	else if (result == OPTIONS_WRONG)
		status = main_fail(&error) + 1;
	options_free(&options);
	return status;
}
