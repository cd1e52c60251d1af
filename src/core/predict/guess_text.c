/* guess_text.c - what voices said, as text that a record can hold */
#include "core/predict/guess_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define DIGIT_BITS 6
#define DIGIT_MAX ((1 << DIGIT_BITS) - 1)

_Static_assert(GUESS_LEVELS - 1 <= DIGIT_MAX && VOICES - 1 <= DIGIT_MAX &&
                   CONTEXTS - 1 <= DIGIT_MAX,
               "one character for each");

static char *digit_write(char *to, int digit)
{
	*to = (char)('0' + digit);
	return to + 1;
}

static char *voice_write(char *to, int voice, int context, int weight)
{
	to = digit_write(to, voice);
	to = digit_write(to, context);
	for (int shift = 2 * DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS)
		to = digit_write(to, weight >> shift & DIGIT_MAX);
	return to;
}

void guess_write(char *text, const struct guess *guess)
{
	for (int i = 0; i < guess->count; i++) {
		const struct guess_voice *voice = &guess->voices[i];
		text = voice_write(text, voice->voice, voice->context, voice->weight);
		for (int bin = 0; bin < GUESS_BINS; bin++)
			text = digit_write(text, voice->levels[bin]);
	}
	*text = '\0';
}

void judged_write(char *text, const struct experience *experience)
{
	for (int i = 0; i < experience->count; i++) {
		const struct judged_voice *voice = &experience->voices[i];
		text = voice_write(text, voice->voice, voice->context, voice->weight);
		text = digit_write(text, voice->level);
	}
	*text = '\0';
}

/* -1: it is none up to `most`. */
static int digit_read(const char *text, int most)
{
	int digit = *text - '0';

	return digit >= 0 && digit <= most ? digit : -1;
}

static bool voice_read(const char *text, uint8_t *voice, uint8_t *context, uint16_t *weight)
{
	int who = digit_read(text, VOICES - 1), where = digit_read(text + 1, CONTEXTS - 1);
	int sum = 0;

	for (int i = 2; i < VOICE_TEXT; i++) {
		int digit = digit_read(text + i, DIGIT_MAX);
		if (digit < 0)
			return false;
		sum = sum << DIGIT_BITS | digit;
	}
	if (who < 0 || where < 0 || sum > UINT16_MAX)
		return false;
	*voice = (uint8_t)who;
	*context = (uint8_t)where;
	*weight = (uint16_t)sum;
	return true;
}

/* How many voices of `width` characters; -1: it cannot be. */
static int count_voices(const char *text, size_t width)
{
	size_t size = strlen(text);

	return size % width == 0 && size / width <= VOICES ? (int)(size / width) : -1;
}

static bool levels_read(const char *text, uint8_t *levels, int count)
{
	for (int i = 0; i < count; i++) {
		int level = digit_read(text + i, GUESS_LEVELS - 1);
		if (level < 0)
			return false;
		levels[i] = (uint8_t)level;
	}
	return true;
}

struct guess *guess_read(const char *text)
{
	int count = count_voices(text, VOICE_TEXT + GUESS_BINS);

	if (count < 0)
		return NULL;
	struct guess *guess = memory_alloc(guess_size(count));
	guess->count = count;
	for (int i = 0; i < count; i++, text += VOICE_TEXT + GUESS_BINS) {
		struct guess_voice *voice = &guess->voices[i];
		if (voice_read(text, &voice->voice, &voice->context, &voice->weight) &&
		    levels_read(text + VOICE_TEXT, voice->levels, GUESS_BINS))
			continue;
		free(guess);
		return NULL;
	}
	return guess;
}

bool judged_read(const char *text, struct experience *experience)
{
	experience->count = count_voices(text, VOICE_TEXT + 1);
	for (int i = 0; i < experience->count; i++, text += VOICE_TEXT + 1) {
		struct judged_voice *voice = &experience->voices[i];
		if (!voice_read(text, &voice->voice, &voice->context, &voice->weight) ||
		    !levels_read(text + VOICE_TEXT, &voice->level, 1))
			return false;
	}
	return experience->count >= 0;
}
