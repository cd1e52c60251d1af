/* serve_command.h - gpu-sim serve: many models on few GPUs */
#ifndef SIM_SERVE_SERVE_COMMAND_H
#define SIM_SERVE_SERVE_COMMAND_H

#include <stdbool.h>

int serve_main(int argc, char **argv);
/* serve --prefix: replicas of one model, chosen by the beginnings of prompts. */
bool prefix_is_asked(int argc, char **argv);
int prefix_main(int argc, char **argv);

#endif
