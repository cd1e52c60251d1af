// signin.tsx - asks for a token
import { useState } from "preact/hooks";
import { Wrong } from "../parts/common";
import { go } from "../route";
import { signIn } from "../state";

export function SignIn() {
  const [text, setText] = useState("");
  const [wrong, setWrong] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    const reason = await signIn(text.trim());
    setBusy(false);
    setWrong(reason);
    if (!reason) go("#/cluster");
  };
  return (
    <form class="card signin" onSubmit={submit}>
      <h1>Sign in</h1>
      <p>
        Use an API token. An administrator creates one with <code>gpu-cli token create</code>. It is
        kept in this tab only, until the tab is closed.
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
      <Wrong text={wrong} />
      <button type="submit" class="primary" disabled={busy}>
        Sign in
      </button>
    </form>
  );
}
