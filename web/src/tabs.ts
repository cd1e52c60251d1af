// tabs.ts - tabs of the same service share a sign-in without writing it to the disk
import { setToken, token } from "./api";

/** Other tabs answer at once if they answer at all. */
const ANSWER_MS = 150;

type Said = { asks: true } | { token: string } | { signedOut: true };

let channel: BroadcastChannel | null = null;

function say(said: Said): void {
  channel?.postMessage(said);
}

/** Asks the other tabs for their token, where this one has none. Pages of other origins hear
 * nothing of it. `out`: what to do when another tab signs out. */
export function joinTabs(out: () => void): Promise<void> {
  if (typeof BroadcastChannel === "undefined") return Promise.resolve();
  channel = new BroadcastChannel("gpu-scheduler-sign-in");
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, token.value ? 0 : ANSWER_MS);
    if (channel)
      channel.onmessage = (event: MessageEvent<Said>) => {
        const said = event.data;
        if ("asks" in said && token.value) say({ token: token.value });
        if ("token" in said && !token.value) {
          setToken(said.token);
          clearTimeout(timer);
          resolve();
        }
        if ("signedOut" in said && token.value) out();
      };
    if (!token.value) say({ asks: true });
  });
}

/** Tells the other tabs that the token is not to be used any more. */
export function leaveTabs(): void {
  say({ signedOut: true });
}
