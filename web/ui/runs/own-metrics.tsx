/** Metrics of the plan's own: a table for each kind, as reports have them. */

import { count, number, perSecond, share } from "../../src/figure.ts";
import { Table, type TableColumn } from "../app/controls.tsx";
import type { MetricFigures, OwnMetric, Result } from "../app/result.ts";
import { Facts, Part } from "./parts.tsx";

/** The values of a metric, or those of it with the same tags. */
interface Row {
  name: string;
  unit: string | undefined;
  figures: MetricFigures;
}

type Cells = readonly (readonly [title: string, cell: (figures: MetricFigures) => string])[];

const shown = (value: number | null | undefined, words: (value: number) => string = number) =>
  value == null ? "-" : words(value);

const limits: Cells = [
  ["min", ({ min }) => shown(min)],
  ["max", ({ max }) => shown(max)],
];

const KINDS: readonly (readonly [kind: OwnMetric["kind"], title: string, cells: Cells])[] = [
  [
    "trend",
    "Trends",
    [
      ["mean", ({ mean }) => shown(mean)],
      ...["50", "90", "95", "99"].map((p) => [`p${p}`, (figures: MetricFigures) => shown(figures.p?.[p])] as const),
      ...limits,
    ],
  ],
  [
    "counter",
    "Counters",
    [
      ["sum", ({ sum }) => shown(sum)],
      ["per second", ({ per_s }) => shown(per_s, perSecond)],
    ],
  ],
  ["gauge", "Gauges", [["last", ({ last }) => shown(last)], ...limits]],
  [
    "rate",
    "Rates",
    [
      ["true", ({ hits }) => shown(hits, count)],
      ["share", (figures) => shown(figures.share, share)],
    ],
  ],
];

/** Nothing, if the plan has no metrics. */
export function OwnMetricsPart({ result }: { result: Result }) {
  const metrics = result.metrics ?? [];
  if (metrics.length === 0) return null;
  return (
    <Part id="own-metrics" title="Own metrics">
      <div class="tables">
        {KINDS.map(([kind, title, cells]) => (
          <Kind title={title} cells={cells} metrics={metrics.filter((metric) => metric.kind === kind)} />
        ))}
      </div>
      <Facts
        facts={metrics.flatMap(({ name, unfit, unfit_example, beyond }): [string, string][] => [
          [`not recorded of ${name}`, unfit > 0 ? `${count(unfit)}, the first: ${unfit_example ?? ""}` : ""],
          [`further tags of ${name}`, beyond > 0 ? `${count(beyond)} values without a row of their own` : ""],
        ])}
      />
    </Part>
  );
}

function Kind({ title, cells, metrics }: { title: string; cells: Cells; metrics: OwnMetric[] }) {
  if (metrics.length === 0) return null;
  const rows = metrics.flatMap(({ name, unit, all, tagged = [] }): Row[] => [
    { name, unit, figures: all },
    ...tagged.map(({ tags, figures }) => ({ name: `${name}${tagsText(tags)}`, unit, figures })),
  ]);
  const columns: TableColumn<Row>[] = [
    {
      key: "name",
      title: "Metric",
      heads: true,
      text: true,
      cell: ({ name, unit }) => (unit === undefined ? name : `${name} (${unit})`),
    },
    { key: "values", title: "values", cell: ({ figures }) => count(figures.count) },
    ...cells.map(([title, cell]) => ({ key: title, title, cell: ({ figures }: Row) => cell(figures) })),
  ];
  return (
    <div>
      <h3>{title}</h3>
      <Table columns={columns} rows={rows} rowKey={({ name }) => name} />
    </div>
  );
}

/** Tags as thresholds write them: `{shop:north}`. */
function tagsText(tags: Record<string, string>): string {
  const pairs = Object.entries(tags).map(([name, value]) => `${name}:${value}`);
  return `{${pairs.join(",")}}`;
}
