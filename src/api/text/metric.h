/* metric.h - the metrics: one table, from which /metrics and the documentation follow */
#ifndef API_TEXT_METRIC_H
#define API_TEXT_METRIC_H

#include <stdint.h>

#include "base/buffer.h"

/* A row is a metric: symbol, kind, name after "gpu_scheduler_", labels ("" without any) and
 * one line of help. /metrics and the table in docs/monitoring.md list them in this order.
 * After adding a row, print it where its value is known and run scripts/doc-tables. */
/* clang-format off */
#define METRICS(M)                                                                                 \
	M(JOBS, GAUGE, "jobs", "state", "Jobs in each state, archived ones included.")             \
	M(JOBS_TOTAL, COUNTER, "jobs_total", "state",                                              \
	  "Jobs that entered the state since the service started; a job enters a state each "      \
	  "time it changes to it.")                                                                \
	M(QUEUE_SIZE, GAUGE, "queue_size", "", "Jobs waiting.")                                    \
	M(TENANT_GPUS, GAUGE, "tenant_gpus", "tenant",                                             \
	  "GPUs held by the tenant and the tenants below it.")                                     \
	M(TENANT_FAIR_SHARE_GPUS, GAUGE, "tenant_fair_share_gpus", "tenant",                       \
	  "GPUs that are the tenant's fair share.")                                                \
	M(TENANT_QUOTA_GPUS, GAUGE, "tenant_quota_gpus", "tenant",                                 \
	  "GPUs guaranteed to the tenant, where a quota is set.")                                  \
	M(TENANT_LIMIT_GPUS, GAUGE, "tenant_limit_gpus", "tenant",                                 \
	  "GPUs the tenant may hold, where a limit is set.")                                       \
	M(TENANT_RUNNING_JOBS, GAUGE, "tenant_running_jobs", "tenant",                             \
	  "Jobs that hold resources.")                                                             \
	M(TENANT_WAITING_JOBS, GAUGE, "tenant_waiting_jobs", "tenant", "Jobs waiting.")            \
	M(TENANT_GPU_SECONDS_TOTAL, COUNTER, "tenant_gpu_seconds_total", "tenant",                 \
	  "GPU time used.")                                                                        \
	M(TENANT_COST_TOTAL, COUNTER, "tenant_cost_total", "tenant", "Cost of GPU time and tokens.")       \
	M(MODEL_REQUESTS_TOTAL, COUNTER, "model_requests_total", "tenant, model",                  \
	  "Requests to models that gateways counted, with the tenant that asked.")                 \
	M(MODEL_TOKENS_TOTAL, COUNTER, "model_tokens_total", "tenant, model, kind",                \
	  "Tokens of those requests: prompt, cached (a part of it) or completion.")                \
	M(MODEL_TOKEN_COST_TOTAL, COUNTER, "model_token_cost_total", "tenant, model",              \
	  "What tenants were charged for tokens.")                                                 \
	M(NODES, GAUGE, "nodes", "state", "Nodes in each state.")                                  \
	M(SLOTS, GAUGE, "slots", "state", "Slots of models in each state.")                        \
	M(GPU_UTILIZATION, GAUGE, "gpu_utilization", "node, gpu",                                  \
	  "Utilization of the GPU, from 0 to 1.")                                                  \
	M(GPU_TEMPERATURE_CELSIUS, GAUGE, "gpu_temperature_celsius", "node, gpu",                  \
	  "Temperature of the GPU.")                                                               \
	M(GPU_POWER_WATTS, GAUGE, "gpu_power_watts", "node, gpu", "Power drawn by the GPU.")       \
	M(GPU_SM_ACTIVE, GAUGE, "gpu_sm_active", "node, gpu",                                      \
	  "Share of time in which multiprocessors are active, from 0 to 1.")                       \
	M(GPU_DRAM_ACTIVE, GAUGE, "gpu_dram_active", "node, gpu",                                  \
	  "Share of time in which memory is active, from 0 to 1.")                                 \
	M(GPU_MEMORY_BYTES, GAUGE, "gpu_memory_bytes", "node, gpu, kind",                          \
	  "Memory of the GPU: its capacity, and what occupies it by kind.")                        \
	M(GPU_UNEXPLAINED_MEMORY_BYTES, GAUGE, "gpu_unexplained_memory_bytes", "node, gpu",            \
	  "External memory of the GPU that no process explains.")                                 \
	M(GPU_LOADING_SECONDS_TOTAL, COUNTER, "gpu_loading_seconds_total", "node, gpu",            \
	  "Time in which models were loaded onto the GPU: its rate is the share of time spent "    \
	  "loading.")                                                                              \
	M(PROMISED_STARTS_TOTAL, COUNTER, "promised_starts_total", "outcome",                      \
	  "Jobs that started after a start had been promised: as promised (kept) or later "       \
	  "(late). Nine of ten should be kept.")                                                   \
	M(PREDICTED_JOBS_TOTAL, COUNTER, "predicted_jobs_total", "basis, outcome",                 \
	  "Finished jobs by what they were predicted by: took no longer than predicted for nine "  \
	  "of ten (within_p90), or longer.")                                                       \
	M(CLOSELY_PREDICTED_JOBS_TOTAL, COUNTER, "closely_predicted_jobs_total", "basis",          \
	  "Those of them that took half to twice the predicted median.")                           \
	M(SCHEDULING_LATENCY, HISTOGRAM, "scheduling_latency", "le",                               \
	  "Seconds from queued to placed. The older name of scheduling_latency_seconds.")          \
	M(SCHEDULING_LATENCY_SECONDS, HISTOGRAM, "scheduling_latency_seconds", "le",               \
	  "Time from queued to placed.")                                                           \
	M(PREEMPTIONS_TOTAL, COUNTER, "preemptions_total", "", "Jobs stopped to make room.")       \
	M(TASK_NOTICES_TOTAL, COUNTER, "task_notices_total", "kind",                               \
	  "Tasks that nodes reported: over their reservation, idle on their GPUs, without "        \
	  "the guard, crowded by others, or beside memory that nobody explains.")                                                      \
	M(NODE_MISREPORTS_TOTAL, COUNTER, "node_misreports_total", "",                             \
	  "Reports of nodes about work, GPUs or addresses that are not theirs.")                   \
	M(SUBMISSIONS_TOTAL, COUNTER, "submissions_total", "", "Jobs accepted.")                   \
	M(LEADING, GAUGE, "leading", "", "1 if this scheduler is the active one.")                 \
	M(STORE_OK, GAUGE, "store_ok", "", "1 if the store can commit.")                           \
	M(STORE_COMMITS_TOTAL, COUNTER, "store_commits_total", "", "Transactions committed.")      \
	M(STORE_COMMANDS_TOTAL, COUNTER, "store_commands_total", "", "Commands committed.")        \
	M(STORE_ROWS_TOTAL, COUNTER, "store_rows_total", "", "Rows written.")                      \
	M(PASSES_TOTAL, COUNTER, "passes_total", "", "Scheduling passes.")                         \
	M(PASS_SECONDS_TOTAL, COUNTER, "pass_seconds_total", "", "Time spent in passes.")          \
	M(CLOCK_OFFSET_SECONDS, GAUGE, "clock_offset_seconds", "",                                 \
	  "How far the system clock has jumped from the scheduler's time; 0 where they agree.")    \
	M(CLOCK_STEPS_TOTAL, COUNTER, "clock_steps_total", "", "Jumps of the system clock.")       \
	M(ASKS_WAITING, GAUGE, "asks_waiting", "", "Requests waiting for the core.")               \
	M(CONNECTIONS, GAUGE, "connections", "", "Open connections.")                              \
	M(CONNECTIONS_TOTAL, COUNTER, "connections_total", "", "Connections accepted.")            \
	M(CONNECTIONS_REFUSED_TOTAL, COUNTER, "connections_refused_total", "",                     \
	  "Connections refused by a limit.")                                                       \
	M(CONNECTIONS_SHED_TOTAL, COUNTER, "connections_shed_total", "",                           \
	  "Connections closed to free memory or a place for others.")                              \
	M(DESCRIPTORS_EXHAUSTED_TOTAL, COUNTER, "descriptors_exhausted_total", "",                 \
	  "Connections closed for want of a file descriptor.")                                     \
	M(REQUESTS_IN_FLIGHT, GAUGE, "requests_in_flight", "",                                     \
	  "Requests being received or served.")                                                    \
	M(CALLS_IN_FLIGHT, GAUGE, "calls_in_flight", "", "API requests not answered yet.")         \
	M(BUFFERED_BYTES, GAUGE, "buffered_bytes", "",                                             \
	  "Memory of requests being received or served.")                                          \
	M(HELD_BYTES, GAUGE, "held_bytes", "", "Memory of answers that clients have not read.")    \
	M(ANSWERS_DROPPED_TOTAL, COUNTER, "answers_dropped_total", "",                             \
	  "Answers dropped because too many were not read.")                                       \
	M(RECEIVED_BYTES_TOTAL, COUNTER, "received_bytes_total", "", "Bytes received.")            \
	M(SENT_BYTES_TOTAL, COUNTER, "sent_bytes_total", "", "Bytes sent.")                        \
	M(PROTOCOL_ERRORS_TOTAL, COUNTER, "protocol_errors_total", "",                             \
	  "Connections that broke a protocol.")                                                    \
	M(STREAM_LISTENERS, GAUGE, "stream_listeners", "", "WebSockets of live events.")           \
	M(STREAM_EVENTS_TOTAL, COUNTER, "stream_events_total", "", "Live events sent.")            \
	M(STREAM_MISSED_TOTAL, COUNTER, "stream_missed_total", "",                                 \
	  "Live events that slow listeners were told they missed.")                                \
	M(HTTP_REQUESTS_TOTAL, COUNTER, "http_requests_total", "method, path, status",             \
	  "Requests by route and class of status.")                                                \
	M(HTTP_REQUEST_DURATION_SECONDS, HISTOGRAM, "http_request_duration_seconds",               \
	  "method, path, le", "Time from the end of the request's head to the answer.")            \
	M(SIGN_IN_FAILURES_TOTAL, COUNTER, "sign_in_failures_total", "method, reason",             \
	  "Requests refused because their credential was missing or not valid.")                   \
	M(NOTIFICATIONS_TOTAL, COUNTER, "notifications_total", "", "Notifications delivered.")     \
	M(NOTIFICATIONS_FAILED_TOTAL, COUNTER, "notifications_failed_total", "",                   \
	  "Notifications given up.")                                                               \
	M(NOTIFICATIONS_WAITING, GAUGE, "notifications_waiting", "", "Notifications to deliver.")  \
	M(BUILD_INFO, GAUGE, "build_info", "version", "1, with the version of the program.")
/* clang-format on */

#define METRIC_SYMBOL(symbol, ...) METRIC_##symbol,
enum metric { METRICS(METRIC_SYMBOL) METRIC_COUNT };

/* The whole name, "gpu_scheduler_..." */
const char *metric_name(enum metric metric);

/* Appends the HELP and TYPE lines that come before the values of a metric. */
void metric_head(struct buffer *text, enum metric metric);
/* Appends a metric without labels: head and value. */
void metric_put_integer(struct buffer *text, enum metric metric, int64_t value);
void metric_put_decimal(struct buffer *text, enum metric metric, double value, int places);

/* Appends the table of all metrics in Markdown. */
void metrics_describe(struct buffer *text);

#endif
