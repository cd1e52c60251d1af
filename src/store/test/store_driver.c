/* store_driver.c - a process with a real core and a real store, for tests that kill it
 *
 *     store_driver DATABASE NAME SOCKET [JOURNAL-DIRECTORY [REDIS-SOCKET]]
 *
 * It waits until it leads, loads, and serves clients on a socket, line by line:
 *     submit REQUEST KEY GPUS            cancel REQUEST JOB
 *     node REQUEST NAME GPUS RUNNING     this client is the node's agent; RUNNING: 1,2,3 or -
 *     started REQUEST RESERVATION        exited REQUEST RESERVATION CODE
 *     released REQUEST RESERVATION       health REQUEST
 * Answers, once durable, are 'ok REQUEST ID' or 'no REQUEST REASON'; agents are
 * sent 'start TERM RESERVATION JOB TASK' and 'stop TERM RESERVATION JOB TASK'.
 * Whoever connects is greeted with 'hello TERM'.
 * On stdout it says 'leading TERM', 'failing REASON', 'working', 'over REASON'. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "store/redis.h"
#include "store/store.h"
#include "store/writer.h"

enum { CLIENTS_MAX = 64, PASS_MS = 4, NODES_MAX = 64 };

/* A connection. Its number is never used again, so late answers find nobody. */
struct client {
	int file;
	int64_t number;
	struct buffer in, out;
};

/* A request that waits for its answer; `node` where the client becomes an agent. */
struct question {
	int64_t client;
	char id[24];
	char reason[ERROR_TEXT_MAX]; /* not empty: it was refused */
};

/* What the writer's thread has for the clients. */
struct outbox {
	pthread_mutex_t mutex;
	struct buffer lines; /* "CLIENT text\n" or "node NODE-ID text\n" */
	int wake;
};

struct driver {
	struct store *store;
	struct writer *writer;
	struct redis *redis; /* NULL: none */
	struct sched *sched;
	struct effects effects;
	struct outbox outbox;
	struct client clients[CLIENTS_MAX];
	int client_count, listener;
	int64_t last_client;
	struct {
		int64_t node_id, client;
		char name[64];
	} agents[NODES_MAX];
	int agent_count;
	bool changed;
};

static void store_say(const char *word, const char *text)
{
	printf("%s %s\n", word, text);
	fflush(stdout);
}

static void test_store_on_durable(void *context, const struct batch *batch)
{
	struct driver *driver = context;
	struct outbox *outbox = &driver->outbox;
	pthread_mutex_lock(&outbox->mutex);
	for (size_t i = 0; i < batch->outgoing_count; i++) {
		const struct effect *effect = &batch->outgoing[i];
		if (effect->kind != EFFECT_START && effect->kind != EFFECT_STOP)
			continue;
		buffer_print(&outbox->lines, "n %lld %s %lld %lld %lld %lld\n",
		             (long long)effect->order.node_id,
		             effect->kind == EFFECT_START ? "start" : "stop",
		             (long long)effect->order.term, (long long)effect->order.reservation_id,
		             (long long)effect->order.job_id, (long long)effect->order.task);
	}
	for (size_t i = 0; i < batch->reply_count; i++) {
		struct question *request = batch->replies[i].cookie;
		if (!request)
			continue;
		if (*request->reason)
			buffer_print(&outbox->lines, "c %lld no %s %s\n",
			             (long long)request->client, request->id, request->reason);
		else
			buffer_print(&outbox->lines, "c %lld ok %s %lld\n",
			             (long long)request->client, request->id,
			             (long long)batch->replies[i].reply_id);
		free(request);
	}
	pthread_mutex_unlock(&outbox->mutex);
	if (driver->redis)
		redis_publish(driver->redis, batch, store_position(driver->store).batch);
	uint64_t one = 1;
	if (write(outbox->wake, &one, sizeof(one)) < 0 && errno != EAGAIN)
		panic("the main thread cannot be woken");
}

static void test_store_on_failed(void *context, const struct error *error)
{
	(void)context;
	store_say("over", error->text);
	_exit(3);
}

static void store_on_changed(void *context)
{
	struct driver *driver = context;
	struct writer_health health;
	writer_health(driver->writer, &health);
	store_say(health.ok ? "working" : "failing", health.reason);
}

/* Applies a command and hands on what followed; the request may be NULL. */
static bool store_execute(struct driver *driver, struct command command, struct question *request)
{
	struct error error;
	command.now_ms = clock_unix_ms();
	effects_clear(&driver->effects);
	bool applied = sched_apply(driver->sched, &command, &driver->effects, &error);
	if (!applied && !request)
		return false;
	if (!applied)
		memcpy(request->reason, error.text, sizeof(error.text));
	writer_add(driver->writer, applied ? &command : NULL, applied ? &driver->effects : NULL,
	           request);
	driver->changed = driver->changed || (applied && command.kind != COMMAND_PASS);
	for (size_t i = 0; applied && i < driver->effects.count; i++)
		if (driver->effects.at[i].kind == EFFECT_MORE)
			driver->changed = true;
	return applied;
}

static struct client *client_numbered(struct driver *driver, int64_t number)
{
	for (int i = 0; i < driver->client_count; i++)
		if (driver->clients[i].number == number)
			return &driver->clients[i];
	return NULL;
}

static void name_agent(struct driver *driver, const char *name, int64_t client)
{
	for (int i = 0; i < driver->agent_count; i++) {
		if (strcmp(driver->agents[i].name, name) == 0) {
			driver->agents[i].client = client;
			return;
		}
	}
	INVARIANT(driver->agent_count < NODES_MAX);
	snprintf(driver->agents[driver->agent_count].name, 64, "%s", name);
	driver->agents[driver->agent_count++].client = client;
}

/* The core gives nodes their ids; the record says which. */
static void learn_node(struct driver *driver, const char *name)
{
	for (size_t i = 0; i < driver->effects.count; i++) {
		const struct effect *effect = &driver->effects.at[i];
		if (effect->kind != EFFECT_PUT || effect->record_kind != RECORD_NODE)
			continue;
		const struct node_record *node = effect->record;
		for (int j = 0; j < driver->agent_count; j++)
			if (strcmp(driver->agents[j].name, name) == 0 &&
			    strcmp(node->name, name) == 0)
				driver->agents[j].node_id = node->id;
	}
}

static void store_report_node(struct driver *driver, struct question *request, const char *name,
                              int gpus, char *list)
{
	struct device devices[GPUS_PER_NODE_MAX];
	char uuids[GPUS_PER_NODE_MAX][96];
	int64_t running[4096], count = 0;

	name_agent(driver, name, request->client);
	for (int i = 0; i < gpus && i < GPUS_PER_NODE_MAX; i++) {
		snprintf(uuids[i], sizeof(uuids[i]), "GPU-%s-%d", name, i);
		devices[i] = (struct device){ .uuid = uuids[i],
			                      .model = "H100",
			                      .mig_parent = "",
			                      .place = i,
			                      .capacity_mib = 81920,
			                      .healthy = true };
	}
	for (char *word = strtok(list, ",-"); word && count < 4096; word = strtok(NULL, ",-"))
		running[count++] = strtoll(word, NULL, 10);
	store_execute(driver,
	              (struct command){ .kind = COMMAND_NODE_REPORT,
	                                .report = { .name = name,
	                                            .boot = "1",
	                                            .zone = "",
	                                            .rack = "",
	                                            .labels = "",
	                                            .cpu_milli = 1000000,
	                                            .host_bytes = INT64_C(1) << 40,
	                                            .devices = devices,
	                                            .device_count = gpus,
	                                            .running = running,
	                                            .running_count = count,
	                                            .snapshot = true } },
	              request);
	learn_node(driver, name);
}

static void task_fact(struct driver *driver, struct question *request, enum command_kind kind,
                      int64_t reservation, int64_t code)
{
	struct command command = { .kind = kind };
	command.task.reservation_id = reservation;
	command.task.exit_code = code;
	command.task.released = true;
	command.task.message = "";
	store_execute(driver, command, request);
}

static void store_submit(struct driver *driver, struct question *request, const char *key, int gpus)
{
	store_execute(driver,
	              (struct command){ .kind = COMMAND_SUBMIT,
	                                .submit = { .job = { .tenant_id = 1,
	                                                     .name = "crash-test",
	                                                     .payload = "{\"command\":[\"true\"]}",
	                                                     .gpu_kind = GPU_WHOLE,
	                                                     .gpu_count = gpus,
	                                                     .cpu_milli = 1000,
	                                                     .host_bytes = 1 << 20,
	                                                     .gpu_models = "",
	                                                     .node_labels = "",
	                                                     .idempotency_key = key } } },
	              request);
}

static void tell_health(struct driver *driver, struct client *client, const char *id)
{
	struct writer_health health;
	struct redis_health redis = { .ok = true };
	writer_health(driver->writer, &health);
	if (driver->redis)
		redis_health(driver->redis, &redis);
	buffer_print(&client->out, "ok %s %s, redis %s, %lld dropped\n", id,
	             health.ok ? "healthy" : health.reason, redis.ok ? "healthy" : redis.reason,
	             (long long)redis.dropped);
}

static void handle(struct driver *driver, struct client *client, char *line)
{
	char verb[16] = "", id[24] = "", first[64] = "", list[16384] = "";
	long long number = 0;
	int words = sscanf(line, "%15s %23s %63s %lld %16383s", verb, id, first, &number, list);
	if (words < 2 || strcmp(verb, "health") == 0) {
		tell_health(driver, client, id);
		return;
	}
	struct question *request = NEW(struct question);
	request->client = client->number;
	memcpy(request->id, id, sizeof(id));
	if (strcmp(verb, "submit") == 0)
		store_submit(driver, request, first, (int)number);
	else if (strcmp(verb, "cancel") == 0)
		store_execute(
		    driver,
		    (struct command){ .kind = COMMAND_CANCEL, .id = strtoll(first, NULL, 10) },
		    request);
	else if (strcmp(verb, "node") == 0)
		store_report_node(driver, request, first, (int)number, list);
	else if (strcmp(verb, "started") == 0)
		task_fact(driver, request, COMMAND_TASK_STARTED, strtoll(first, NULL, 10), 0);
	else if (strcmp(verb, "exited") == 0)
		task_fact(driver, request, COMMAND_TASK_EXITED, strtoll(first, NULL, 10), number);
	else
		task_fact(driver, request, COMMAND_MEMORY_RELEASED, strtoll(first, NULL, 10), 0);
}

static void flush_client(struct client *client)
{
	ssize_t sent = client->out.size ? send(client->file, client->out.data, client->out.size,
	                                       MSG_NOSIGNAL | MSG_DONTWAIT)
	                                : 0;
	if (sent <= 0)
		return;
	memmove(client->out.data, client->out.data + sent, client->out.size - (size_t)sent);
	client->out.size -= (size_t)sent;
}

/* Hands the writer's lines to whom they are for. */
static void store_deliver(struct driver *driver)
{
	struct outbox *outbox = &driver->outbox;
	uint64_t count;
	if (read(outbox->wake, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&outbox->mutex);
	struct buffer lines = outbox->lines;
	outbox->lines = (struct buffer){ 0 };
	pthread_mutex_unlock(&outbox->mutex);
	char *rest = NULL;
	for (char *line = lines.data ? strtok_r(lines.data, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *text;
		int64_t number = strtoll(line + 2, &text, 10);
		for (int i = 0; *line == 'n' && i < driver->agent_count; i++) {
			if (driver->agents[i].node_id == number) {
				number = driver->agents[i].client;
				break;
			}
		}
		struct client *client = client_numbered(driver, number);
		if (client)
			buffer_print(&client->out, "%s\n", text + 1);
	}
	buffer_free(&lines);
}

static void drop_client(struct driver *driver, int place)
{
	struct client *client = &driver->clients[place];
	close(client->file);
	buffer_free(&client->in);
	buffer_free(&client->out);
	*client = driver->clients[--driver->client_count];
}

static bool read_client(struct driver *driver, struct client *client)
{
	char piece[16384];
	ssize_t count = recv(client->file, piece, sizeof(piece), MSG_DONTWAIT);
	if (count <= 0)
		return count < 0 && errno == EAGAIN;
	buffer_bytes(&client->in, piece, (size_t)count);
	char *at = client->in.data, *end = at + client->in.size, *newline;
	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		*newline = '\0';
		handle(driver, client, at);
		at = newline + 1;
	}
	client->in.size = (size_t)(end - at);
	memmove(client->in.data, at, client->in.size);
	return true;
}

static void take_client(struct driver *driver)
{
	int file = accept(driver->listener, NULL, NULL);
	if (file < 0 || driver->client_count == CLIENTS_MAX)
		panic("a client cannot be taken: %s", strerror(errno));
	driver->clients[driver->client_count++] =
	    (struct client){ .file = file, .number = ++driver->last_client };
	buffer_print(&driver->clients[driver->client_count - 1].out, "hello %lld\n",
	             (long long)sched_meta(driver->sched)->term);
}

/* Clients are not read while there is no room: what they send waits outside. */
static void turn(struct driver *driver)
{
	struct pollfd files[CLIENTS_MAX + 2];
	bool room = writer_has_room(driver->writer, 0);
	int count = driver->client_count;
	for (int i = 0; i < count; i++) {
		short out = driver->clients[i].out.size > 0 ? POLLOUT : 0;
		files[i] = (struct pollfd){ .fd = driver->clients[i].file,
			                    .events = (short)((room ? POLLIN : 0) | out) };
	}
	files[count] = (struct pollfd){ .fd = driver->listener, .events = POLLIN };
	files[count + 1] = (struct pollfd){ .fd = driver->outbox.wake, .events = POLLIN };
	poll(files, (nfds_t)count + 2, PASS_MS);
	if (files[count + 1].revents)
		store_deliver(driver);
	for (int i = count - 1; i >= 0; i--) {
		bool alive = !(files[i].revents & (POLLIN | POLLHUP | POLLERR)) || !room ||
		             read_client(driver, &driver->clients[i]);
		flush_client(&driver->clients[i]);
		if (!alive)
			drop_client(driver, i);
	}
	if (files[count].revents)
		take_client(driver);
	if (room && driver->changed) {
		driver->changed = false;
		store_execute(driver, (struct command){ .kind = COMMAND_PASS, .units = 1000 },
		              NULL);
	}
}

static void wait_to_lead(struct driver *driver)
{
	struct error error;
	enum store_outcome outcome;
	while ((outcome = store_lead(driver->store, &error)) != STORE_DONE) {
		if (outcome == STORE_FAILED) {
			store_say("over", error.text);
			_exit(3);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	}
	driver->sched = sched_new();
	if (!store_load(driver->store, driver->sched, &error)) {
		store_say(error.code == ERROR_UNAVAILABLE ? "over" : "corrupt", error.text);
		_exit(4);
	}
}

static void store_begin(struct driver *driver)
{
	struct tenant_record tenant = { .name = "team",
		                        .limit_gpu = UNLIMITED,
		                        .limit_cpu = UNLIMITED,
		                        .limit_host = UNLIMITED,
		                        .limit_gpu_memory = UNLIMITED,
		                        .limit_jobs = UNLIMITED,
		                        .quota_gpu = UNLIMITED,
		                        .quota_cpu = UNLIMITED,
		                        .quota_host = UNLIMITED,
		                        .weight = 1000,
		                        .max_preemptions = UNLIMITED,
		                        .queue_max = UNLIMITED,
		                        .budget_per_month = UNLIMITED };
	struct config_record config = *sched_config(driver->sched);
	config.retention_ms = 8000;
	store_execute(driver, (struct command){ .kind = COMMAND_START }, NULL);
	if (sched_meta(driver->sched)->last_tenant_id > 0)
		return;
	store_execute(driver, (struct command){ .kind = COMMAND_CONFIGURE, .configure = config },
	              NULL);
	store_execute(driver, (struct command){ .kind = COMMAND_PUT_TENANT, .tenant = tenant },
	              NULL);
}

/* Nobody hears of a term before it is stored. */
static void wait_durable(struct driver *driver)
{
	struct writer_health health;
	do {
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
		writer_health(driver->writer, &health);
	} while (health.batches == 0 || health.waiting_rows > 0);
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	unlink(path);
	if (file < 0 || bind(file, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(file, CLIENTS_MAX) != 0)
		panic("%s: %s", path, strerror(errno));
	return file;
}

int main(int argc, char **argv)
{
	static struct driver driver;
	char term[24];
	if (argc < 4) {
		fprintf(stderr, "usage: store_driver DATABASE NAME SOCKET [JOURNAL-DIRECTORY "
		                "[REDIS-SOCKET]]\n");
		return 2;
	}
	pthread_mutex_init(&driver.outbox.mutex, NULL);
	driver.outbox.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	driver.store = store_new(
	    &(struct store_options){ .database = argv[1], .name = argv[2], .timeout_ms = 2000 });
	wait_to_lead(&driver);
	struct journal *journal = argc > 4 ? journal_new(&(struct journal_options){
						 .directory = argv[4], .file_bytes = 1 << 20 })
	                                   : NULL;
	driver.writer = writer_start(&(struct writer_options){ .store = driver.store,
	                                                       .journal = journal,
	                                                       .durable = test_store_on_durable,
	                                                       .failed = test_store_on_failed,
	                                                       .changed = store_on_changed,
	                                                       .context = &driver });
	if (argc > 5)
		driver.redis =
		    redis_start(&(struct redis_options){ .host = argv[5], .timeout_ms = 300 },
		                sched_meta(driver.sched)->term + 1);
	store_begin(&driver);
	wait_durable(&driver);
	driver.listener = listen_at(argv[3]);
	snprintf(term, sizeof(term), "%lld", (long long)sched_meta(driver.sched)->term);
	store_say("leading", term);
	int64_t tick_ms = 0;
	for (;;) {
		turn(&driver);
		if (clock_unix_ms() - tick_ms > 200 && writer_has_room(driver.writer, 0)) {
			tick_ms = clock_unix_ms();
			store_execute(&driver, (struct command){ .kind = COMMAND_TIME }, NULL);
			driver.changed = true;
		}
	}
}
