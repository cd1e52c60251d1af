// chart.tsx - lines over time, drawn by uPlot in the colors of the page
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "../theme";

export interface Curve {
  label: string;
  /** A variable of the style sheet: --accent. */
  colour: string;
  fill?: boolean;
  dashed?: boolean;
}

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(unit: (value: number) => string): uPlot.Axis {
  return {
    stroke: colour("--muted"),
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui, sans-serif",
    size: 52,
    values: (_, values) => values.map(unit),
  };
}

/** The shortest time that a chart shows. */
const SECONDS_LEAST = 30;

/** The times below a chart. */
const STAMPS = {
  seconds: "{HH}:{mm}:{ss}",
  day: "{HH}:{mm}",
  week: "{WWW} {HH}:{mm}",
};

function options(
  curves: Curve[],
  unit: (value: number) => string,
  top: number | null,
  hover: boolean,
  few: boolean,
): uPlot.Options {
  return {
    width: 300,
    height: 150,
    // The last of the times is not cut.
    padding: [null, 24, null, null],
    legend: { show: hover, live: true },
    cursor: { show: hover, y: false, drag: { x: false, y: false } },
    scales: {
      // A line that has just begun does not have one second written below it five times.
      x: { range: (_, from, to) => (to ? [Math.min(from, to - SECONDS_LEAST), to] : [from, to]) },
      y: { range: (_, __, most) => [0, top ?? Math.max(1, most * 1.1)] },
    },
    axes: [{ ...axis(String), size: 24, values: null as never, space: 80 }, axis(unit)],
    series: [
      hover ? { value: "{MMM} {DD}, {HH}:{mm}" } : {},
      ...curves.map((curve) => ({
        label: curve.label,
        stroke: colour(curve.colour),
        width: 1.5,
        // A line needs two points.
        points: { show: few, size: 5 },
        ...(hover
          ? {
              value: (_: uPlot, value: number | null) =>
                value === null ? "–" : unit(round(value)),
            }
          : {}),
        ...(curve.dashed ? { dash: [6, 4] } : {}),
        ...(curve.fill ? { fill: `${colour(curve.colour)}22` } : {}),
      })),
    ],
  };
}

function round(value: number): number {
  return Number(value.toFixed(Math.abs(value) >= 100 ? 0 : 2));
}

function Keys({ curves }: { curves: Curve[] }) {
  return (
    <span class="keys">
      {curves.map((curve) => (
        <span
          key={curve.label}
          class={curve.dashed ? "key dashed" : "key"}
          style={`--c:var(${curve.colour})`}
        >
          {curve.label}
        </span>
      ))}
    </span>
  );
}

/** Redrawn when `tick` differs: `data` is called then. */
export function Chart(props: {
  label: string;
  curves: Curve[];
  unit(value: number): string;
  top?: number;
  tick: unknown;
  /** Of the times below; seconds unless told otherwise. */
  scale?: keyof typeof STAMPS;
  /** Whether values are told where the pointer is. */
  hover?: boolean;
  data(): uPlot.AlignedData;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const few = (props.hover ?? false) && props.data()[0].length <= 12;
  const looks = props.curves.flatMap((curve) => [curve.label, curve.colour]);
  const shape = [few, props.scale, ...looks].join();
  const look = theme.value;
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const made = options(props.curves, props.unit, props.top ?? null, props.hover ?? false, few);
    (made.axes as uPlot.Axis[])[0] = {
      ...axis(String),
      size: 24,
      space: 80,
      values: STAMPS[props.scale ?? "seconds"] as never,
    };
    const drawn = new uPlot(made, props.data(), element);
    plot.current = drawn;
    const fit = () => drawn.setSize({ width: element.clientWidth, height: 150 });
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    fit();
    return () => {
      watch.disconnect();
      drawn.destroy();
      plot.current = null;
    };
  }, [shape, look]);
  useEffect(() => {
    plot.current?.setData(props.data());
  }, [props.tick]);
  return (
    <figure class="chart">
      <figcaption>
        {props.label}
        {!props.hover && <Keys curves={props.curves} />}
      </figcaption>
      <div ref={box} role="img" aria-label={props.label} />
    </figure>
  );
}
