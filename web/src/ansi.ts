// ansi.ts - text with the color codes of terminals, as pieces with style classes

export interface Piece {
  text: string;
  /** Classes of the style sheet; empty: plain. */
  look: string;
}

export interface Look {
  colour: string;
  bold: boolean;
  dim: boolean;
  underline: boolean;
}

export const PLAIN: Look = { colour: "", bold: false, dim: false, underline: false };

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The nearest of the eight colors. */
function nearest(red: number, green: number, blue: number): string {
  const most = Math.max(red, green, blue);
  if (most < 50) return "black";
  const bit = (value: number) => Number(value > most * 0.6);
  return COLOURS[bit(red) + 2 * bit(green) + 4 * bit(blue)] ?? "";
}

function of256(code: number): string {
  if (code < 16) return COLOURS[code % 8] ?? "";
  if (code >= 232) return code < 238 ? "black" : "white";
  const at = code - 16;
  const part = (value: number) => (value % 6) * 51;
  return nearest(part(Math.floor(at / 36)), part(Math.floor(at / 6)), part(at));
}

/** The look after a sequence such as '1;31'. Background colors are left out. */
export function applied(look: Look, sequence: string): Look {
  const codes = sequence === "" ? [0] : sequence.split(";").map(Number);
  let next = { ...look };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i] ?? 0;
    if (code === 0) next = { ...PLAIN };
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 4) next.underline = true;
    else if (code === 22) next.bold = next.dim = false;
    else if (code === 24) next.underline = false;
    else if (code >= 30 && code <= 37) next.colour = COLOURS[code - 30] ?? "";
    else if (code >= 90 && code <= 97) next.colour = COLOURS[code - 90] ?? "";
    else if (code === 39) next.colour = "";
    else if (code === 38 || code === 48) {
      const simple = codes[i + 1] === 5;
      const colour = simple
        ? of256(codes[i + 2] ?? 0)
        : nearest(codes[i + 2] ?? 0, codes[i + 3] ?? 0, codes[i + 4] ?? 0);
      if (code === 38) next.colour = colour;
      i += simple ? 2 : 4;
    }
  }
  return next;
}

function classes(look: Look): string {
  return [
    look.colour && `ansi-${look.colour}`,
    look.bold && "ansi-bold",
    look.dim && "ansi-dim",
    look.underline && "ansi-underline",
  ]
    .filter(Boolean)
    .join(" ");
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const ESCAPE = /\x1b(?:\[([0-9;:?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;

/** A line in pieces, and the look with which the next one begins. What a carriage return goes
 * back over is not shown: of a progress bar, the last state is left. */
export function line(text: string, from: Look): { pieces: Piece[]; look: Look } {
  const shown = text.replace(/\r+$/, "");
  const back = shown.lastIndexOf("\r");
  let look = from;
  const pieces: Piece[] = [];
  const add = (part: string) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they have no picture
    const clean = part.replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
    if (clean) pieces.push({ text: clean, look: classes(look) });
  };
  let at = 0;
  for (const found of shown.matchAll(ESCAPE)) {
    if (found.index > back) add(shown.slice(Math.max(at, back + 1), found.index));
    at = found.index + found[0].length;
    if (found[2] === "m") look = applied(look, found[1] ?? "");
  }
  add(shown.slice(Math.max(at, back + 1)));
  return { pieces, look };
}

/** The text without its codes. */
export function plain(text: string): string {
  return line(text, PLAIN)
    .pieces.map((piece) => piece.text)
    .join("");
}
