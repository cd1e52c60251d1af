/* routes.c - the table of all that can be asked over REST */
#include "api/gateway/token_report.h"
#include "api/job/jobs.h"
#include "api/live/hub.h"
#include "api/live/recorder.h"
#include "api/login/login.h"
#include "api/metrics.h"
#include "api/model/leases.h"
#include "api/model/model_calls.h"
#include "api/node/gpu_history.h"
#include "api/node/node_calls.h"
#include "api/node/window_calls.h"
#include "api/request/parameters.h"
#include "api/request/route.h"
#include "api/scheduler_calls.h"
#include "api/service/pages.h"
#include "api/service/tokens.h"
#include "api/session_calls.h"
#include "api/tenant/accuracy_calls.h"
#include "api/tenant/quota_calls.h"
#include "api/tenant/report_calls.h"
#include "api/tenant/tenant_calls.h"

enum { BULK_BYTES = 64 << 20, INPUT_BYTES = 128 << 10, PUBLIC_BYTES = 8 << 10 };

/* The first is the one that is asked most. */
const struct route routes[] = {
	{ METHOD_POST, "/api/v1/jobs", ACCESS_CHANGE, jobs_submit, BULK_BYTES, "mode check" },
	{ METHOD_GET, "/api/v1/jobs", ACCESS_READ, jobs_list, 0,
	  "tenant_id state name label user sort limit offset after" },
	{ METHOD_GET, "/api/v1/jobs/{id}", ACCESS_READ, jobs_get, 0, "" },
	{ METHOD_DELETE, "/api/v1/jobs/{id}", ACCESS_CHANGE, jobs_cancel, 0, "" },
	{ METHOD_GET, "/api/v1/jobs/{id}/why", ACCESS_READ, jobs_why, 0, "trace decision" },
	{ METHOD_GET, "/api/v1/jobs/{id}/events", ACCESS_READ, jobs_events, 0, "since limit" },
	{ METHOD_GET, "/api/v1/jobs/{id}/runs", ACCESS_READ, jobs_runs, 0, "" },
	{ METHOD_GET, "/api/v1/jobs/{id}/logs", ACCESS_READ, jobs_logs, 0,
	  "task run follow tail offset stream" },
	{ METHOD_POST, "/api/v1/jobs/{id}/input", ACCESS_CHANGE, jobs_input, INPUT_BYTES,
	  "task offset end" },
	{ METHOD_POST, "/api/v1/jobs/{id}/sessions", ACCESS_CHANGE, job_sessions_open, 0, "" },
	{ METHOD_GET, "/api/v1/jobs/{id}/sessions/{session}", ACCESS_CHANGE, job_sessions_attach, 0,
	  "task offset" },
	{ METHOD_GET, "/api/v1/jobs/{id}/forward", ACCESS_CHANGE, job_sessions_forward, 0,
	  "task port" },
	{ METHOD_POST, "/api/v1/jobs/{id}/hold", ACCESS_CHANGE, jobs_hold, 0, "" },
	{ METHOD_POST, "/api/v1/jobs/{id}/release", ACCESS_CHANGE, jobs_release, 0, "" },
	{ METHOD_POST, "/api/v1/jobs/{id}/requeue", ACCESS_CHANGE, jobs_requeue, 0, "" },
	{ METHOD_POST, "/api/v1/jobs/{id}/suspend", ACCESS_CHANGE, jobs_suspend, 0, "" },
	{ METHOD_POST, "/api/v1/jobs/{id}/resume", ACCESS_CHANGE, jobs_resume, 0, "" },
	{ METHOD_PUT, "/api/v1/jobs/{id}/priority", ACCESS_CHANGE, jobs_priority, 0, "" },
	{ METHOD_POST, "/api/v1/tenants", ACCESS_ADMIN, tenant_calls_create, 0, "" },
	{ METHOD_GET, "/api/v1/tenants", ACCESS_READ, tenant_calls_list, 0, "limit offset after" },
	{ METHOD_GET, "/api/v1/tenants/{id}", ACCESS_READ, tenant_calls_get, 0, "" },
	{ METHOD_PUT, "/api/v1/tenants/{id}", ACCESS_ADMIN, tenant_calls_put, 0, "" },
	{ METHOD_DELETE, "/api/v1/tenants/{id}", ACCESS_ADMIN, tenant_calls_delete, 0, "" },
	{ METHOD_POST, "/api/v1/models", ACCESS_CHANGE, model_calls_create, 0, "" },
	{ METHOD_GET, "/api/v1/models", ACCESS_READ, model_calls_list, 0, "limit offset after" },
	{ METHOD_GET, "/api/v1/models/{id}", ACCESS_READ, model_calls_get, 0, "" },
	{ METHOD_PUT, "/api/v1/models/{id}", ACCESS_CHANGE, model_calls_put, 0, "" },
	{ METHOD_DELETE, "/api/v1/models/{id}", ACCESS_CHANGE, model_calls_delete, 0, "" },
	{ METHOD_GET, "/api/v1/models/{id}/why", ACCESS_READ, model_calls_why, 0, "" },
	{ METHOD_GET, "/api/v1/models/{id}/logs", ACCESS_READ, model_calls_logs, 0,
	  "slot follow tail offset stream" },
	{ METHOD_POST, "/api/v1/models/{id}/evict", ACCESS_CHANGE, model_calls_evict, 0,
	  "node now" },
	{ METHOD_POST, "/api/v1/models/{id}/leases", ACCESS_CHANGE, leases_create, 0,
	  "wait lease" },
	{ METHOD_GET, "/api/v1/leases/{id}", ACCESS_READ, leases_show, 0, "" },
	{ METHOD_DELETE, "/api/v1/leases/{id}", ACCESS_CHANGE, leases_delete, 0, "failed" },
	{ METHOD_POST, "/api/v1/leases/{id}/renew", ACCESS_CHANGE, leases_renew, 0, "lease" },
	{ METHOD_POST, "/api/v1/tokens", ACCESS_MANAGE, tokens_create, 0, "" },
	{ METHOD_GET, "/api/v1/tokens", ACCESS_MANAGE, tokens_list, 0, "" },
	{ METHOD_DELETE, "/api/v1/tokens/{id}", ACCESS_MANAGE, tokens_revoke, 0, "" },
	{ METHOD_POST, "/api/v1/windows", ACCESS_ADMIN, window_calls_create, 0, "" },
	{ METHOD_GET, "/api/v1/windows", ACCESS_READ, window_calls_list, 0, "" },
	{ METHOD_GET, "/api/v1/windows/{id}", ACCESS_READ, window_calls_get, 0, "" },
	{ METHOD_DELETE, "/api/v1/windows/{id}", ACCESS_ADMIN, window_calls_delete, 0, "" },
	{ METHOD_GET, "/api/v1/audit", ACCESS_ADMIN, audit_calls_list, 0, "limit before" },
	{ METHOD_GET, "/api/v1/nodes", ACCESS_READ, node_calls_list, 0, "limit offset after" },
	{ METHOD_GET, "/api/v1/nodes/{id}", ACCESS_READ, node_calls_get, 0, "" },
	{ METHOD_DELETE, "/api/v1/nodes/{id}", ACCESS_ADMIN, node_calls_remove, 0, "" },
	{ METHOD_POST, "/api/v1/nodes/{id}/drain", ACCESS_ADMIN, node_calls_drain, 0, "reason" },
	{ METHOD_POST, "/api/v1/nodes/{id}/resume", ACCESS_ADMIN, node_calls_resume, 0, "" },
	{ METHOD_POST, "/api/v1/nodes/{id}/dead", ACCESS_ADMIN, node_calls_dead, 0, "" },
	{ METHOD_GET, "/api/v1/gpus", ACCESS_READ, node_calls_gpus, 0,
	  "node limit offset after holders" },
	{ METHOD_GET, "/api/v1/gpus/history", ACCESS_READ, gpu_history_get, 0, "from node" },
	{ METHOD_GET, "/api/v1/history", ACCESS_READ, recorder_get, 0, "period gpu" },
	{ METHOD_GET, "/api/v1/runners/{id}/status", ACCESS_READ, node_calls_runner, 0, "" },
	{ METHOD_GET, "/api/v1/scheduler/decisions", ACCESS_READ, scheduler_calls_decisions, 0,
	  "job node model type explain limit offset after" },
	{ METHOD_GET, "/api/v1/scheduler/slots", ACCESS_READ, scheduler_calls_slots, 0, "" },
	{ METHOD_GET, "/api/v1/scheduler/queue", ACCESS_READ, scheduler_calls_queue, 0,
	  "tenant_id limit offset after reasons" },
	{ METHOD_GET, "/api/v1/session", ACCESS_READ, session_calls_get, 0, "" },
	{ METHOD_GET, "/api/v1/login", ACCESS_ANYONE, login_about, 0, "" },
	{ METHOD_GET, "/api/v1/login/start", ACCESS_ANYONE, login_start, 0, "" },
	{ METHOD_GET, "/api/v1/login/callback", ACCESS_ANYONE, login_callback, 0, PARAMETERS_ANY },
	{ METHOD_POST, "/api/v1/login/device", ACCESS_ANYONE, login_device, PUBLIC_BYTES, "" },
	{ METHOD_POST, "/api/v1/login/device/token", ACCESS_ANYONE, login_device_token,
	  PUBLIC_BYTES, "" },
	{ METHOD_POST, "/api/v1/logout", ACCESS_SIGNED_IN, login_out, PUBLIC_BYTES, "" },
	{ METHOD_GET, "/api/v1/cluster/status", ACCESS_READ, cluster_status, 0, "" },
	{ METHOD_GET, "/api/v1/tenants/{id}/usage", ACCESS_READ, report_calls_usage, 0,
	  "from to format" },
	{ METHOD_GET, "/api/v1/reports/billing", ACCESS_READ, report_calls_billing, 0,
	  "from to format" },
	{ METHOD_GET, "/api/v1/reports/jobs", ACCESS_READ, report_calls_jobs, 0,
	  "from to tenant_id limit after" },
	{ METHOD_GET, "/api/v1/reports/owners", ACCESS_READ, report_calls_owners, 0,
	  "from to tenant_id limit" },
	{ METHOD_GET, "/api/v1/reports/predictions", ACCESS_READ, accuracy_calls_get, 0,
	  "from to tenant_id" },
	{ METHOD_GET, "/api/v1/reports/quotas", ACCESS_READ, quota_calls_get, 0, "tenant_id" },
	{ METHOD_GET, "/api/v1/reports/tokens", ACCESS_READ, token_report_get, 0,
	  "from to tenant_id" },
	{ METHOD_GET, "/metrics", ACCESS_READ, metrics_get, 0, "" },
	{ METHOD_GET, "/api/v1/stream", ACCESS_READ, hub_listen, 0, "topics tenant_id since" },
	{ METHOD_GET, "/api/v1/health", ACCESS_ANYONE, cluster_health, 0, "" },
	{ METHOD_GET, "/health", ACCESS_ANYONE, cluster_health, 0, "" },
	{ METHOD_GET, "/openapi.json", ACCESS_ANYONE, pages_openapi, 0, "" },
	{ METHOD_GET, "/api/v1/openapi.json", ACCESS_ANYONE, pages_openapi, 0, "" },
	{ METHOD_GET, "/", ACCESS_ANYONE, pages_dashboard, 0, PARAMETERS_ANY },
	{ METHOD_GET, "/assets/{name}", ACCESS_ANYONE, pages_asset, 0, PARAMETERS_ANY },
	{ METHOD_OTHER, NULL, ACCESS_ADMIN, NULL, 0, "" },
};
