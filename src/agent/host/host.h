/* host.h - the machine that the agent runs on */
#ifndef AGENT_HOST_HOST_H
#define AGENT_HOST_HOST_H

#include <stdint.h>

struct host {
	char boot[64]; /* changes with each start of the machine */
	char name[256];
	int64_t cpu_milli;    /* thousandths of the cores that we may use */
	int64_t memory_bytes; /* of the machine, or of the cgroup that we are limited to */
};

void host_read(struct host *host);
/* Free bytes of the file system that this is on; -1: not known. */
int64_t host_disk_free_bytes(const char *path);

/* How many processes and threads the kernel can have at once. */
int64_t host_process_capacity(void);

#endif
