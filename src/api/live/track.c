/* track.c - a number over the last day and the last week, in a fixed amount of memory */
#include "api/live/track.h"

#include "base/number_text.h"

static const struct {
	int64_t steps, step_ms;
} spans[TRACK_SPANS] = {
	[TRACK_DAY] = { TRACK_DAY_STEPS, 5 * 60 * 1000 },
	[TRACK_WEEK] = { TRACK_WEEK_STEPS, 30 * 60 * 1000 },
};

int64_t track_steps(enum track_span span)
{
	return spans[span].steps;
}

int64_t track_step_ms(enum track_span span)
{
	return spans[span].step_ms;
}

static int32_t *values_of(struct track *track, enum track_span span)
{
	return span == TRACK_DAY ? track->day : track->week;
}

static int32_t *place_of(struct track *track, enum track_span span, int64_t step)
{
	return &values_of(track, span)[step % spans[span].steps];
}

void track_clear(struct track *track)
{
	*track = (struct track){ .last = { -1, -1 } };
	for (int span = 0; span < TRACK_SPANS; span++)
		for (int64_t i = 0; i < spans[span].steps; i++)
			values_of(track, (enum track_span)span)[i] = TRACK_NONE;
}

/* The steps between the newest and this one had nothing. */
static void advance(struct track *track, enum track_span span, int64_t step)
{
	int64_t last = track->last[span];
	int64_t from =
	    last < 0 || step - last > spans[span].steps ? step - spans[span].steps + 1 : last + 1;
	for (int64_t i = from < 0 ? 0 : from; i <= step; i++)
		*place_of(track, span, i) = TRACK_NONE;
	track->last[span] = step;
	track->sum[span] = track->count[span] = 0;
}

static int32_t track_cut(int64_t value)
{
	return value > INT32_MAX ? INT32_MAX : value < -INT32_MAX ? -INT32_MAX : (int32_t)value;
}

void track_add(struct track *track, int64_t unix_ms, int64_t value)
{
	for (int i = 0; i < TRACK_SPANS; i++) {
		enum track_span span = (enum track_span)i;
		int64_t step = unix_ms < 0 ? 0 : unix_ms / spans[span].step_ms;
		if (step > track->last[span])
			advance(track, span, step);
		track->sum[span] += track_cut(value);
		track->count[span]++;
		*place_of(track, span, track->last[span]) =
		    track_cut(track->sum[span] / track->count[span]);
	}
}

int32_t track_at(const struct track *track, enum track_span span, int64_t step)
{
	int64_t last = track->last[span];
	if (step < 0 || step > last || step <= last - spans[span].steps)
		return TRACK_NONE;
	return (span == TRACK_DAY ? track->day : track->week)[step % spans[span].steps];
}

/* "LAST COUNT SUM VALUE...;": values from the oldest on; '_' is none, '_N' is N of them. */
void track_write(const struct track *track, struct buffer *text)
{
	for (int i = 0; i < TRACK_SPANS; i++) {
		enum track_span span = (enum track_span)i;
		int64_t last = track->last[span], none = 0;
		buffer_print(text, "%lld %lld %lld", (long long)last, (long long)track->count[span],
		             (long long)track->sum[span]);
		for (int64_t step = last - spans[span].steps + 1; last >= 0 && step <= last + 1;
		     step++) {
			int32_t value = step <= last ? track_at(track, span, step) : 0;
			if (step <= last && value == TRACK_NONE) {
				none++;
				continue;
			}
			if (none > 0)
				buffer_print(text, none == 1 ? " _" : " _%lld", (long long)none);
			none = 0;
			if (step <= last)
				buffer_print(text, " %d", value);
		}
		buffer_print(text, ";");
	}
}

static struct text next_word(struct text *rest)
{
	size_t size = 0;
	while (size < rest->size && rest->data[size] == ' ')
		size++;
	*rest = text_from(*rest, size);
	size = 0;
	while (size < rest->size && rest->data[size] != ' ' && rest->data[size] != ';')
		size++;
	struct text word = { rest->data, size };
	*rest = text_from(*rest, size);
	return word;
}

/* How many places the word is for, and their value. */
static bool read_value(struct text word, int64_t most, int64_t *places, int64_t *value)
{
	*places = 1;
	*value = TRACK_NONE;
	if (word.size > 0 && word.data[0] == '_')
		return word.size == 1 || number_read(text_from(word, 1), 1, most, places);
	return number_read(word, -INT32_MAX, INT32_MAX, value);
}

static bool read_span(struct track *track, enum track_span span, struct text *rest)
{
	int64_t last, count, sum, step, places, value;
	if (!number_read(next_word(rest), -1, INT64_MAX / spans[span].step_ms, &last) ||
	    !number_read(next_word(rest), 0, INT32_MAX, &count) ||
	    !number_read(next_word(rest), -(INT64_MAX >> 1), INT64_MAX >> 1, &sum))
		return false;
	track->last[span] = last;
	track->count[span] = count;
	track->sum[span] = sum;
	step = last - spans[span].steps + 1;
	while (rest->size > 0 && rest->data[0] != ';') {
		struct text word = next_word(rest);
		if (last < 0 || step > last || !read_value(word, last - step + 1, &places, &value))
			return false;
		for (; places > 0; places--, step++)
			if (step >= 0)
				*place_of(track, span, step) = (int32_t)value;
	}
	if (rest->size == 0 || (last >= 0 && step != last + 1))
		return false;
	*rest = text_from(*rest, 1);
	return true;
}

bool track_read(struct track *track, struct text *rest, struct error *error)
{
	track_clear(track);
	if (read_span(track, TRACK_DAY, rest) && read_span(track, TRACK_WEEK, rest))
		return true;
	track_clear(track);
	return error_set(error, ERROR_INVALID, "what was kept of the history is not readable");
}
