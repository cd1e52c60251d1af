/* keeper_program.c - gpu-keeper: what stays with a work when the agent does not */
#include <stdio.h>

#include "agent/keeper/keeper.h"

int main(int argc, char **argv)
{
	if (argc == 4)
		return keeper_main(argv[1], argv[2], argv[3]);
	fprintf(stderr, "gpu-keeper is started by gpu-agent, one for each task\n");
	return 2;
}
