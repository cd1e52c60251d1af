// log.ts - lines of output in the document: added as they come, searched, bounded
import { type Look, PLAIN, line } from "./ansi";

/** The most lines that are kept in the page; the whole output can be downloaded. */
export const LINES_KEPT = 10000;

const ALARMING = /\b(error|exception|traceback|fatal|panic|segmentation fault|out of memory)\b/i;

/** Writes into an element. Each source (a task) has its own unfinished line. */
export class LogView {
  private sources = new Map<string, { row: HTMLElement | null; text: string; look: Look }>();
  private wanted = "";
  private place = 0;
  /** Rows that have what is searched for. */
  hits: HTMLElement[] = [];

  constructor(
    readonly box: HTMLElement,
    private changed: () => void,
  ) {}

  clear(): void {
    this.box.replaceChildren();
    this.sources.clear();
    this.hits = [];
    this.changed();
  }

  get empty(): boolean {
    return this.box.childElementCount === 0;
  }

  /** A piece of the output of a source; `label` stands before each of its lines. */
  add(source: string, label: string, piece: string): void {
    const own = this.sources.get(source) ?? { row: null, text: "", look: PLAIN };
    this.sources.set(source, own);
    const parts = piece.split("\n");
    for (const [place, part] of parts.entries()) {
      if (place > 0) {
        if (own.row) own.look = line(own.text, own.look).look;
        own.row = null;
        own.text = "";
      }
      const last = place === parts.length - 1;
      if (last && part === "") break;
      if (!own.row) own.row = this.row();
      own.text += part;
      this.draw(own.row, own.text, own.look, label);
    }
    while (this.box.childElementCount > LINES_KEPT) this.box.firstElementChild?.remove();
    this.changed();
    if (this.hits[this.place] && !this.box.querySelector(".here")) this.show(this.place);
  }

  private row(): HTMLElement {
    const row = document.createElement("div");
    row.className = "log-line";
    this.box.append(row);
    return row;
  }

  private draw(row: HTMLElement, text: string, look: Look, label: string): void {
    const { pieces } = line(text, look);
    const all = pieces.map((piece) => {
      const span = document.createElement("span");
      span.className = piece.look;
      span.textContent = piece.text;
      return span;
    });
    if (label) {
      const name = document.createElement("span");
      name.className = "log-label";
      name.textContent = label;
      all.unshift(name);
    }
    row.replaceChildren(...all, "\n");
    row.classList.toggle("alarming", ALARMING.test(row.textContent ?? ""));
    if (this.wanted) this.judge(row);
  }

  private judge(row: HTMLElement): void {
    const hit = this.wanted !== "" && (row.textContent ?? "").toLowerCase().includes(this.wanted);
    if (hit && !row.classList.contains("hit")) this.hits.push(row);
    row.classList.toggle("hit", hit);
  }

  /** Marks the lines with this text, also those that come later, and shows the first. */
  search(text: string): void {
    this.wanted = text.toLowerCase();
    this.hits = [];
    for (const row of this.box.children) {
      row.classList.remove("hit", "here");
      this.judge(row as HTMLElement);
    }
    this.changed();
    this.show(0);
  }

  /** Scrolls to one of the lines that were found. Lines that are read again are shown again. */
  show(place: number): void {
    this.place = place;
    for (const row of this.box.querySelectorAll(".here")) row.classList.remove("here");
    const row = this.hits[place];
    row?.classList.add("here");
    row?.scrollIntoView({ block: "center" });
  }
}
