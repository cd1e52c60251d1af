/* resource_test.c - the tables are complete, and fields are found in them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/record/record.h"
#include "resource/resource.h"

/* Calls `check` for each row of all tables, nested ones too. */
static void each_field_of(const struct resource *resource,
                          void (*check)(const struct resource *, const struct resource_field *))
{
	for (int i = 0; i < resource->field_count; i++) {
		check(resource, &resource->fields[i]);
		if (resource->fields[i].nested)
			each_field_of(resource->fields[i].nested, check);
	}
}

static void each_field(void (*check)(const struct resource *, const struct resource_field *))
{
	for (int i = RESOURCE_NESTED + 1; i < RESOURCE_COUNT; i++)
		each_field_of(resources[i], check);
}

static void check_words(const struct resource *resource, const struct resource_field *field)
{
	if (!field->label || !field->help || strlen(field->help) < 3)
		fail_msg("%s.%s has no label or no help", resource->name, field->name);
	if (field->help[strlen(field->help) - 1] == '.')
		fail_msg("%s.%s: the help ends with a period", resource->name, field->name);
	bool has_words = field->kind == VALUE_WORD || field->kind == VALUE_WORDS;
	bool has_nested = field->kind == VALUE_OBJECT || field->kind == VALUE_LIST;
	if (has_words != (field->words != NULL) || has_nested != (field->nested != NULL))
		fail_msg("%s.%s: words or nested fields do not go with the kind", resource->name,
		         field->name);
	bool is_id = field->kind == VALUE_ID || field->kind == VALUE_IDS;
	if (is_id != (field->refers != NULL))
		fail_msg("%s.%s: an id must say of what", resource->name, field->name);
	if (field->least > field->most)
		fail_msg("%s.%s: the range is empty", resource->name, field->name);
}

static void every_field_has_a_label_a_help_and_what_its_kind_needs(void **state)
{
	(void)state;
	each_field(check_words);
}

static void every_resource_is_in_every_interface_or_says_why_not(void **state)
{
	(void)state;
	for (int i = RESOURCE_NESTED + 1; i < RESOURCE_COUNT; i++) {
		const struct resource *resource = resources[i];
		assert_int_equal(resource->id, i);
		assert_non_null(resource->schema);
		if (!resource->reply_message && !resource->no_proto)
			fail_msg("%s is not in gRPC, and the table does not say why",
			         resource->name);
	}
}

static void check_interfaces(const struct resource *resource, const struct resource_field *field)
{
	const char *what = NULL;
	bool settable = field_is_settable(field), shown = !field->hidden;

	if ((resource->request_message && settable && field->proto.request == 0) ||
	    (resource->reply_message && shown && field->proto.reply == 0))
		what = field->proto.absent ? NULL : "gRPC";
	if (settable && !field->option.name && !field->option.absent && !resource->no_option)
		what = "gpu-cli";
	if (settable && field->form.section == SECTION_NONE && !field->form.absent &&
	    !resource->no_form)
		what = "the dashboard";
	if (what)
		fail_msg("%s.%s is not in %s, and the table does not say why", resource->name,
		         field->name, what);
}

static void every_field_is_in_every_interface_or_says_why_not(void **state)
{
	(void)state;
	each_field(check_interfaces);
}

static void check_stored(const struct resource *resource, const struct resource_field *field)
{
	if (!field->stored.is_set)
		return;
	const struct record_type *type = record_type((enum record_kind)field->stored.record);
	for (int i = 0; i < type->field_count; i++)
		if (type->fields[i].offset == field->stored.offset &&
		    (int)type->fields[i].kind == field->stored.kind)
			return;
	fail_msg("%s.%s is stored in a member that record %s does not describe", resource->name,
	         field->name, type->name);
}

static void every_stored_field_is_a_member_of_its_record(void **state)
{
	(void)state;
	each_field(check_stored);
}

static void check_unique(const struct resource *resource, const struct resource_field *field)
{
	for (const struct resource_field *other = resource->fields; other < field; other++) {
		if (strcmp(other->name, field->name) == 0)
			fail_msg("%s.%s is there twice", resource->name, field->name);
		if (field->proto.reply > 0 && other->proto.reply == field->proto.reply)
			fail_msg("%s.%s: another field of the answer has its number",
			         resource->name, field->name);
		int mine[] = { field->proto.request, field->proto.extra };
		int others[] = { other->proto.request, other->proto.extra };
		for (int i = 0; i < 4; i++)
			if (mine[i / 2] > 0 && mine[i / 2] == others[i % 2])
				fail_msg("%s.%s: another field of the request has its number",
				         resource->name, field->name);
	}
}

static void names_and_numbers_are_not_used_twice(void **state)
{
	(void)state;
	each_field(check_unique);
}

static void check_found(const struct resource *resource, const struct resource_field *field)
{
	int at = resource_find(resource, field->name, strlen(field->name));
	assert_int_equal(at, field - resource->fields);
}

static void every_field_is_found_by_its_name(void **state)
{
	(void)state;
	each_field(check_found);
	assert_int_equal(resource_find(&job_resource, "nam", 3), -1);
	assert_int_equal(resource_find(&job_resource, "names", 5), -1);
	assert_int_equal(resource_find(&job_resource, "", 0), -1);
	assert_int_equal(resource_find(&job_resource, "priority2", 8), JOB_FIELD_priority);
	assert_ptr_equal(resource_named("job"), &job_resource);
	assert_null(resource_named("jobs"));
}

static void the_nearest_field_has_the_longest_common_start(void **state)
{
	(void)state;
	assert_string_equal(resource_nearest(&job_resource, "gpu_memory", 10)->name,
	                    "gpu_memory_mb");
	assert_null(resource_nearest(&job_resource, "nx", 2));
	/* Only the service sets node_name. */
	assert_string_equal(resource_nearest(&job_resource, "node_n", 6)->name, "node_labels");
}

static const struct resource_field *job_field(enum job_field at)
{
	return &job_resource.fields[at];
}

static void a_number_out_of_range_is_refused_with_the_range(void **state)
{
	struct error error = { 0 };
	(void)state;
	assert_true(field_check_number(job_field(JOB_FIELD_tasks), 1, &error));
	assert_true(field_check_number(job_field(JOB_FIELD_tasks), TASKS_MAX, &error));
	assert_false(field_check_number(job_field(JOB_FIELD_tasks), 0, &error));
	assert_string_equal(error.text, "tasks must be a whole number from 1 to 4096");
	assert_false(field_check_number(job_field(JOB_FIELD_gpu_fraction), 1001, &error));
	assert_string_equal(error.text,
	                    "gpu_fraction must be a number from 0 to 1 with at most 3 decimals");
	assert_false(field_check_size(job_field(JOB_FIELD_name), 257, &error));
	assert_string_equal(error.text, "name is longer than 256 bytes");
	assert_false(field_refuse(job_field(JOB_FIELD_closeness), &error));
	assert_string_equal(error.text,
	                    "closeness must be \"any\", \"nvlink\", \"node\" or \"rack\"");
}

static void numbers_are_stored_in_the_units_of_the_record(void **state)
{
	struct job_record job = { 0 };
	(void)state;
	field_store_number(job_field(JOB_FIELD_memory_mb), &job, 2);
	field_store_number(job_field(JOB_FIELD_max_runtime_minutes), &job, 1500);
	field_store_number(job_field(JOB_FIELD_closeness), &job, CLOSE_RACK);
	field_store_number(job_field(JOB_FIELD_preemptible), &job, true);
	assert_int_equal(job.host_bytes, 2 << 20);
	assert_int_equal(job.max_runtime_ms, 90000);
	assert_int_equal(job.closeness, CLOSE_RACK);
	assert_true(job.preemptible);
	assert_int_equal(field_load_number(job_field(JOB_FIELD_memory_mb), &job), 2);
	assert_int_equal(field_load_number(job_field(JOB_FIELD_max_runtime_minutes), &job), 1500);
	assert_int_equal(field_word(job_field(JOB_FIELD_closeness), "rack", 4), CLOSE_RACK);
	assert_int_equal(field_word(job_field(JOB_FIELD_closeness), "racks", 5), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_field_has_a_label_a_help_and_what_its_kind_needs),
		cmocka_unit_test(every_resource_is_in_every_interface_or_says_why_not),
		cmocka_unit_test(every_field_is_in_every_interface_or_says_why_not),
		cmocka_unit_test(every_stored_field_is_a_member_of_its_record),
		cmocka_unit_test(names_and_numbers_are_not_used_twice),
		cmocka_unit_test(every_field_is_found_by_its_name),
		cmocka_unit_test(the_nearest_field_has_the_longest_common_start),
		cmocka_unit_test(a_number_out_of_range_is_refused_with_the_range),
		cmocka_unit_test(numbers_are_stored_in_the_units_of_the_record),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
