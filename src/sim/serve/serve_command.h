/* serve_command.h - gpu-sim serve: many models on few GPUs */
#ifndef SIM_SERVE_SERVE_COMMAND_H
#define SIM_SERVE_SERVE_COMMAND_H

int serve_main(int argc, char **argv);

#endif
