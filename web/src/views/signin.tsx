// signin.tsx - asks for a token
import { useEffect, useState } from "preact/hooks";
import { get } from "../api";
import { Wrong } from "../parts/common";
import { go, route } from "../route";
import { rememberPage, signIn } from "../state";
import type { Login } from "../types";

/** The way by the provider of single sign-on, if there is one. */
function Provider() {
  const [login, setLogin] = useState<Login | null>(null);
  useEffect(() => {
    get<Login>("/login").then(setLogin, () => setLogin(null));
  }, []);
  if (!login?.browser) return null;
  return (
    <p>
      <a class="button primary" href="/api/v1/login/start" onClick={rememberPage}>
        Sign in with {login.provider}
      </a>
    </p>
  );
}

export function SignIn() {
  const [text, setText] = useState("");
  const [keep, setKeep] = useState(false);
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    const reason = await signIn(text.trim(), keep);
    setBusy(false);
    setWrong(reason);
    // Whoever followed a link gets what it is about.
    if (!reason && route.value.page === "signin") go("#/cluster");
  };
  return (
    <form class="card signin" onSubmit={submit}>
      <h1>Sign in</h1>
      <Provider />
      <p>
        Use an API token. An administrator creates one with <code>gpu-cli token create</code>. Tabs
        of this browser share it until the last one is closed.
      </p>
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          required
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      <label class="pick">
        <input
          type="checkbox"
          checked={keep}
          onChange={(event) => setKeep(event.currentTarget.checked)}
        />
        Keep me signed in on this computer
      </label>
      {keep && (
        <p class="muted small">
          The token is stored by the browser until you sign out. Do not use this on a shared
          computer.
        </p>
      )}
      <Wrong text={wrong} />
      <button type="submit" class="primary" disabled={busy}>
        Sign in
      </button>
    </form>
  );
}
