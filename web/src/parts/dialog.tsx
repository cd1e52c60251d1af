// dialog.tsx - asks before something is done, and says what came of it
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

interface Question {
  title: string;
  text: string;
  action: string;
  dangerous: boolean;
  /** What the other button says; Cancel unless told otherwise. */
  keep?: string;
  run(): Promise<unknown>;
}

const question = signal<Question | null>(null);
const notice = signal<{ text: string; bad: boolean } | null>(null);
let timer = 0;

/** A sentence that goes away by itself. */
export function tell(text: string, bad = false): void {
  notice.value = { text, bad };
  clearTimeout(timer);
  timer = window.setTimeout(
    () => {
      notice.value = null;
    },
    bad ? 9000 : 4000,
  );
}

export function ask(one: Question): void {
  question.value = one;
}

/** Runs it at once, and shows the service's answer. */
export async function act(run: () => Promise<unknown>): Promise<void> {
  try {
    const answer = (await run()) as { message?: string } | undefined;
    if (answer?.message) tell(answer.message);
  } catch (error) {
    tell((error as Error).message, true);
  }
}

export function Dialogs() {
  const dialog = useRef<HTMLDialogElement>(null);
  const one = question.value;
  useEffect(() => {
    if (one && !dialog.current?.open) dialog.current?.showModal();
    if (!one && dialog.current?.open) dialog.current.close();
  }, [one]);
  const close = () => {
    question.value = null;
  };
  return (
    <>
      <dialog ref={dialog} onClose={close} aria-labelledby="dialog-title">
        {one && (
          <>
            <h2 id="dialog-title">{one.title}</h2>
            <p>{one.text}</p>
            <div class="row end">
              <button type="button" onClick={close}>
                {one.keep ?? "Cancel"}
              </button>
              <button
                type="button"
                class={one.dangerous ? "danger" : "primary"}
                onClick={() => {
                  close();
                  act(one.run);
                }}
              >
                {one.action}
              </button>
            </div>
          </>
        )}
      </dialog>
      <div class="notices" role="status" aria-live="polite">
        {notice.value && (
          <p class={notice.value.bad ? "notice bad" : "notice"}>{notice.value.text}</p>
        )}
      </div>
    </>
  );
}
