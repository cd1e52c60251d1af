/* serve_command.h - gpu-sim serve: many models on few GPUs */
#ifndef SIM_SERVE_SERVE_COMMAND_H
#define SIM_SERVE_SERVE_COMMAND_H

int serve_main(int argc, char **argv);
/* serve --prefix: replicas of one model, chosen by the beginnings of prompts. */
int prefix_main(int argc, char **argv);
/* serve --tenants: one model, and many tenants that ask it too much. */
int tenants_main(int argc, char **argv);

#endif
