/** The data of the charts: `crates/report/src/html/chart.rs` writes it. */
export interface ChartData {
  runs: RunData[];
}

/** One run. Instants are seconds since its start, warm-up included; times are nanoseconds. */
export interface RunData {
  name: string;
  is_open: boolean;
  /** The time that the model is about. */
  time: TimeKey;
  course: Course;
  spans: Span[];
  marks: Mark[];
  spectra: Spectrum[];
  histograms: Histogram[];
  heat: Heat | null;
  /** Data that are not drawn in full, and the way to get them. */
  missing: string | null;
}

export type TimeKey = "response_time" | "service_time";

export interface Course {
  from_s: number;
  /** Intervals for which two points stand, their extremes; 1: each point is an interval. */
  joined: number;
  /** Ends of intervals. */
  at_s: number[];
  series: { name: string; values: (number | null)[] }[];
}

export interface Span {
  from_s: number;
  to_s: number;
  kind: "warmup" | "phase" | "settling" | "drain" | "silent";
  name: string;
}

export interface Mark {
  at_s: number;
  length_s: number;
  kind: "change" | "fault" | "stall" | "threshold";
  text: string;
}

export interface Spectrum {
  time: TimeKey;
  count: number;
  /** Share of the requests, and the longest time of these. */
  points: [number, number][];
  /** The first point that is only a lower bound. */
  at_least_from: number | null;
  /** The share above which there are too few values. */
  known_to: number;
  intervals: [number, number | null, number | null][];
}

export interface Histogram {
  time: TimeKey;
  count: number;
  /** From, below, count. */
  bars: [number, number, number][];
}

export interface Heat {
  time: TimeKey;
  columns: [number, number][];
  limits_ns: number[];
  cells: [number, number, number][];
}

/** The words for a time. */
export function timeName(time: TimeKey): string {
  return time === "response_time" ? "response time" : "service time";
}

/** Reads the data of the page; null if it has no charts to draw, as that of a comparison of two targets. */
export function readData(): ChartData | null {
  const text = document.getElementById("chart-data")?.textContent;
  return text == null ? null : (JSON.parse(text) as ChartData);
}
