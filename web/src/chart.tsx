import { type ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { color, useTheme } from "./theme.tsx";

/** A series of a chart. */
export interface Line {
  /** Its name in the legend. */
  label: string;
  /** The name of its colour in the style sheet. */
  color: string;
  /** Lengths of dashes and gaps: lines are told apart by these, too. */
  dash?: number[] | undefined;
  width?: number;
  /** True if the area below it is filled. */
  filled?: boolean;
  /** Steps that reach back (-1) or ahead (1) of each point; 0: straight lines. */
  steps?: -1 | 0 | 1;
  /** As many as there are points; `undefined` where the series has no point of its own. */
  values: (number | null | undefined)[];
  /** True if it is visible at first. */
  shown?: boolean;
}

export interface Axis {
  /** True if it is logarithmic. */
  log?: boolean;
  /** Its ends; without them, those of the values. */
  range?: (low: number, high: number) => [number, number];
  splits?: (low: number, high: number) => number[];
  /** The distances that its ticks may have; without them, powers of ten and their halves and fifths. */
  steps?: number[];
  label: (value: number) => string;
}

/** The properties of a chart. */
export interface ChartProps {
  title: string;
  /** Behind the title, in small print. */
  about?: ComponentChildren;
  x: number[];
  lines: Line[];
  xAxis: Axis;
  yAxis: Axis;
  height: number;
  /** The place of the cursor, in words, and the other values there. */
  at: (index: number) => string;
  /** A value in words. */
  value: (value: number, line: Line, index: number) => string;
  /** The number of the first point at which a cursor makes sense. */
  first?: number;
  /** Charts of the same group have a common cursor and a common range of x. */
  group?: string;
  /** Drawn below and above the lines. */
  below?: (plot: uPlot) => void;
  above?: (plot: uPlot) => void;
  /** Above the chart, beside its legend. */
  children?: ComponentChildren;
}

/** Points that PageUp and PageDown go. */
const PAGE = 10;

/**
 * A chart whose cursor can be moved by mouse, finger and keyboard, and tells its values as text: in the
 * legend, and to screen readers as the value of a slider.
 */
export function Chart(props: ChartProps) {
  const { title, x, lines, at, value, first = 0, height } = props;
  const theme = useTheme();
  const id = useId();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [index, setIndex] = useState<number | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(
    () => new Set(lines.filter((line) => line.shown === false).map((line) => line.label)),
  );
  const [zoomed, setZoomed] = useState(false);
  // Drawing reads the latest properties, without a new setup for them.
  const latest = useRef(props);
  latest.current = props;

  // The setup of the chart; only values change within it, for instance those of a run under way.
  const shape = JSON.stringify([height, x.length === 0, lines.map(({ values: _, ...look }) => look)]);
  const drawn = useRef<{ x: ChartProps["x"]; lines: Line[] } | null>(null);

  useEffect(() => {
    const element = place.current;
    if (element === null || x.length === 0 || lines.length === 0) return;
    const width = () => Math.max(240, Math.floor(element.clientWidth));
    const options = optionsOf(latest, width(), hidden, {
      moved: (index) => setIndex(index),
      zoomed: (range) => setZoomed(range),
    });
    const made = new uPlot(options, dataOf(x, lines), element);
    plot.current = made;
    drawn.current = { x, lines };
    const observer = new ResizeObserver(() => {
      if (Math.abs(width() - made.width) > 1) made.setSize({ width: width(), height: latest.current.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
    // Not `hidden`: that is changed in place.
  }, [theme, shape]);

  useEffect(() => {
    const made = plot.current;
    if (made === null || (drawn.current?.x === x && drawn.current.lines === lines)) return;
    drawn.current = { x, lines };
    // A range that was chosen stays.
    made.setData(dataOf(x, lines), !zoomed);
    if (zoomed) made.redraw();
  }, [x, lines]);

  // Where no request was answered well, there is time and no line.
  const isEmpty = x.length === 0 || lines.length === 0;
  const last = x.length - 1;
  const shown = lines.filter((line) => !hidden.has(line.label));
  const texts = useMemo(
    () => lines.map((line) => (index === null ? null : textAt(line, index, value))),
    [lines, index, value],
  );
  const sentence =
    index === null
      ? "arrow keys move the cursor"
      : [at(index), ...lines.flatMap((line, n) => (hidden.has(line.label) ? [] : [`${line.label} ${texts[n]}`]))].join(
          ", ",
        );

  const move = (to: number) => {
    const made = plot.current;
    if (made === null) return;
    const index = Math.min(last, Math.max(first, to));
    made.setCursor({ left: made.valToPos(middleOf(latest.current, index), "x"), top: made.over.clientHeight / 2 });
    // Beyond a zoomed range there is no cursor.
    setIndex(index);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const now = index ?? (event.key === "ArrowLeft" ? last + 1 : first - 1);
    const moves: Record<string, number> = {
      ArrowRight: now + 1,
      ArrowLeft: now - 1,
      PageUp: now + PAGE,
      PageDown: now - PAGE,
      Home: first,
      End: last,
    };
    const to = moves[event.key];
    if (to !== undefined) move(to);
    else if (event.key === "Escape") {
      plot.current?.setCursor({ left: -10, top: -10 });
      setIndex(null);
    } else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 0.5 : 2);
    else if (event.key === "0") unzoom();
    else return;
    event.preventDefault();
  };
  const zoom = (factor: number) => {
    const made = plot.current;
    const [low, high] = [x[0], x[last]];
    if (made === null || low === undefined || high === undefined) return;
    const scale = made.scales["x"];
    const middle = x[index ?? Math.floor(last / 2)] ?? low;
    const half = (((scale?.max ?? high) - (scale?.min ?? low)) * factor) / 2;
    made.setScale("x", { min: Math.max(low, middle - half), max: Math.min(high, middle + half) });
  };
  const unzoom = () => {
    const [min, max] = [x[0], x[last]];
    if (min !== undefined && max !== undefined) plot.current?.setScale("x", { min, max });
  };
  const toggle = (line: Line, number: number) => {
    const next = new Set(hidden);
    if (!next.delete(line.label)) next.add(line.label);
    setHidden(next);
    plot.current?.setSeries(number + 1, { show: !next.has(line.label) });
  };

  return (
    <figure class="chart">
      <figcaption>
        <h3 id={`${id}-title`}>{title}</h3>
        {props.about}
        {props.children}
        {zoomed && (
          <button type="button" onClick={unzoom}>
            Whole range
          </button>
        )}
      </figcaption>
      <div class="legend" role="group" aria-label={`Lines of ${title}`}>
        <span class="at">{index === null ? "" : at(index)}</span>
        {lines.map((line, number) => (
          <button
            type="button"
            aria-pressed={!hidden.has(line.label)}
            disabled={lines.length === 1}
            onClick={() => toggle(line, number)}
          >
            <Sample line={line} />
            {line.label}
            <output>{texts[number] ?? ""}</output>
          </button>
        ))}
      </div>
      {isEmpty || shown.length === 0 ? (
        <p class="empty">{isEmpty ? "Nothing to draw: no values." : "All lines are hidden."}</p>
      ) : null}
      <div
        ref={place}
        class="plot"
        hidden={isEmpty}
        tabIndex={0}
        role="slider"
        aria-labelledby={`${id}-title`}
        aria-orientation="horizontal"
        aria-valuemin={first}
        aria-valuemax={Math.max(first, last)}
        aria-valuenow={index ?? first}
        aria-valuetext={sentence}
        onKeyDown={onKeyDown}
      />
    </figure>
  );
}

function dataOf(x: number[], lines: Line[]): uPlot.AlignedData {
  return [x, ...lines.map((line) => line.values)] as uPlot.AlignedData;
}

/** The look of a line. */
function Sample({ line }: { line: Line }) {
  return (
    <svg class="sample" width="22" height="10" aria-hidden="true" focusable="false">
      <line
        x1="0"
        x2="22"
        y1="5"
        y2="5"
        stroke={`var(--${line.color})`}
        stroke-width={Math.max(2, line.width ?? 2)}
        stroke-dasharray={line.dash?.join(" ")}
      />
    </svg>
  );
}

/** Labels without those that would run into the one before, on a narrow screen or in a low chart. */
function thinned(plot: uPlot, splits: (number | null)[], labels: string[], scale: "x" | "y"): string[] {
  let end = -Infinity;
  return labels.map((label, index) => {
    const place = plot.valToPos(splits[index] ?? 0, scale);
    // Upwards from below.
    const middle = scale === "x" ? place : -place;
    const half = scale === "x" ? label.length * 3.4 : 5;
    if (label === "" || middle - half < end + 6) return "";
    end = middle + half;
    return label;
  });
}

/** The direction in which the steps of a chart reach from their points. */
function reach({ lines }: ChartProps): -1 | 0 | 1 {
  return lines[0]?.steps ?? 0;
}

/** The place of the cursor for a point: within its step. */
function middleOf(props: ChartProps, index: number): number {
  const { x, xAxis } = props;
  const own = x[index] ?? 0;
  const other = x[index + reach(props)] ?? own;
  return xAxis.log ? Math.sqrt(own * other) : (own + other) / 2;
}

/** The point whose step a place lies in, from the point that is closest to it. */
function within(props: ChartProps, closest: number, place: number): number {
  const own = props.x[closest] ?? place;
  const index = closest + (reach(props) === -1 && own < place ? 1 : reach(props) === 1 && own > place ? -1 : 0);
  return Math.min(props.x.length - 1, Math.max(props.first ?? 0, index));
}

/** The value of a line at a point, or at the last point of its own before that. */
function textAt(line: Line, index: number, text: ChartProps["value"]): string {
  for (let near = index; near >= 0; near -= 1) {
    const value = line.values[near];
    if (value === undefined) continue;
    return value === null ? "–" : text(value, line, near);
  }
  return "–";
}

interface Heard {
  moved: (index: number | null) => void;
  zoomed: (zoomed: boolean) => void;
}

function optionsOf(
  latest: { readonly current: ChartProps },
  width: number,
  hidden: ReadonlySet<string>,
  heard: Heard,
): uPlot.Options {
  const { xAxis, yAxis, lines, height, group } = latest.current;
  const font = "12px system-ui, sans-serif";
  const axis = (axis: Axis, scale: "x" | "y"): uPlot.Axis => ({
    scale,
    stroke: color("muted"),
    font,
    grid: { stroke: color("grid"), width: 1 },
    ticks: { stroke: color("grid"), width: 1, size: 4 },
    values: (plot, splits) => {
      const labels = splits.map((split) => (split === null ? "" : axis.label(split)));
      return thinned(plot, splits, labels, scale);
    },
    ...(axis.steps && { incrs: axis.steps }),
    ...(axis.splits && { splits: (_: uPlot, __: number, low: number, high: number) => axis.splits?.(low, high) ?? [] }),
    ...(axis.log && { filter: (_: uPlot, splits: number[]) => splits }),
    ...(scale === "x" ? { size: 28, space: 60 } : { size: 64 }),
  });
  const scale = (key: "xAxis" | "yAxis"): uPlot.Scale => {
    const { log, range } = latest.current[key];
    return {
      time: false,
      distr: log ? 3 : 1,
      ...(range && {
        range: (_: uPlot, low: number, high: number) => latest.current[key].range?.(low, high) ?? [low, high],
      }),
    };
  };
  const draw = (of: "below" | "above") => (plot: uPlot) => {
    plot.ctx.save();
    plot.ctx.beginPath();
    plot.ctx.rect(plot.bbox.left, plot.bbox.top, plot.bbox.width, plot.bbox.height);
    plot.ctx.clip();
    latest.current[of]?.(plot);
    plot.ctx.restore();
  };
  return {
    width,
    height,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { size: 7 },
      dataIdx: (_, __, closest, place) => within(latest.current, closest, place),
      drag: { x: true, y: false, setScale: true },
      ...(group && { sync: { key: group, setSeries: false } }),
    },
    scales: { x: scale("xAxis"), y: scale("yAxis") },
    axes: [axis(xAxis, "x"), axis(yAxis, "y")],
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const steps = line.steps ?? 0;
        const paths = steps === 0 ? uPlot.paths.linear?.() : uPlot.paths.stepped?.({ align: steps });
        return {
          label: line.label,
          show: !hidden.has(line.label),
          stroke: color(line.color),
          width: line.width ?? 2,
          ...(line.dash && { dash: line.dash }),
          ...(line.filled && { fill: `${color(line.color)}2e` }),
          ...(paths && { paths }),
          points: { show: false },
        };
      }),
    ],
    hooks: {
      drawAxes: [draw("below")],
      draw: [draw("above")],
      setCursor: [
        (plot) => {
          const { idx, left = -1 } = plot.cursor;
          if (idx == null || left < 0) heard.moved(null);
          else heard.moved(within(latest.current, idx, plot.posToVal(left, "x")));
        },
      ],
      setScale: [
        (plot, key) => {
          if (key !== "x") return;
          const { min, max } = plot.scales["x"] ?? {};
          const { x } = latest.current;
          const [low, high] = [x[0] ?? 0, x[x.length - 1] ?? 0];
          const slack = (high - low) * 1e-6;
          heard.zoomed((min ?? low) > low + slack || (max ?? high) < high - slack);
        },
      ],
    },
  };
}
