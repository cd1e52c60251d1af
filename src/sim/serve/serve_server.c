/* serve_server.c - servers of models on GPUs, by the lengths of their steps */
#include "sim/serve/serve_server.h"

#include "base/number.h"

#define PREFILL_TOKENS 8192
#define ANSWER_BOOKED 1.3 /* times the mean */

void server_begin(struct server *server, const struct serve_kind *kind, double kv_gb,
                  double mean_output)
{
	*server = (struct server){ .kind = kind,
		                   .kv_tokens = (int64_t)(kv_gb * 1e9 / kind->kv_bytes),
		                   .mean_output = mean_output,
		                   .queue_first = SIZE_MAX,
		                   .queue_last = SIZE_MAX };
}

void server_add(struct server *server, struct served *all, size_t request)
{
	all[request].next = SIZE_MAX;
	if (server->queue_last == SIZE_MAX)
		server->queue_first = request;
	else
		all[server->queue_last].next = request;
	server->queue_last = request;
}

bool server_has_work(const struct server *server)
{
	return server->count > 0 || server->queue_first != SIZE_MAX;
}

/* Lets in what there is room for; tokens of the prompts. */
static int64_t admit(struct server *server, struct served *all)
{
	int64_t tokens = 0;

	while (server->queue_first != SIZE_MAX && server->count < SERVER_BATCH_MAX) {
		struct served *next = &all[server->queue_first];
		int64_t need = next->input + (int64_t)(ANSWER_BOOKED * server->mean_output);
		if (server->count > 0 && (server->kv_used + need > server->kv_tokens ||
		                          (tokens > 0 && tokens + next->input > PREFILL_TOKENS)))
			break;
		next->booked = need;
		server->kv_used += need;
		tokens += next->input;
		server->running[server->count++] = server->queue_first;
		server->queue_first = next->next;
		if (server->queue_first == SIZE_MAX)
			server->queue_last = SIZE_MAX;
	}
	return tokens;
}

int64_t server_step(struct server *server, struct served *all)
{
	const struct serve_kind *kind = server->kind;
	double context = 0, ms;

	server->prefilled = server->count;
	int64_t prompt = admit(server, all);
	server->prefills = server->count > server->prefilled;
	if (server->prefills) {
		ms = kind->prefill_ms + kind->prefill_token_ms * (double)prompt;
	} else {
		for (int i = 0; i < server->count; i++)
			context += (double)(all[server->running[i]].input +
			                    all[server->running[i]].tokens);
		ms = kind->decode_ms + kind->decode_context_ms * context +
		     kind->decode_request_ms * (double)server->count;
	}
	return max64((int64_t)(ms * 1000), 1);
}

int server_end_step(struct server *server, struct served *all, int64_t now_us, size_t *ended)
{
	int from = server->prefills ? server->prefilled : 0, kept = from, count = 0;

	for (int i = from; i < server->count; i++) {
		struct served *request = &all[server->running[i]];
		if (request->tokens++ == 0)
			request->first_us = now_us;
		request->last_us = now_us;
		if (request->tokens >= request->output) {
			server->kv_used -= request->booked;
			ended[count++] = server->running[i];
			continue;
		}
		server->running[kept++] = server->running[i];
	}
	server->count = kept;
	return count;
}
