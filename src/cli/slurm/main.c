/* main.c - gpu-slurm: Slurm's commands in front of this service */
#include "cli/slurm/program.h"

int main(int argc, char **argv)
{
	return slurm_main(argc, argv);
}
