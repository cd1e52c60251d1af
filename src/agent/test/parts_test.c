/* parts_test.c - the small parts of the agent: outputs, specs, simulated GPUs, filters, plans */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/gpu/dcgm.h"
#include "agent/gpu/exposition.h"
#include "agent/gpu/gpu_source.h"
#include "agent/gpu/time_slices.h"
#include "agent/host/device_filter.h"
#include "agent/host/environment.h"
#include "agent/host/labels.h"
#include "agent/host/output.h"
#include "agent/keeper/keeper.h"
#include "agent/keeper/spec.h"
#include "agent/test/place.h"
#include "agent/workload/guarding.h"
#include "agent/workload/run.h"
#include "agent/workload/slots.h"

static void output_keeps_its_offsets_when_files_go(void **state)
{
	const char *path = place_make();
	struct output_limits limits = { .file_bytes = 10, .files = 2 };
	struct output_writer writer;
	char data[64];
	int64_t first, end, offset = 0;

	(void)state;
	assert_true(output_open(&writer, path, STREAM_OUTPUT, &limits, NULL));
	for (int i = 0; i < 5; i++)
		output_append(&writer, "0123456789", 10);
	output_append(&writer, "abc", 3);
	output_close(&writer);
	assert_true(output_bounds(path, STREAM_OUTPUT, &first, &end));
	assert_int_equal(first, 40);
	assert_int_equal(end, 53);
	assert_int_equal(output_read(path, STREAM_OUTPUT, &offset, data, sizeof(data)), 10);
	assert_int_equal(offset, 40);
	offset = 51;
	assert_int_equal(output_read(path, STREAM_OUTPUT, &offset, data, sizeof(data)), 2);
	assert_memory_equal(data, "bc", 2);
	offset = 53;
	assert_int_equal(output_read(path, STREAM_OUTPUT, &offset, data, sizeof(data)), 0);
	assert_int_equal(output_read(path, STREAM_ERRORS, &offset, data, sizeof(data)), -1);
	place_remove(path);
}

static void a_spec_is_read_as_it_was_written(void **state)
{
	char *arguments[] = { "a", "", "c d", NULL }, *environment[] = { "X=1", "Y=a=b", NULL };
	struct spec spec = { .reservation_id = 5,
		             .arguments = arguments,
		             .environment = environment,
		             .script = "echo\nhi",
		             .uid = 7,
		             .gid = -1,
		             .groups = { 1, 2 },
		             .group_count = 2,
		             .status_path = "/s",
		             .output_directory = "/o",
		             .output = { 100, 3 },
		             .errors_apart = true,
		             .group = { .path = { [TREE_CPU] = "/cpu" }, .can_kill = true } };
	struct buffer bytes = { 0 };
	struct arena arena = { 0 };
	struct spec read;

	(void)state;
	spec_encode(&bytes, &spec);
	assert_true(spec_decode(&arena, bytes.data, bytes.size, &read));
	assert_int_equal(read.reservation_id, 5);
	assert_string_equal(read.arguments[1], "");
	assert_string_equal(read.arguments[2], "c d");
	assert_null(read.arguments[3]);
	assert_string_equal(read.environment[1], "Y=a=b");
	assert_string_equal(read.script, "echo\nhi");
	assert_null(read.prolog);
	assert_int_equal(read.uid, 7);
	assert_int_equal(read.gid, -1);
	assert_int_equal(read.group_count, 2);
	assert_int_equal(read.groups[1], 2);
	assert_int_equal(read.output.files, 3);
	assert_true(read.errors_apart && read.group.can_kill);
	assert_string_equal(read.group.path[TREE_CPU], "/cpu");
	assert_null(read.group.path[TREE_UNIFIED]);
	assert_false(spec_decode(&arena, bytes.data, bytes.size - 1, &read));
	arena_free(&arena);
	buffer_free(&bytes);
}

static void of_a_variable_the_last_value_counts(void **state)
{
	struct arena arena = { 0 };
	struct environment environment = { .arena = &arena };

	(void)state;
	environment_set(&environment, "A", "1");
	environment_set(&environment, "AB", "2");
	environment_set(&environment, "A", "3");
	environment_default(&environment, "AB", "4");
	environment_default(&environment, "C", "5");
	char **list = environment_finish(&environment);
	assert_string_equal(list[0], "A=3");
	assert_string_equal(list[1], "AB=2");
	assert_string_equal(list[2], "C=5");
	assert_null(list[3]);
	arena_free(&arena);
}

static void what_does_not_describe_gpus_is_refused(void **state)
{
	static const char *const wrong[] = { "",     "8",    "8x",    "0x80G",
		                             "8x80", "x80G", "8x80T", "65x1G" };
	struct error error;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		error_clear(&error);
		assert_null(fake_open(wrong[i], "n", "/nowhere", &error));
		assert_true(error.text[0] != '\0');
	}
}

static void simulated_gpus_have_what_is_used_of_them(void **state)
{
	struct error error = { 0 };
	struct gpu_source *source = fake_open("2x80G,1x24G:A10", "n", "/nowhere", &error);
	struct gpu_readings readings = { 0 };
	struct gpu_user user = { 1, 100, "GPU-fake-n-1", 5000, -1 };

	(void)state;
	assert_non_null(source);
	assert_true(source->kind->read(source, 1000, &user, 1, &readings, &error));
	assert_int_equal(readings.gpu_count, 3);
	assert_int_equal(readings.gpus[0].used_mib, 0);
	assert_int_equal(readings.gpus[1].used_mib, 5000);
	assert_string_equal(readings.gpus[2].model, "A10");
	assert_int_equal(readings.gpus[2].capacity_mib, 24 * 1024);
	assert_int_equal(readings.process_count, 1);
	assert_int_equal(readings.processes[0].pid, 100);
	int64_t cool_c = readings.gpus[1].temperature_c;
	assert_true(source->kind->read(source, 61000, &user, 1, &readings, &error));
	assert_true(readings.gpus[1].temperature_c > cool_c + 20);
	assert_true(source->kind->read(source, 241000, NULL, 0, &readings, &error));
	assert_true(readings.gpus[1].temperature_c < cool_c + 3);
	gpu_readings_free(&readings);
	gpu_source_close(source);
}

/* Runs a program as the kernel would, as far as these programs go. */
static int32_t run_filter(const struct filter_instruction *program, int count, uint32_t kind,
                          uint32_t major, uint32_t minor)
{
	uint32_t context[] = { kind | 7u << 16, major, minor };
	int64_t registers[11] = { 0 };

	for (int at = 0; at < count; at++) {
		const struct filter_instruction *step = &program[at];
		int to = step->registers & 15;
		switch (step->code) {
		case 0x61: /* load a word of the context */
			registers[to] = context[step->offset / 4];
			break;
		case 0x54: /* and */
			registers[to] &= step->immediate;
			break;
		case 0x55: /* jump if not equal */
			if (registers[to] != step->immediate)
				at += step->offset;
			break;
		case 0xb7: /* move */
			registers[to] = step->immediate;
			break;
		case 0x95: /* exit */
			return (int32_t)registers[0];
		default:
			fail_msg("instruction %d has the code %#x", at, step->code);
		}
	}
	fail_msg("it runs over its end");
	return -1;
}

static void a_filter_allows_what_is_common_or_listed(void **state)
{
	struct device_rule rules[] = { { .major = 195, .minor = 3 },
		                       { .major = 510, .minor = -1 },
		                       { .is_block = true, .major = 8, .minor = 0 } };
	struct filter_instruction program[DEVICE_FILTER_SIZE_MAX];
	int count = device_filter_build(rules, 3, program);

	(void)state;
	assert_true(count > 0);
	assert_int_equal(run_filter(program, count, 2, 1, 3), 1);
	assert_int_equal(run_filter(program, count, 2, 195, 3), 1);
	assert_int_equal(run_filter(program, count, 2, 195, 4), 0);
	assert_int_equal(run_filter(program, count, 2, 510, 77), 1);
	assert_int_equal(run_filter(program, count, 1, 8, 0), 1);
	assert_int_equal(run_filter(program, count, 2, 8, 0), 0);
	assert_int_equal(run_filter(program, count, 1, 1, 3), 0);
}

static void requests_in_flight_are_read_from_what_runtimes_tell(void **state)
{
	(void)state;
	assert_int_equal(slots_read_active(RUNTIME_VLLM,
	                                   "# HELP x\nvllm:num_requests_running{model=\"a\"} 3.0\n"
	                                   "vllm:num_requests_waiting{model=\"a\"} 2.0\n"),
	                 5);
	assert_int_equal(slots_read_active(RUNTIME_VLLM, "nothing of that"), -1);
	assert_int_equal(slots_read_active(RUNTIME_LLAMA_CPP,
	                                   "[{\"id\":0,\"is_processing\": true},"
	                                   "{\"id\":1,\"is_processing\":false}]"),
	                 1);
	assert_int_equal(slots_read_active(RUNTIME_LLAMA_CPP, "{\"error\":1}"), -1);
}

static void lines_that_are_not_complete_count_as_not_written(void **state)
{
	const char *path = place_make();
	char file[600];
	struct keeper_status status;

	(void)state;
	snprintf(file, sizeof(file), "%s/1", path);
	FILE *out = fopen(file, "w");
	fputs("keeper 10 20\nstarted 30 40\nexited 5 -1 70 80\ngon", out);
	fclose(out);
	assert_true(keeper_status_read(file, &status));
	assert_true(status.kept && status.started && status.exited && !status.gone);
	assert_int_equal(status.keeper_start, 20);
	assert_int_equal(status.pid, 30);
	assert_int_equal(status.exit_code, 5);
	assert_int_equal(status.peak_bytes, 0);
	assert_int_equal(status.exited_ms, 70);
	assert_int_equal(status.cpu_ms, 80);
	assert_true(keeper_status_read_exit("exited 6 7", &status)); /* as an older keeper */
	assert_int_equal(status.exited_ms, 0);
	assert_true(status.signal == 0 && status.memory_kills == 0 && !status.timed_out);
	assert_true(keeper_status_read_exit("exited 137 1 2 3 9 4 1", &status));
	assert_true(status.signal == 9 && status.memory_kills == 4 && status.timed_out);
	unlink(file);
	assert_false(keeper_status_read(file, &status));
	place_remove(path);
}

static const char *variable(const struct run_plan *plan, const char *name)
{
	size_t size = strlen(name);

	for (char **at = plan->spec.environment; *at; at++)
		if (strncmp(*at, name, size) == 0 && (*at)[size] == '=')
			return *at + size + 1;
	return NULL;
}

static void a_model_is_served_by_its_template(void **state)
{
	struct run_settings settings = { .node = "n",
		                         .label = "n",
		                         .allow_root = true,
		                         .default_user = "root",
		                         .port_first = 19000,
		                         .port_last = 19999 };
	struct order_part parts[] = { { "GPU-1", 1000, 1000, false },
		                      { "GPU-2", 2000, 1000, false } };
	const int64_t shares[] = { 500, 400 };
	struct node_order order = { .kind = ORDER_LOAD,
		                    .reservation_id = 1,
		                    .parts = parts,
		                    .part_count = 2,
		                    .payload = "{\"path\":\"/models/it's\"}",
		                    .model = "m",
		                    .runtime = RUNTIME_CUSTOM,
		                    .utilisation = { shares, 2 },
		                    .tensor_parallel = 2,
		                    .context = 4096,
		                    .command = "serve {path} -t {tensor_parallel} -u {utilisation} "
		                               "-c {context} -m {memory_mib} {other}" };
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct run_plan plan;

	(void)state;
	assert_true(run_plan_slot(&arena, &settings, &order, &plan, &error));
	assert_string_equal(plan.spec.arguments[2],
	                    "serve '/models/it'\\''s' -t 2 -u 0.400 -c 4096 "
	                    "-m 3000 {other}");
	assert_in_range(plan.port, 19000, 19999);
	assert_int_equal(atoll(variable(&plan, "PORT")), plan.port);
	assert_string_equal(variable(&plan, "CUDA_VISIBLE_DEVICES"), "GPU-1,GPU-2");
	arena_free(&arena);
}

static void the_guard_is_preloaded_where_there_are_gpus(void **state)
{
	struct run_settings settings = { .node = "n",
		                         .label = "n",
		                         .allow_root = true,
		                         .default_user = "root",
		                         .guard = "/lib/guard.so" };
	struct order_part parts[] = { { "GPU-00112233-4455-6677-8899-aabbccddeeff", 1000, 1000,
		                        false } };
	struct node_order order = {
		.kind = ORDER_START,
		.reservation_id = getpid(),
		.parts = parts,
		.part_count = 1,
		.payload = "{\"command\":[\"x\"],\"environment\":{\"LD_PRELOAD\":\"a.so\"}}"
	};
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct run_plan plan;

	(void)state;
	assert_true(run_plan_task(&arena, &settings, &order, &plan, &error));
	assert_string_equal(variable(&plan, "LD_PRELOAD"), "/lib/guard.so:a.so");
	assert_string_equal(variable(&plan, "GPU_GUARD_LIMITS"),
	                    "GPU-00112233-4455-6677-8899-aabbccddeeff=1000M");
	const char *books = variable(&plan, "GPU_GUARD_SEGMENT");
	if (!guarding_begin(&settings, &order, &plan, &error))
		fail_msg("%s", error.text);
	assert_int_equal(access(books, R_OK), 0);
	guarding_end(&settings, order.reservation_id);
	assert_int_not_equal(access(books, R_OK), 0);
	order.part_count = 0;
	assert_true(run_plan_task(&arena, &settings, &order, &plan, &error));
	assert_string_equal(variable(&plan, "LD_PRELOAD"), "a.so");
	arena_free(&arena);
}

static void a_stranger_cannot_keep_containers_from_the_guard(void **state)
{
	struct run_settings settings = { .node = "n", .label = "test-n", .guard = "/lib/guard.so" };
	struct order_part parts[] = { { "GPU-00112233-4455-6677-8899-aabbccddeeff", 1000, 1000,
		                        false } };
	struct node_order order = { .reservation_id = getpid(), .parts = parts, .part_count = 1 };
	struct run_plan plan = { .container = true, .guarded = true, .spec = { .uid = -1 } };
	struct error error = { 0 };
	static const char path[] = "/dev/shm/gpu-guard-test-n.containers";

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(system("rm -rf /dev/shm/gpu-guard-test-n.containers*"), 0);
	assert_int_equal(mkdir(path, 0777), 0);
	assert_int_equal(mkdir("/dev/shm/gpu-guard-test-n.containers/theirs", 0777), 0);
	assert_int_equal(chown(path, 65534, 65534), 0);
	if (!guarding_begin(&settings, &order, &plan, &error))
		fail_msg("%s", error.text);
	guarding_end(&settings, order.reservation_id);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(system("rm -r /dev/shm/gpu-guard-test-n.containers.not-of-the-agent-*"),
	                 0);
}

static bool is_due(enum guarding guarding, bool whole, bool wanted)
{
	struct run_settings settings = {
		.node = "n", .label = "n", .guard = "g.so", .guarding = guarding
	};
	struct order_part part = { "GPU-1", 1000, 1000, whole };
	struct node_order order = { .parts = &part, .part_count = 1 };

	return guarding_is_due(&settings, &order, wanted);
}

static void works_are_guarded_where_they_share_a_gpu_or_ask_for_it(void **state)
{
	(void)state;
	assert_true(is_due(GUARDING_SHARED, false, false));
	assert_false(is_due(GUARDING_SHARED, true, false));
	assert_true(is_due(GUARDING_SHARED, true, true));
	assert_true(is_due(GUARDING_ALWAYS, true, false));
	assert_false(is_due(GUARDING_NEVER, false, true));
}

static void under_the_guard_a_model_may_use_what_it_reserved(void **state)
{
	struct run_settings settings = { .node = "n",
		                         .label = "n",
		                         .allow_root = true,
		                         .default_user = "root",
		                         .guard = "/lib/guard.so",
		                         .port_first = 19000,
		                         .port_last = 19999 };
	struct order_part parts[] = { { "GPU-00112233-4455-6677-8899-aabbccddeeff", 20480, 250,
		                        false } };
	const int64_t shares[] = { 250 };
	struct node_order order = { .kind = ORDER_LOAD,
		                    .reservation_id = 1,
		                    .parts = parts,
		                    .part_count = 1,
		                    .payload = "",
		                    .model = "m",
		                    .runtime = RUNTIME_VLLM,
		                    .utilisation = { shares, 1 } };
	struct arena arena = { 0 };
	struct error error = { 0 };
	struct run_plan plan;

	(void)state;
	assert_true(run_plan_slot(&arena, &settings, &order, &plan, &error));
	assert_non_null(strstr(plan.spec.arguments[2], "--gpu-memory-utilization 0.950"));
	settings.guarding = GUARDING_NEVER;
	assert_true(run_plan_slot(&arena, &settings, &order, &plan, &error));
	assert_non_null(strstr(plan.spec.arguments[2], "--gpu-memory-utilization 0.250"));
	arena_free(&arena);
}

static void time_slices_are_read_from_the_plugins_configuration(void **state)
{
	(void)state;
	assert_int_equal(time_slices_in("version: v1\n"
	                                "sharing:\n"
	                                "  timeSlicing:\n"
	                                "    resources:\n"
	                                "    - name: nvidia.com/gpu\n"
	                                "      replicas: 99\n"
	                                "  mps:\n"
	                                "    resources:\n"
	                                "    - replicas: 500\n"),
	                 99);
	assert_int_equal(time_slices_in("flags:\n  replicas: 7\n"), 1);
	assert_int_equal(time_slices_in(""), 1);
	assert_int_equal(time_slices_read("/nowhere"), 1);
}

static void an_exporters_page_is_read_sample_by_sample(void **state)
{
	struct text page = text_of("# HELP a b\n"
	                           "a 1\n"
	                           "nonsense line\n"
	                           "b{x=\"1\\\"}\", y = \"two\",} 2.5e1 1700000000\r\n"
	                           "c{open=\"\n"
	                           "d{} NaN\n"
	                           "e{k=\"v\"} -3");
	struct exposed sample;
	struct text value;

	(void)state;
	assert_true(exposition_next(&page, &sample));
	assert_true(text_is(sample.name, "a") && sample.value == 1);
	assert_true(exposition_next(&page, &sample));
	assert_true(text_is(sample.name, "b") && sample.value == 25);
	assert_true(exposition_label(&sample, "x", &value) && text_is(value, "1\\\"}"));
	assert_true(exposition_label(&sample, "y", &value) && text_is(value, "two"));
	assert_false(exposition_label(&sample, "z", &value));
	assert_true(exposition_next(&page, &sample) && text_is(sample.name, "d"));
	assert_true(exposition_next(&page, &sample) && sample.value == -3);
	assert_false(exposition_next(&page, &sample));
}

static const char *fault_by(const char *page)
{
	struct gpu_readings readings = { 0 };
	static char fault[128];

	struct gpu_reading *gpu = gpu_readings_add(&readings);
	gpu->uuid = "GPU-1";
	gpu->healthy = true;
	dcgm_apply(text_of(page), &readings);
	assert_int_equal(gpu->healthy, gpu->reason == NULL);
	snprintf(fault, sizeof(fault), "%s", gpu->reason ? gpu->reason : "");
	gpu_readings_free(&readings);
	return fault;
}

static void what_dcgm_says_is_why_a_gpu_is_failing(void **state)
{
	(void)state;
	assert_string_equal(fault_by("DCGM_EXP_GPU_HEALTH_STATUS{UUID=\"GPU-1\",health_watch="
	                             "\"NVLINK\"} 20\n"),
	                    "DCGM says that it is failing: NVLINK");
	assert_string_equal(
	    fault_by("DCGM_EXP_GPU_HEALTH_STATUS{UUID=\"GPU-1\",health_watch=\"PCIE\"} 10\n"), "");
	assert_string_equal(fault_by("DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-1\"} 79\n"),
	                    "DCGM tells of Xid 79");
	assert_string_equal(fault_by("DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-1\"} 31\n"), "");
	assert_string_equal(fault_by("DCGM_FI_DEV_XID_ERRORS{UUID=\"GPU-2\"} 79\n"), "");
	assert_string_equal(fault_by("DCGM_FI_DEV_ROW_REMAP_FAILURE{UUID=\"GPU-1\"} 1\n"),
	                    "DCGM tells that rows of its memory could not be remapped");
}

static void labels_become_sorted_lines(void **state)
{
	struct arena arena = { 0 };
	struct error error = { 0 };

	(void)state;
	assert_string_equal(labels_read(&arena, "disk=nvme,a=2,disk=ssd", "10.0.0.1", &error),
	                    "a=2\naddress=10.0.0.1\ndisk=ssd");
	assert_string_equal(labels_read(&arena, "address=here", "10.0.0.1", &error),
	                    "address=here");
	assert_string_equal(labels_read(&arena, NULL, NULL, &error), "");
	assert_null(labels_read(&arena, "nothing", NULL, &error));
	assert_true(strstr(error.text, "nothing") != NULL);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_keeps_its_offsets_when_files_go),
		cmocka_unit_test(a_spec_is_read_as_it_was_written),
		cmocka_unit_test(of_a_variable_the_last_value_counts),
		cmocka_unit_test(what_does_not_describe_gpus_is_refused),
		cmocka_unit_test(simulated_gpus_have_what_is_used_of_them),
		cmocka_unit_test(a_filter_allows_what_is_common_or_listed),
		cmocka_unit_test(requests_in_flight_are_read_from_what_runtimes_tell),
		cmocka_unit_test(lines_that_are_not_complete_count_as_not_written),
		cmocka_unit_test(a_model_is_served_by_its_template),
		cmocka_unit_test(labels_become_sorted_lines),
		cmocka_unit_test(an_exporters_page_is_read_sample_by_sample),
		cmocka_unit_test(what_dcgm_says_is_why_a_gpu_is_failing),
		cmocka_unit_test(time_slices_are_read_from_the_plugins_configuration),
		cmocka_unit_test(the_guard_is_preloaded_where_there_are_gpus),
		cmocka_unit_test(a_stranger_cannot_keep_containers_from_the_guard),
		cmocka_unit_test(works_are_guarded_where_they_share_a_gpu_or_ask_for_it),
		cmocka_unit_test(under_the_guard_a_model_may_use_what_it_reserved),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
