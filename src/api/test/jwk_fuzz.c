/* jwk_fuzz.c - any bytes as a key set, and as what else a provider of sign-in answers */
#include <stdlib.h>

#include "api/auth/id_token.h"
#include "api/login/metadata.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text text = { (const char *)data, size };
	struct id_token_wanted wanted = { .issuer = "https://id.example",
		                          .client_id = "gpu",
		                          .user_claim = "sub",
		                          .groups_claim = "groups.of" };
	struct device_answer device;
	struct token_answer answer;
	struct metadata metadata;
	struct jwk_set set;
	struct id_token token;
	struct error error = { 0 };

	if (jwk_set_read(text, &set, &error)) {
		INVARIANT(set.count > 0 && set.count <= JWK_KEYS_MAX);
		if (id_token_read(text, &set, &wanted, &token, &error))
			panic("a token was forged");
		jwk_set_free(&set);
	}
	if (metadata_read(text, "https://id.example", &metadata, &error)) {
		INVARIANT(metadata_url_is_safe(metadata.authorization_url) &&
		          metadata_url_is_safe(metadata.token_url) &&
		          metadata_url_is_safe(metadata.keys_url));
		metadata_free(&metadata);
	}
	if (token_answer_read(text, &answer, &error)) {
		INVARIANT(answer.id_token || answer.error[0]);
		token_answer_free(&answer);
	}
	if (device_answer_read(text, &device, &error)) {
		INVARIANT(device.expires_s > 0 && device.interval_s >= 0);
		device_answer_free(&device);
	}
	return 0;
}
