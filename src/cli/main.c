/* main.c - gpu-cli: the scheduler on the command line */
#include "cli/cli.h"

int main(int argc, char **argv)
{
	return cli_main(argc, argv);
}
