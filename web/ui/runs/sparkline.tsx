/** A small line without axes. */

const WIDTH = 96;
const HEIGHT = 22;

/** The points of a line that fills its box: one value a step, from zero up. */
export function sparkPoints(values: number[]): string {
  const top = Math.max(...values);
  const step = WIDTH / Math.max(1, values.length - 1);
  return values
    .map((value, at) => {
      const y = top > 0 ? HEIGHT - 1 - (value / top) * (HEIGHT - 2) : HEIGHT - 1;
      return `${(at * step).toFixed(1)},${y.toFixed(1)}`;
    })
    .join(" ");
}

/** Decoration beside figures, which say the same. */
export function Sparkline({ values }: { values: number[] }) {
  if (values.length < 2) return null;
  return (
    <svg
      class="spark"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      aria-hidden="true"
      focusable="false"
    >
      <line class="zero" x2={WIDTH} y1={HEIGHT - 0.5} y2={HEIGHT - 0.5} />
      <polyline points={sparkPoints(values)} />
    </svg>
  );
}
