import { render, type ComponentChildren } from "preact";
import "uplot/dist/uPlot.min.css";
import "./page.css";
import { CourseCharts, MachineCharts, PictureCharts } from "./course.tsx";
import { type ChartData, readData } from "./data.ts";
import { HeatMaps } from "./heat.tsx";
import { HistogramChart } from "./histogram.tsx";
import { SpectrumChart } from "./spectrum.tsx";
import { followTheme, ThemeChoice } from "./theme.tsx";

/** The drawings in the places of the page, by their kind. */
const CHARTS: Record<string, (data: ChartData) => ComponentChildren> = {
  spectrum: (data) => <SpectrumChart runs={data.runs} />,
  histogram: (data) => <HistogramChart runs={data.runs} />,
  picture: (data) => <PictureCharts runs={data.runs} />,
  course: (data) => (
    <CourseCharts runs={data.runs} picture={document.querySelector("[data-chart=picture]") === null} />
  ),
  heat: (data) => <HeatMaps runs={data.runs} />,
  machine: (data) => <MachineCharts runs={data.runs} />,
};

followTheme();
const data = readData();
const header = document.querySelector("header.page");
if (header !== null) {
  const place = document.createElement("div");
  place.className = "theme";
  header.prepend(place);
  render(<ThemeChoice />, place);
}
if (data !== null) {
  for (const place of document.querySelectorAll<HTMLElement>("[data-chart]")) {
    const chart = CHARTS[place.dataset["chart"] ?? ""];
    if (chart !== undefined) render(chart(data), place);
  }
}
document.documentElement.dataset["charts"] = "drawn";
