// output.tsx - what a task prints, as it prints it
import { useEffect, useRef, useState } from "preact/hooks";
import { follow } from "../api";

const TAIL_BYTES = 200000;
const KEPT_CHARACTERS = 1000000;

export function Output({ job, task, running }: { job: string; task: number; running: boolean }) {
  const box = useRef<HTMLPreElement>(null);
  const [said, setSaid] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const element = box.current as HTMLPreElement;
    element.textContent = "";
    setSaid("");
    let any = false;
    const add = (text: string) => {
      any = true;
      const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40;
      element.append(text);
      while ((element.textContent?.length ?? 0) > KEPT_CHARACTERS) element.firstChild?.remove();
      if (atEnd) element.scrollTop = element.scrollHeight;
    };
    const query = `?task=${task}&tail=${TAIL_BYTES}${running ? "&follow=1" : ""}`;
    follow(`/jobs/${job}/logs${query}`, add, stop.signal)
      .then(() => !any && setSaid("It printed nothing."))
      .catch((error) => error.name !== "AbortError" && setSaid(error.message));
    return () => stop.abort();
  }, [job, task, running]);
  return (
    <>
      <pre class="output" ref={box} tabIndex={0} aria-label="Output" role="log" />
      {said && <p class="muted">{said}</p>}
    </>
  );
}
