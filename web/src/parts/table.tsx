// table.tsx - a table whose columns sort; on a phone each row is a card
import type { ComponentChildren } from "preact";
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { useGrowing } from "./growing";

type Order = string | number | null | undefined;

export interface Column<T> {
  key: string;
  title: string;
  /** The title is for screen readers alone. */
  unseen?: boolean;
  number?: boolean;
  class?: string;
  /** Names the row. */
  main?: boolean;
  /** Left out where no row has a value to sort by. */
  optional?: boolean;
  /** What rows are sorted by; without it the column does not sort. */
  sort?(row: T): Order;
  cell(row: T): ComponentChildren;
}

/** Numbers by size, texts as people order them, and rows without a value last. */
export function compare(a: Order, b: Order): number {
  const none = (value: Order) => value === null || value === undefined || value === "";
  if (none(a) || none(b)) return Number(none(a)) - Number(none(b));
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** The rows ordered by 'key', or '-key' for the largest first; those without a value stay last. */
export function sorted<T>(rows: readonly T[], columns: readonly Column<T>[], by: string): T[] {
  const down = by.startsWith("-");
  const column = columns.find((one) => one.key === (down ? by.slice(1) : by));
  const value = column?.sort;
  if (!value) return [...rows];
  const missing = (row: T) => {
    const order = value(row);
    return order === null || order === undefined || order === "";
  };
  return [...rows].sort((a, b) => {
    if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
    return compare(value(a), value(b)) * (down ? -1 : 1);
  });
}

/** Up, then down, then as it was. */
export function nextOrder(by: string, key: string): string {
  return by === key ? `-${key}` : by === `-${key}` ? "" : key;
}

/** Rows that are shown at first; on a phone each takes half of the screen. */
const PAGE = matchMedia("(max-width: 700px)").matches ? 30 : 200;

interface Props<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  id(row: T): string;
  /** How it is sorted, kept by the page in its address. */
  by: { value: string };
  rowClass?(row: T): string;
  /** What is shown below a row. */
  more?(row: T): ComponentChildren;
}

function Heading<T>({ column, by }: { column: Column<T>; by: { value: string } }) {
  const up = by.value === column.key;
  const down = by.value === `-${column.key}`;
  const title = column.unseen ? <span class="unseen">{column.title}</span> : column.title;
  return (
    <th
      scope="col"
      class={column.number ? "number" : ""}
      aria-sort={up ? "ascending" : down ? "descending" : undefined}
    >
      {column.sort ? (
        <button
          type="button"
          class="sort"
          onClick={() => {
            by.value = nextOrder(by.value, column.key);
          }}
        >
          {title}
          <span aria-hidden="true">{up ? "▲" : down ? "▼" : ""}</span>
        </button>
      ) : (
        title
      )}
    </th>
  );
}

/** On a phone there are no headings to press. */
function SortChoice<T>({ columns, by }: { columns: readonly Column<T>[]; by: { value: string } }) {
  return (
    <label class="sort-choice">
      Sort by{" "}
      <select
        value={by.value}
        onChange={(event) => {
          by.value = event.currentTarget.value;
        }}
      >
        <option value="">default</option>
        {columns
          .filter((column) => column.sort)
          .flatMap((column) => [
            <option value={column.key} key={column.key}>
              {column.title}, ascending
            </option>,
            <option value={`-${column.key}`} key={`-${column.key}`}>
              {column.title}, descending
            </option>,
          ])}
      </select>
    </label>
  );
}

export function DataTable<T>({ label, columns: given, rows, id, by, rowClass, more }: Props<T>) {
  const [most, setMost] = useState(PAGE);
  const columns = given.filter(
    (column) => !column.optional || rows.some((row) => column.sort?.(row)),
  );
  const all = sorted(rows, columns, by.value);
  const count = useGrowing(Math.min(all.length, most));
  const sortable = columns.some((column) => column.sort);
  return (
    <>
      {sortable && rows.length > 1 && <SortChoice columns={columns} by={by} />}
      <div class="table cards-on-phone" role="region" aria-label={label} tabIndex={0}>
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <Heading column={column} by={by} key={column.key} />
              ))}
            </tr>
          </thead>
          <tbody>
            {all.slice(0, count).map((row) => (
              <Fragment key={id(row)}>
                <tr class={rowClass?.(row) ?? ""}>
                  {columns.map((column) =>
                    column.main ? (
                      <th scope="row" key={column.key} class={column.class ?? ""}>
                        {column.cell(row)}
                      </th>
                    ) : (
                      <td
                        key={column.key}
                        class={`${column.number ? "number " : ""}${column.class ?? ""}`}
                        data-label={column.unseen ? undefined : column.title}
                      >
                        {column.cell(row)}
                      </td>
                    ),
                  )}
                </tr>
                {more?.(row)}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
      {all.length > most && (
        <p class="more-rows">
          <span class="muted">
            Showing {most} of {all.length}.
          </span>{" "}
          <button type="button" onClick={() => setMost(most + PAGE)}>
            Show more
          </button>
        </p>
      )}
    </>
  );
}
