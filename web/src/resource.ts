// resource.ts - an answer of the service that is kept fresh while somebody looks at it
import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "./api";

export interface Resource<T> {
  data: Signal<T | null>;
  error: Signal<string | null>;
  refresh(): void;
}

interface Watched {
  topics: readonly string[];
  refresh(): void;
}

const watched = new Set<Watched>();

/** Something happened under a topic; without one, anything may have. */
export function touch(topic?: string): void {
  for (const one of watched) if (!topic || one.topics.includes(topic)) one.refresh();
}

const GAP_MS = 700;
const EVERY_MS = 15000;

/** Asks again when a topic is touched, at most about once a second, and from time to time. */
class Fresh<T> implements Resource<T>, Watched {
  readonly data = signal<T | null>(null);
  readonly error = signal<string | null>(null);
  private text = "";
  private busy = false;
  private again = false;
  private timer = 0;
  private asked = 0;
  private ended = false;

  constructor(
    private path: string,
    readonly topics: readonly string[],
  ) {}

  refresh = (): void => {
    if (this.timer || this.ended) return;
    const wait = Math.max(0, this.asked + GAP_MS - Date.now());
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      this.ask();
    }, wait);
  };

  private async ask(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    this.asked = Date.now();
    try {
      const data = await get<T>(this.path);
      const text = JSON.stringify(data);
      if (!this.ended && text !== this.text) {
        this.text = text;
        this.data.value = data;
      }
      this.error.value = null;
    } catch (error) {
      if (!this.ended) this.error.value = (error as Error).message;
    }
    this.busy = false;
    if (this.again) {
      this.again = false;
      this.refresh();
    }
  }

  start(): () => void {
    this.ended = false;
    watched.add(this);
    this.ask();
    const every = window.setInterval(() => !document.hidden && this.refresh(), EVERY_MS);
    return () => {
      this.ended = true;
      clearInterval(every);
      clearTimeout(this.timer);
      this.timer = 0;
      watched.delete(this);
    };
  }
}

export function useResource<T>(path: string, topics: readonly string[]): Resource<T> {
  const fresh = useMemo(() => new Fresh<T>(path, topics), [path]);
  useEffect(() => fresh.start(), [fresh]);
  return fresh;
}
