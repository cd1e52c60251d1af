// A provider of OpenID Connect: node-oidc-provider, with users that the test names. It takes one
// argument, JSON: port, client, accounts ({name: [groups]}), algorithm, keys, redirects. Its own
// pages for development ask for the user's name and take any password.
import { Provider } from "oidc-provider";

const given = JSON.parse(process.argv[2]);
const issuer = `http://127.0.0.1:${given.port}`;
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "gpu-scheduler",
      client_secret: given.secret,
      token_endpoint_auth_method: given.secret ? "client_secret_basic" : "none",
      grant_types: ["authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
      response_types: ["code"],
      redirect_uris: given.redirects,
      post_logout_redirect_uris: given.homes,
      id_token_signed_response_alg: given.algorithm,
    },
  ],
  jwks: { keys: given.keys },
  cookies: { keys: ["a key for the cookies of tests"] },
  claims: {
    openid: ["sub"],
    profile: ["preferred_username"],
    groups: ["groups"],
  },
  scopes: ["openid", "profile", "groups"],
  conformIdTokenClaims: false,
  enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256", "EdDSA"] },
  features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
  pkce: { required: () => true },
  async findAccount(_, id) {
    if (!(id in given.accounts)) return undefined;
    return {
      accountId: id,
      claims: () => ({ sub: `id-${id}`, preferred_username: id, groups: given.accounts[id] }),
    };
  },
});
provider.listen(given.port, "127.0.0.1", () => console.log("ready"));
