/* guess_text_fuzz.c - text that is read as a guess is what would be written for it */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "core/predict/guess_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void voice_check(uint8_t voice, uint8_t context)
{
	INVARIANT(voice < VOICES && context < CONTEXTS);
}

static void fuzz_guess(const char *text)
{
	struct guess *guess = guess_read(text);
	char again[GUESS_TEXT_MAX + 1];
	struct experience experience = { 0 };

	if (!guess)
		return;
	INVARIANT(guess->count >= 0 && guess->count <= VOICES);
	for (int i = 0; i < guess->count; i++) {
		voice_check(guess->voices[i].voice, guess->voices[i].context);
		for (int bin = 0; bin < GUESS_BINS; bin++)
			INVARIANT(guess->voices[i].levels[bin] < GUESS_LEVELS);
	}
	guess_write(again, guess);
	INVARIANT(strcmp(again, text) == 0);
	for (int64_t took_ms = 0; took_ms < INT64_MAX / 4; took_ms = 4 * took_ms + 999) {
		guess_judge(guess, took_ms, &experience);
		INVARIANT(experience.count == guess->count);
	}
	free(guess);
}

/* What is read can be learned from, too. */
static void fuzz_judged(const char *text)
{
	struct experience experience = { .traits = { .user = 1, .tenant = 1 }, .took_ms = 1000 };
	char again[JUDGED_TEXT_MAX + 1];
	struct mixture mixture;

	if (!judged_read(text, &experience))
		return;
	INVARIANT(experience.count >= 0 && experience.count <= VOICES);
	for (int i = 0; i < experience.count; i++) {
		voice_check(experience.voices[i].voice, experience.voices[i].context);
		INVARIANT(experience.voices[i].level < GUESS_LEVELS);
	}
	judged_write(again, &experience);
	INVARIANT(strcmp(again, text) == 0);
	mixture_init(&mixture);
	mixture_learn(&mixture, &experience, EXPERTS_MIN);
	mixture_free(&mixture);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	fuzz_guess(text);
	fuzz_judged(text);
	free(text);
	return 0;
}
