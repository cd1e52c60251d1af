/* top_command.c - gpu-cli top: the cluster, live, on the whole screen */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "cli/client/stream.h"
#include "cli/commands.h"
#include "cli/job/top_view.h"
#include "cli/text/quantity.h"
#include "json/member.h"

static const struct option options[] = {
	OPTION("--once", NULL, NULL, "print it once, and end"),
	OPTION("--delay", NULL, "TIME", "between looks at what is measured (default 2s)"),
	{ 0 },
};

enum {
	SOON_MS = 400,       /* after an event, so that many make one look */
	STREAM_MS = 3000,    /* between tries to hear events again */
	MESSAGE_MS = 5000,   /* that a message is shown */
	FRAME_COLUMNS = 100, /* of what is printed once into a file */
	TOP_LISTS = 4
};

struct top {
	struct session *session;
	struct top_data data;
	struct top_view view;
	struct stream *stream;
	int64_t delay_ms, look_ms, stream_ms, message_ms;
	int question; /* the key that is to be confirmed; 0: none */
	char about[128];
	json_t *sentences;
	struct top_list lists[TOP_LISTS];
	struct top_log log;
	char log_path[256];
	bool ended;
};

static struct termios before;
static volatile sig_atomic_t wants_end, has_screen;

/* Everything as it was before. May be called from a handler. */
static void leave_screen(void)
{
	static const char bytes[] = "\033[0m\033[?25h\033[?1049l";
	if (!has_screen)
		return;
	has_screen = 0;
	(void)!write(STDOUT_FILENO, bytes, sizeof(bytes) - 1);
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

static void enter_screen(void)
{
	static const char bytes[] = "\033[?1049h\033[?25l\033[H\033[2J";
	struct termios raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
	(void)!write(STDOUT_FILENO, bytes, sizeof(bytes) - 1);
	has_screen = 1;
}

static void top_on_end(int number)
{
	(void)number;
	wants_end = 1;
}

static void on_resize(int number)
{
	(void)number; /* it interrupts the wait, and the next frame has the new size */
}

/* The terminal is given back before the program stops, and taken again behind that. */
static void on_stop(int number)
{
	int kept = errno;
	leave_screen();
	signal(number, SIG_DFL);
	raise(number);
	errno = kept;
}

static void on_continue(int number)
{
	int kept = errno;
	struct sigaction stop = { .sa_handler = on_stop, .sa_flags = SA_NODEFER };
	(void)number;
	sigaction(SIGTSTP, &stop, NULL);
	enter_screen();
	errno = kept;
}

/* Dies as it would have, with the terminal as it was. */
static void on_crash(int number)
{
	leave_screen();
	signal(number, SIG_DFL);
	raise(number);
}

static void catch_signals(void)
{
	static const struct {
		int number;
		void (*handler)(int number);
	} signals[] = { { SIGINT, top_on_end },  { SIGTERM, top_on_end },  { SIGHUP, top_on_end },
		        { SIGQUIT, top_on_end }, { SIGPIPE, top_on_end },  { SIGWINCH, on_resize },
		        { SIGTSTP, on_stop },    { SIGCONT, on_continue }, { SIGSEGV, on_crash },
		        { SIGABRT, on_crash },   { SIGBUS, on_crash } };
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction action = { .sa_handler = signals[i].handler,
			                    .sa_flags = SA_NODEFER };
		sigaction(signals[i].number, &action, NULL);
	}
	atexit(leave_screen);
}

static void top_write_all(const char *data, size_t size)
{
	while (size > 0) {
		ssize_t written = write(STDOUT_FILENO, data, size);
		if (written < 0 && errno != EINTR) {
			wants_end = 1;
			return;
		}
		if (written > 0) {
			data += written;
			size -= (size_t)written;
		}
	}
}

/* Each line over the old one, so that nothing flickers. */
static void top_show(struct top *top)
{
	struct canvas canvas = { .terminal = terminal_of(STDOUT_FILENO) };
	struct buffer frame = { 0 };
	if (top->view.list)
		top_list_layout(top->view.list, top->session, &canvas.terminal, top->view.filter);
	top_view_draw(&top->view, &canvas);
	buffer_text(&frame, "\033[H");
	for (size_t at = 0; at < canvas.text.size; at++) {
		if (canvas.text.data[at] == '\n')
			buffer_text(&frame, "\033[K\r\n");
		else
			buffer_bytes(&frame, canvas.text.data + at, 1);
	}
	buffer_text(&frame, "\033[K\033[J");
	if (has_screen)
		top_write_all(frame.data, frame.size);
	buffer_free(&frame);
	buffer_free(&canvas.text);
}

static void top_say(struct top *top, const char *text)
{
	snprintf(top->view.message, sizeof(top->view.message), "%s", text);
	top->message_ms = clock_unix_ms() + MESSAGE_MS;
}

static void top_look(struct top *top)
{
	struct error error = { 0 };
	bool reads = top->view.mode == TOP_READING && !top->log.left;
	bool loaded =
	    top_data_load(&top->data, top->session, &error) &&
	    (!top->view.list || top_list_load(top->view.list, top->session, &error)) &&
	    (!reads || top_log_load(&top->log, &top->session->client, top->log_path, &error));
	if (loaded)
		top->look_ms = clock_unix_ms() + top->delay_ms;
	else {
		top_say(top, error.text);
		top->look_ms = clock_unix_ms() + max64(top->delay_ms, 2000);
		top->message_ms = top->look_ms + 1000;
	}
	top_view_arrange(&top->view);
}

/* Events say that there is something to look at; without them it is looked at anyway. */
static void listen(struct top *top)
{
	struct error unused = { 0 };
	if (top->stream || clock_unix_ms() < top->stream_ms)
		return;
	top->stream = stream_open(&top->session->client, "jobs,nodes,slots", &unused);
	top->stream_ms = clock_unix_ms() + STREAM_MS;
	top->view.live = top->stream != NULL;
}

static void top_hear(struct top *top)
{
	json_t *event;
	while (top->stream) {
		if (!stream_next(top->stream, &event)) {
			stream_close(top->stream);
			top->stream = NULL;
			top->view.live = false;
			return;
		}
		if (!event)
			return;
		if (strcmp(member_text(event, "type"), "hello") != 0)
			top->look_ms = min64(top->look_ms, clock_unix_ms() + SOON_MS);
		json_decref(event);
	}
}

static void top_move(struct top *top, long rows)
{
	struct top_view *view = &top->view;
	if (view->list) {
		top_list_move(view->list, rows);
		return;
	}
	size_t count = view->panel == TOP_GPUS ? view->gpu_count : view->job_count;
	long to = (long)view->selected[view->panel] + rows;
	if (to >= (long)count)
		to = (long)count - 1;
	view->selected[view->panel] = to < 0 ? 0 : (size_t)to;
}

/* The chosen row of that list, where it is shown. */
static const char *chosen_in(const struct top *top, const struct listing_source *source)
{
	const struct top_list *list = top->view.list;
	return list && list->source == source ? top_list_id(list) : NULL;
}

static const char *chosen_job(const struct top *top)
{
	const struct top_job *job = top->view.list ? NULL : top_view_job(&top->view);
	return job ? job->id : chosen_in(top, &queue_source);
}

static const char *chosen_node(const struct top *top)
{
	const struct top_gpu *gpu = top->view.list ? NULL : top_view_gpu(&top->view);
	return gpu ? gpu->node : chosen_in(top, &nodes_source);
}

static const char *name_of_job(const struct top *top, const char *id)
{
	for (size_t i = 0; i < top->data.job_count; i++)
		if (strcmp(top->data.jobs[i].id, id) == 0)
			return top->data.jobs[i].name;
	return "";
}

static bool is_draining(const struct top *top, const char *node)
{
	for (size_t i = 0; i < top->data.gpu_count; i++)
		if (strcmp(top->data.gpus[i].node, node) == 0)
			return top->data.gpus[i].draining;
	return false;
}

/* The first key is that of GPUs and jobs. */
static void switch_view(struct top *top, int key)
{
	static const struct listing_source *const sources[TOP_LISTS] = {
		&queue_source, &tenants_source, &models_source, &nodes_source
	};
	struct error error = { 0 };
	struct top_list *list = key == '1' ? NULL : &top->lists[key - '2'];
	if (list) {
		list->source = sources[key - '2'];
		if (!top_list_load(list, top->session, &error)) {
			top_say(top, error.text);
			return;
		}
	}
	top->view.list = list;
}

static void read_output(struct top *top)
{
	struct session *session = top->session;
	const char *job = chosen_job(top), *model = chosen_in(top, &models_source);
	struct error error = { 0 };
	if (!job && !model) {
		top_say(top, "there is no job or model whose output could be read");
		return;
	}
	const char *path = model ? session_path(session, "/api/v1/models/%s/logs?tail=65536", model)
	                         : session_path(session, "/api/v1/jobs/%s/logs?tail=65536", job);
	top_log_free(&top->log);
	if (!top_log_load(&top->log, &session->client, path, &error)) {
		top_say(top, error.text);
		return;
	}
	snprintf(top->log_path, sizeof(top->log_path), "%s", path);
	snprintf(top->log.title, sizeof(top->log.title), "%.120s", model ? model : job);
	top->view.log = &top->log;
	top->view.mode = TOP_READING;
}

static void top_ask(struct top *top, int key)
{
	const char *job = chosen_job(top), *node = chosen_node(top);
	char text[256];
	if (key == 'c' && job) {
		snprintf(top->about, sizeof(top->about), "%.120s", job);
		snprintf(text, sizeof(text), "cancel %s (%.80s)? y or n", top->about,
		         name_of_job(top, job));
	} else if (key == 'd' && node) {
		key = is_draining(top, node) ? 'u' : 'd';
		snprintf(top->about, sizeof(top->about), "%.120s", node);
		snprintf(text, sizeof(text), "%s node %s? y or n", key == 'u' ? "resume" : "drain",
		         top->about);
	} else {
		top_say(top,
		        key == 'c' ? "there is no job to cancel" : "there is no node to drain");
		return;
	}
	top_say(top, text);
	top->message_ms = INT64_MAX;
	top->question = key;
	top->view.mode = TOP_ASKING;
}

static void top_answer(struct top *top, int key)
{
	struct session *session = top->session;
	struct error error = { 0 };
	bool jobs = top->question == 'c';
	const char *path = jobs ? session_path(session, "/api/v1/jobs/%s", top->about)
	                   : top->question == 'd'
	                       ? session_path(session, "/api/v1/nodes/%s/drain", top->about)
	                       : session_path(session, "/api/v1/nodes/%s/resume", top->about);
	top->view.mode = TOP_LOOKING;
	top->question = 0;
	if (key != 'y' && key != 'Y') {
		top_say(top, "");
		return;
	}
	json_t *done = session_ask(session, jobs ? "DELETE" : "POST", path, NULL, &error);
	top_say(top, done ? "done" : error.text);
	json_decref(done);
	top->look_ms = 0;
}

static void top_explain(struct top *top)
{
	struct session *session = top->session;
	const char *job = chosen_job(top), *model = chosen_in(top, &models_source);
	struct error error = { 0 };
	if (!job && !model) {
		top_say(top, "there is no job or model to explain");
		return;
	}
	const char *path = model ? session_path(session, "/api/v1/models/%s/why", model)
	                         : session_path(session, "/api/v1/jobs/%s/why", job);
	json_t *document = session_get(session, path, &error);
	if (!document) {
		top_say(top, error.text);
		return;
	}
	json_decref(top->sentences);
	top->sentences = json_incref(json_object_get(document, "why"));
	json_decref(document);
	top->view.sentences = top->sentences;
	top->view.mode = TOP_EXPLAINING;
}

static void edit_filter(struct top *top, int key)
{
	char *filter = top->view.filter;
	size_t size = strlen(filter);
	if (key == '\r' || key == '\n') {
		top->view.mode = TOP_LOOKING;
	} else if (key == 27) {
		filter[0] = '\0';
		top->view.mode = TOP_LOOKING;
	} else if ((key == 127 || key == 8) && size > 0) {
		filter[size - 1] = '\0';
	} else if (key >= ' ' && key < 127 && size + 1 < sizeof(top->view.filter)) {
		filter[size] = (char)key;
		filter[size + 1] = '\0';
	}
	top_view_arrange(&top->view);
}

enum { KEY_UP = 1000, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN, KEY_HOME, KEY_END };

/* False: the key does not scroll. */
static bool scroll_output(struct top *top, int key, int page)
{
	static const struct {
		int keys[3];
		long rows;
		bool pages;
	} moves[] = {
		{ { 'k', KEY_UP, KEY_UP }, -1, false },
		{ { 'j', KEY_DOWN, KEY_DOWN }, 1, false },
		{ { KEY_PAGE_UP, 'b', 'b' }, -1, true },
		{ { KEY_PAGE_DOWN, ' ', ' ' }, 1, true },
		{ { 'g', KEY_HOME, KEY_HOME }, -1000000, false },
		{ { 'G', KEY_END, KEY_END }, 1000000, false },
	};
	size_t shown = top_view_rows(terminal_of(STDOUT_FILENO).rows);
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++)
		for (size_t k = 0; k < 3; k++)
			if (moves[i].keys[k] == key) {
				top_log_move(&top->log, moves[i].rows * (moves[i].pages ? page : 1),
				             shown);
				return true;
			}
	return false;
}

static void press(struct top *top, int key)
{
	struct top_view *view = &top->view;
	if (view->mode == TOP_FILTERING) {
		edit_filter(top, key);
		return;
	}
	if (view->mode == TOP_ASKING) {
		top_answer(top, key);
		return;
	}
	int page = terminal_of(STDOUT_FILENO).rows / 2;
	if (view->mode == TOP_READING && scroll_output(top, key, page))
		return;
	if (view->mode != TOP_LOOKING) {
		view->mode = TOP_LOOKING;
		return;
	}
	switch (key) {
	case 'q':
		top->ended = true;
		break;
	case '\t':
		view->panel = view->panel == TOP_GPUS ? TOP_JOBS : TOP_GPUS;
		break;
	case 'k':
	case KEY_UP:
		top_move(top, -1);
		break;
	case 'j':
	case KEY_DOWN:
		top_move(top, 1);
		break;
	case KEY_PAGE_UP:
		top_move(top, -page);
		break;
	case KEY_PAGE_DOWN:
	case ' ':
		top_move(top, page);
		break;
	case 'g':
	case KEY_HOME:
		top_move(top, -1000000);
		break;
	case 'G':
	case KEY_END:
		top_move(top, 1000000);
		break;
	case 's':
		view->sort = (enum top_sort)((view->sort + 1) % TOP_SORTS);
		top_view_arrange(view);
		break;
	case '/':
		view->mode = TOP_FILTERING;
		break;
	case 27:
		view->filter[0] = '\0';
		top_view_arrange(view);
		break;
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
		switch_view(top, key);
		break;
	case 'l':
		read_output(top);
		break;
	case 'w':
	case '\r':
	case '\n':
		top_explain(top);
		break;
	case 'c':
	case 'd':
		top_ask(top, key);
		break;
	case 'r':
		top->look_ms = 0;
		break;
	case '?':
	case 'h':
		view->mode = TOP_HELPING;
		break;
	default:
		break;
	}
}

/* A key that comes as several bytes; its size, or 1 where it is none of those. */
static size_t read_sequence(const char *bytes, size_t size, int *key)
{
	static const struct {
		const char *bytes;
		int key;
	} sequences[] = {
		{ "\033[A", KEY_UP },   { "\033OA", KEY_UP },       { "\033[B", KEY_DOWN },
		{ "\033OB", KEY_DOWN }, { "\033[5~", KEY_PAGE_UP }, { "\033[6~", KEY_PAGE_DOWN },
		{ "\033[H", KEY_HOME }, { "\033[1~", KEY_HOME },    { "\033OH", KEY_HOME },
		{ "\033[F", KEY_END },  { "\033[4~", KEY_END },     { "\033OF", KEY_END },
	};
	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
		size_t length = strlen(sequences[i].bytes);
		if (size >= length && memcmp(bytes, sequences[i].bytes, length) == 0) {
			*key = sequences[i].key;
			return length;
		}
	}
	*key = (unsigned char)bytes[0];
	return 1;
}

static void read_keys(struct top *top)
{
	char bytes[256];
	ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
	if (size < 0 && errno != EINTR && errno != EAGAIN)
		top->ended = true;
	for (ssize_t at = 0; at < size && !top->ended;) {
		int key;
		at += (ssize_t)read_sequence(bytes + at, (size_t)(size - at), &key);
		press(top, key);
	}
}

static void wait_for_more(struct top *top)
{
	struct pollfd polls[2] = { { .fd = STDIN_FILENO, .events = POLLIN } };
	nfds_t count = 1;
	if (top->stream)
		polls[count++] =
		    (struct pollfd){ .fd = stream_descriptor(top->stream), .events = POLLIN };
	int64_t now = clock_unix_ms();
	int64_t until = min64(top->look_ms, top->message_ms);
	poll(polls, count, (int)min64(max64(until - now, 0), 1000));
	if (polls[0].revents & (POLLERR | POLLHUP | POLLNVAL))
		top->ended = !(polls[0].revents & POLLIN);
	if (polls[0].revents & POLLIN)
		read_keys(top);
	top_hear(top);
}

static void stay(struct top *top)
{
	while (!wants_end && !top->ended) {
		listen(top);
		if (clock_unix_ms() >= top->look_ms)
			top_look(top);
		if (clock_unix_ms() >= top->message_ms) {
			top->view.message[0] = '\0';
			top->message_ms = INT64_MAX;
		}
		top_show(top);
		wait_for_more(top);
	}
}

/* Without a screen: one look, and all of it. */
static int print_once(struct top *top)
{
	struct error error = { 0 };
	struct canvas canvas = { .terminal = top->session->terminal };
	canvas.terminal.rows = 0;
	if (canvas.terminal.columns == 0)
		canvas.terminal.columns = FRAME_COLUMNS;
	if (!top_data_load(&top->data, top->session, &error))
		return session_fail(top->session, &error);
	top_view_arrange(&top->view);
	top->view.panel = (enum top_panel) - 1;
	top_view_draw(&top->view, &canvas);
	fwrite(canvas.text.data, 1, canvas.text.size, stdout);
	buffer_free(&canvas.text);
	return CLI_FINE;
}

static int live(struct top *top)
{
	struct error error = { 0 };
	/* What is wrong from the beginning is told where it stays. */
	if (!top_data_load(&top->data, top->session, &error))
		return session_fail(top->session, &error);
	top_view_arrange(&top->view);
	top->look_ms = clock_unix_ms() + top->delay_ms;
	top->message_ms = INT64_MAX;
	top->session->client.most_ms = 10000;
	tcgetattr(STDIN_FILENO, &before);
	catch_signals();
	enter_screen();
	stay(top);
	leave_screen();
	return CLI_FINE;
}

static int top_run(const struct arguments *arguments)
{
	const char *delay = arguments_value(arguments, "--delay");
	struct session session;
	struct error error = { 0 };
	struct top top = { .session = &session, .delay_ms = 2000 };
	int status;
	if (arguments->operand_count > 0)
		return cli_misused(arguments->command, "unexpected argument '%.80s'",
		                   arguments->operands[0]);
	if (delay && !quantity_duration("--delay", delay, &top.delay_ms, &error))
		return cli_misused(arguments->command, "%s", error.text);
	if (!session_open(&session, arguments, &status))
		return status;
	top.view.data = &top.data;
	top.view.server = session.server;
	bool once = arguments_has(arguments, "--once") || !session.terminal.is_terminal ||
	            !isatty(STDIN_FILENO);
	status = once ? print_once(&top) : live(&top);
	stream_close(top.stream);
	top_view_free(&top.view);
	top_log_free(&top.log);
	for (size_t i = 0; i < TOP_LISTS; i++)
		top_list_free(&top.lists[i]);
	top_data_free(&top.data);
	json_decref(top.sentences);
	session_close(&session);
	return status;
}

const struct cli_command top_command = {
	.name = "top",
	.arguments = "[OPTION...]",
	.summary = "every GPU and who holds what on it, and the jobs, live",
	.details =
	    "Fills the screen, and follows what happens. Each GPU is a bar of its memory: in\n"
	    "use, starting, being freed, foreign, foreign that no process explains, and free\n"
	    "look different, and each job and slot has its color. Keys: q quit, 1 to 5 GPUs\n"
	    "and jobs, queue, tenants, models, nodes, Tab between GPUs and jobs, arrows\n"
	    "choose, s sort, / filter, l output, w or Enter why, c cancel, d drain or resume,\n"
	    "? help. Where there is no terminal it is printed once.\n",
	.examples = "top\n"
		    "top --once\n",
	.options = options,
	.asks = true,
	.run = top_run,
};
