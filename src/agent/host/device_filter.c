/* device_filter.c - which devices a cgroup of the unified tree may open: a BPF program */
#include "agent/host/device_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct device_rule device_filter_common[] = {
	{ .major = 1, .minor = 3 },    /* null */
	{ .major = 1, .minor = 5 },    /* zero */
	{ .major = 1, .minor = 7 },    /* full */
	{ .major = 1, .minor = 8 },    /* random */
	{ .major = 1, .minor = 9 },    /* urandom */
	{ .major = 5, .minor = 0 },    /* tty */
	{ .major = 5, .minor = 2 },    /* ptmx */
	{ .major = 136, .minor = -1 }, /* terminals of ptmx */
	{ .major = 10, .minor = 200 }, /* tun, for networks of containers */
	{ .major = 10, .minor = 229 }, /* fuse, for their file systems */
};
const int device_filter_common_count =
    (int)(sizeof(device_filter_common) / sizeof(*device_filter_common));

_Static_assert(sizeof(struct filter_instruction) == sizeof(struct bpf_insn),
               "instructions are as the kernel has them");

enum {
	REGISTER_RESULT = 0,
	REGISTER_CONTEXT = 1,
	REGISTER_KIND = 2,
	REGISTER_MAJOR = 3,
	REGISTER_MINOR = 4
};

struct program {
	struct filter_instruction *at;
	int count;
};

static void device_filter_add(struct program *program, int code, int to, int from, int offset,
                              int32_t immediate)
{
	program->at[program->count++] =
	    (struct filter_instruction){ (uint8_t)code, (uint8_t)(to | from << 4), (int16_t)offset,
		                         immediate };
}

static void load_context(struct program *program, int to, size_t offset)
{
	device_filter_add(program, BPF_LDX | BPF_MEM | BPF_W, to, REGISTER_CONTEXT, (int)offset, 0);
}

static void device_filter_answer(struct program *program, int32_t result)
{
	device_filter_add(program, BPF_ALU64 | BPF_MOV | BPF_K, REGISTER_RESULT, 0, 0, result);
	device_filter_add(program, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* Each test that fails jumps behind the answer. */
static void add_rule(struct program *program, const struct device_rule *rule)
{
	int32_t kind = rule->is_block ? BPF_DEVCG_DEV_BLOCK : BPF_DEVCG_DEV_CHAR;
	int left = (rule->major >= 0) + (rule->minor >= 0);

	device_filter_add(program, BPF_JMP | BPF_JNE | BPF_K, REGISTER_KIND, 0, left-- + 2, kind);
	if (rule->major >= 0)
		device_filter_add(program, BPF_JMP | BPF_JNE | BPF_K, REGISTER_MAJOR, 0, left-- + 2,
		                  (int32_t)rule->major);
	if (rule->minor >= 0)
		device_filter_add(program, BPF_JMP | BPF_JNE | BPF_K, REGISTER_MINOR, 0, 2,
		                  (int32_t)rule->minor);
	device_filter_answer(program, 1);
}

int device_filter_build(const struct device_rule *rules, int count,
                        struct filter_instruction instructions[DEVICE_FILTER_SIZE_MAX])
{
	struct program program = { instructions, 0 };

	if (count > DEVICE_FILTER_RULES_MAX)
		return 0;
	load_context(&program, REGISTER_KIND, offsetof(struct bpf_cgroup_dev_ctx, access_type));
	device_filter_add(&program, BPF_ALU | BPF_AND | BPF_K, REGISTER_KIND, 0, 0, 0xffff);
	load_context(&program, REGISTER_MAJOR, offsetof(struct bpf_cgroup_dev_ctx, major));
	load_context(&program, REGISTER_MINOR, offsetof(struct bpf_cgroup_dev_ctx, minor));
	for (int i = 0; i < device_filter_common_count; i++)
		add_rule(&program, &device_filter_common[i]);
	for (int i = 0; i < count; i++)
		add_rule(&program, &rules[i]);
	device_filter_answer(&program, 0);
	return program.count;
}

static int call(int command, union bpf_attr *attributes)
{
	return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

static int device_filter_load(const struct filter_instruction *instructions, int count)
{
	static const char license[] = "MIT";
	union bpf_attr attributes;

	memset(&attributes, 0, sizeof(attributes));
	attributes.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
	attributes.insns = (uint64_t)(uintptr_t)instructions;
	attributes.insn_cnt = (uint32_t)count;
	attributes.license = (uint64_t)(uintptr_t)license;
	return call(BPF_PROG_LOAD, &attributes);
}

bool device_filter_attach(const char *cgroup_path, const struct device_rule *rules, int count,
                          struct error *error)
{
	struct filter_instruction instructions[DEVICE_FILTER_SIZE_MAX];
	int size = device_filter_build(rules, count, instructions);
	union bpf_attr attributes;

	if (size == 0)
		return error_set(error, ERROR_INVALID, "a task may have at most %d devices, not %d",
		                 DEVICE_FILTER_RULES_MAX, count);
	int program = device_filter_load(instructions, size);
	if (program < 0)
		return error_set(error, ERROR_UNAVAILABLE, "cannot load the filter of devices: %s",
		                 strerror(errno));
	int directory = open(cgroup_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(&attributes, 0, sizeof(attributes));
	attributes.target_fd = (uint32_t)directory;
	attributes.attach_bpf_fd = (uint32_t)program;
	attributes.attach_type = BPF_CGROUP_DEVICE;
	bool attached = directory >= 0 && call(BPF_PROG_ATTACH, &attributes) == 0;
	int reason = errno;
	if (directory >= 0)
		close(directory);
	close(program);
	return attached || error_set(error, ERROR_UNAVAILABLE, "cannot limit the devices of %s: %s",
	                             cgroup_path, strerror(reason));
}
