/* estimate_report.c - estimates for several splits of a model, for people and programs */
#include "cli/job/estimate_report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/text/table.h"
#include "estimate/amount.h"

enum { COLUMNS = 8, LEFT_COLUMNS = 3 };

static bool is_possible(const struct estimate_split *split)
{
	return split->reason.code == ERROR_NONE;
}

static void print_model(const struct estimate_report *report)
{
	const struct blueprint *blueprint = report->blueprint;
	const struct estimate_request *request = &report->splits[0].request;
	if (blueprint->name[0])
		printf("%s: ", blueprint->name);
	printf("%s, %lld layers, %lld parameters, %lld MiB of weights",
	       blueprint->architecture[0] ? blueprint->architecture : "model",
	       (long long)blueprint->layer_count, (long long)blueprint->parameters,
	       (long long)amount_mib(blueprint->weight_bytes));
	if (blueprint->value_type[0])
		printf(", %s", blueprint->value_type);
	printf("\n%s: %lld request%s of %lld tokens, cache of keys %s and values %s\n",
	       estimate_runtime_name(request->runtime), (long long)request->parallel,
	       request->parallel == 1 ? "" : "s", (long long)request->context_tokens,
	       request->key_type->name, request->value_type->name);
	if (blueprint->context_length > 0 && request->context_tokens > blueprint->context_length)
		printf("note: the model was made for %lld tokens\n",
		       (long long)blueprint->context_length);
	putchar('\n');
}

static void estimate_add_row(struct table *table, const struct estimate_gpu *gpu)
{
	for (int part = 0; part < ESTIMATE_PARTS; part++)
		table_cell(table, "%lld MiB", (long long)gpu->line[part].mib);
	table_cell(table, "%lld MiB", (long long)gpu->total_mib);
	table_end_row(table);
}

static void add_layers(struct table *table, const struct estimate_gpu *gpu)
{
	const char *output = gpu->has_output ? " + output" : "";
	if (gpu->layers == 0)
		table_cell(table, "none%s", output);
	else
		table_cell(table, "%lld-%lld%s", (long long)gpu->first_layer,
		           (long long)(gpu->first_layer + gpu->layers - 1), output);
}

/* Layers that are divided are divided evenly: one row stands for all GPUs. */
static void add_divided(struct table *table, const struct estimate *estimate)
{
	table_cell(table, "%d", estimate->gpus);
	table_cell(table, "%s", estimate->gpus > 1 ? "each" : "0");
	table_cell(table, "all");
	estimate_add_row(table, &estimate->gpu[0]);
}

static void add_dealt(struct table *table, const struct estimate *estimate)
{
	for (int i = 0; i < estimate->gpus; i++) {
		if (i == 0)
			table_cell(table, "%d", estimate->gpus);
		else
			table_cell(table, "%s", "");
		table_cell(table, "%d", i);
		add_layers(table, &estimate->gpu[i]);
		estimate_add_row(table, &estimate->gpu[i]);
	}
}

static void add_sum(struct table *table, const struct estimate *estimate)
{
	table_cell(table, "%s", "");
	table_cell(table, "sum");
	for (int i = 2; i < COLUMNS - 1; i++)
		table_cell(table, "%s", "");
	table_cell(table, "%lld MiB", (long long)estimate->total_mib);
	table_end_row(table);
}

static void add_split(struct table *table, const struct estimate_split *split)
{
	if (!is_possible(split)) {
		table_cell(table, "%d", split->request.gpus);
		table_cell(table, "-");
		table_cell(table, "not possible");
		table_end_row(table);
		return;
	}
	if (split->request.runtime == RUNTIME_VLLM)
		add_divided(table, &split->estimate);
	else
		add_dealt(table, &split->estimate);
	if (split->estimate.gpus > 1)
		add_sum(table, &split->estimate);
}

static void print_arithmetic(const struct estimate_split *split)
{
	const struct estimate *estimate = &split->estimate;
	int shown = split->request.runtime == RUNTIME_VLLM ? 1 : estimate->gpus;
	for (int i = 0; i < shown; i++) {
		printf("\n%d GPU%s, %s %d:\n", estimate->gpus, estimate->gpus > 1 ? "s" : "",
		       shown < estimate->gpus ? "each like GPU" : "GPU", i);
		for (int part = 0; part < ESTIMATE_PARTS; part++)
			printf("  %-8s  %8lld MiB  %s\n",
			       estimate_part_name((enum estimate_part)part),
			       (long long)estimate->gpu[i].line[part].mib,
			       estimate->gpu[i].line[part].text);
	}
}

void estimate_report_table(const struct estimate_report *report)
{
	static const char *const titles[COLUMNS] = { "GPUS",  "GPU",   "LAYERS",   "WEIGHTS",
		                                     "CACHE", "GRAPH", "OVERHEAD", "TOTAL" };
	struct table table = { .columns = COLUMNS,
		               .right = (1U << COLUMNS) - (1U << LEFT_COLUMNS) };
	int64_t host_mib = 0;
	print_model(report);
	for (int i = 0; i < COLUMNS; i++)
		table_cell(&table, "%s", titles[i]);
	for (int i = 0; i < report->count; i++)
		add_split(&table, &report->splits[i]);
	table_print(&table, stdout);
	table_free(&table);
	for (int i = 0; i < report->count; i++) {
		const struct estimate_split *split = &report->splits[i];
		if (is_possible(split))
			host_mib = split->estimate.host_mib;
		else
			printf("\n%d GPUs: %s\n", split->request.gpus, split->reason.text);
	}
	if (host_mib > 0)
		printf("\nThe embedding of tokens stays in the host's memory: %lld MiB.\n",
		       (long long)host_mib);
	for (int i = 0; report->explain && i < report->count; i++) {
		if (is_possible(&report->splits[i]))
			print_arithmetic(&report->splits[i]);
	}
}

static void estimate_report_put_number(json_t *object, const char *name, int64_t number)
{
	json_object_set_new(object, name, json_integer(number));
}

/* Texts come from files, and need not be UTF-8. */
static void estimate_report_put_text(json_t *object, const char *name, const char *text)
{
	json_t *value = json_string(text);
	json_object_set_new(object, name, value ? value : json_null());
}

static json_t *gpu_json(const struct estimate_gpu *gpu, int number, bool explain)
{
	json_t *json = json_object();
	estimate_report_put_number(json, "gpu", number);
	estimate_report_put_number(json, "first_layer", gpu->first_layer);
	estimate_report_put_number(json, "layers", gpu->layers);
	json_object_set_new(json, "output", json_boolean(gpu->has_output));
	for (int part = 0; part < ESTIMATE_PARTS; part++) {
		char name[32];
		snprintf(name, sizeof(name), "%s_mib",
		         estimate_part_name((enum estimate_part)part));
		estimate_report_put_number(json, name, gpu->line[part].mib);
	}
	estimate_report_put_number(json, "total_mib", gpu->total_mib);
	if (!explain)
		return json;
	json_t *arithmetic = json_object();
	for (int part = 0; part < ESTIMATE_PARTS; part++)
		estimate_report_put_text(arithmetic, estimate_part_name((enum estimate_part)part),
		                         gpu->line[part].text);
	json_object_set_new(json, "arithmetic", arithmetic);
	return json;
}

static json_t *split_json(const struct estimate_split *split, bool explain)
{
	json_t *json = json_object();
	estimate_report_put_number(json, "gpus", split->request.gpus);
	json_object_set_new(json, "possible", json_boolean(is_possible(split)));
	if (!is_possible(split)) {
		estimate_report_put_text(json, "reason", split->reason.text);
		return json;
	}
	const struct estimate *estimate = &split->estimate;
	json_t *gpus = json_array();
	estimate_report_put_number(json, "total_mib", estimate->total_mib);
	estimate_report_put_number(json, "largest_mib", estimate->largest_mib);
	estimate_report_put_number(json, "host_mib", estimate->host_mib);
	for (int i = 0; i < estimate->gpus; i++)
		json_array_append_new(gpus, gpu_json(&estimate->gpu[i], i, explain));
	json_object_set_new(json, "per_gpu", gpus);
	return json;
}

static json_t *model_json(const struct blueprint *blueprint)
{
	json_t *json = json_object();
	estimate_report_put_text(json, "name", blueprint->name);
	estimate_report_put_text(json, "architecture", blueprint->architecture);
	estimate_report_put_number(json, "layers", blueprint->layer_count);
	estimate_report_put_number(json, "parameters", blueprint->parameters);
	estimate_report_put_number(json, "weight_bytes", blueprint->weight_bytes);
	estimate_report_put_number(json, "context_length", blueprint->context_length);
	return json;
}

void estimate_report_json(const struct estimate_report *report)
{
	const struct estimate_request *request = &report->splits[0].request;
	json_t *json = json_object();
	json_t *splits = json_array();
	json_object_set_new(json, "model", model_json(report->blueprint));
	estimate_report_put_text(json, "runtime", estimate_runtime_name(request->runtime));
	estimate_report_put_number(json, "context_tokens", request->context_tokens);
	estimate_report_put_number(json, "parallel", request->parallel);
	estimate_report_put_text(json, "key_type", request->key_type->name);
	estimate_report_put_text(json, "value_type", request->value_type->name);
	for (int i = 0; i < report->count; i++)
		json_array_append_new(splits, split_json(&report->splits[i], report->explain));
	json_object_set_new(json, "splits", splits);
	json_dumpf(json, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(json);
}
