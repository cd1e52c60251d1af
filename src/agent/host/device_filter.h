/* device_filter.h - which devices a cgroup of the unified tree may open: a BPF program */
#ifndef AGENT_HOST_DEVICE_FILTER_H
#define AGENT_HOST_DEVICE_FILTER_H

#include "agent/host/cgroup.h"

/* What every process needs: character devices. */
extern const struct device_rule device_filter_common[];
extern const int device_filter_common_count;

#define DEVICE_FILTER_RULES_MAX 128

/* One instruction of a program, as the kernel defines it. */
struct filter_instruction {
	uint8_t code;
	uint8_t registers; /* destination in the low four bits, source in the high */
	int16_t offset;
	int32_t immediate;
};
#define DEVICE_FILTER_SIZE_MAX (8 + 6 * (DEVICE_FILTER_RULES_MAX + 32))

/* The program: 1 for a device that a rule allows, else 0. How many instructions, or 0 where
 * there are too many rules. */
int device_filter_build(const struct device_rule *rules, int count,
                        struct filter_instruction program[DEVICE_FILTER_SIZE_MAX]);
/* Builds it and has it decide for the cgroup and all below. False with a reason. */
bool device_filter_attach(const char *cgroup_path, const struct device_rule *rules, int count,
                          struct error *error);

#endif
