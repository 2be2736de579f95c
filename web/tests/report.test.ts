import type { Browser, Locator, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytes, count, nanos, perSecond, seconds, share } from "../src/figure.ts";
import { makePages, type Page, type Pages } from "./runs.ts";
import { expectPicture, hasBrowser, launch, violations } from "./ui.ts";

/** A page that is open, and the errors that must not happen on it. */
interface Opened {
  tab: Tab;
  /** Errors, complaints on the console, and requests for anything but the file itself. */
  trouble: string[];
}

/** Widths of windows, from a phone to a large screen. */
const WIDTHS = [390, 1280, 1920];

interface How {
  width?: number;
  dark?: boolean;
  script?: boolean;
}

describe.skipIf(!hasBrowser())("reports", () => {
  let browser: Browser;
  let pages: Pages;

  beforeAll(async () => {
    browser = await launch();
    pages = await makePages();
  });

  afterAll(async () => {
    await browser?.close();
    pages?.end();
  });

  async function open(page: Page, { width = 1400, dark = false, script = true }: How = {}): Promise<Opened> {
    const context = await browser.newContext({
      viewport: { width, height: 900 },
      colorScheme: dark ? "dark" : "light",
      javaScriptEnabled: script,
    });
    const tab = await context.newPage();
    const trouble: string[] = [];
    tab.on("console", (message) => trouble.push(`console: ${message.text()}`));
    tab.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
    tab.on("request", (request) => {
      if (!/^(file|data):/.test(request.url())) trouble.push(`request: ${request.url()}`);
    });
    await tab.goto(`file://${page.file}`);
    if (script) await tab.waitForSelector(":root[data-charts=drawn]");
    return { tab, trouble };
  }

  const names = ["faults", "comparison", "silent", "merged"] as const;

  for (const name of names) {
    test(`${name}: every figure is the result's, also without a script`, async () => {
      const page = pages[name];
      for (const script of [true, false]) {
        const { tab, trouble } = await open(page, { script });
        const found = await figures(tab);
        expect(found.length).toBeGreaterThan(40);
        const wrong = found.filter(({ pointer, unit, run, text }) => {
          const from = run === null ? page.results : page.results[run];
          return !expected(at(from, pointer), unit).some((one) => text === one || text === `≥ ${one}`);
        });
        expect(wrong).toEqual([]);
        for (const { pointer, run, text } of found.filter(({ unit }) => unit === "ns")) {
          expect([pointer, text.startsWith("≥")]).toEqual([pointer, isBound(page.results, run, pointer)]);
        }
        expect(trouble).toEqual([]);
        await tab.context().close();
      }
    });

    for (const width of WIDTHS) {
      for (const dark of width === 1920 ? [false] : [false, true]) {
        test(`${name}: fits ${width} px, ${dark ? "dark" : "light"}, and passes axe`, async () => {
          const { tab, trouble } = await open(pages[name], { width, dark });
          const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
          expect(wide).toBeLessThanOrEqual(width);
          // Details that are closed are looked at, too.
          await tab.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
          expect(await tab.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
          expect(await violations(tab)).toEqual([]);
          expect(trouble).toEqual([]);
          await tab.context().close();
        });
      }
    }
  }

  /** Symptom: the address in the title was broken before its last digit. */
  test("an address in the title is one line on a narrow screen", async () => {
    const { tab } = await open(pages.silent, { width: 390 });
    const lines = await tab
      .locator("h1")
      .evaluate((h1) => h1.getBoundingClientRect().height / parseFloat(getComputedStyle(h1).lineHeight));
    expect(lines).toBeLessThan(1.5);
    await tab.context().close();
  });

  for (const name of ["paired", "search", "sweep"] as const) {
    test(`${name}: opens without an error at every width, has its theme, and passes axe`, async () => {
      for (const width of WIDTHS) {
        const { tab, trouble } = await open(pages[name], { width });
        expect(await tab.locator(".theme button").count()).toBe(3);
        expect(await tab.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
        expect(await violations(tab)).toEqual([]);
        expect(trouble).toEqual([]);
        await tab.context().close();
      }
    });
  }

  /** Symptom: the first chart began at y = 960 of 800, below the tiles and the warnings, and was no course. */
  test("rate and response time are in sight beside the outcome, and so is the load", async () => {
    for (const name of ["faults", "silent", "merged"] as const) {
      const { tab, trouble } = await open(pages[name]);
      await expectPicture(tab);
      const [load] = at(pages[name].results[0], "/model/description") as string[];
      expect(await tab.locator("header.page").textContent()).toContain(load);
      // Each chart is on the page once.
      for (const title of ["Rate", "Response time", "In flight"]) expect(await chart(tab, title).count()).toBe(1);
      expect(trouble).toEqual([]);
      await tab.context().close();
    }
  });

  test("warnings are one line, which opens", async () => {
    const { tab } = await open(pages.silent);
    const warnings = at(pages.silent.results[0], "/verdict/warnings") as { code: string; evidence: string }[];
    expect(await tab.locator("details.warnings").count()).toBe(warnings.length > 0 ? 1 : 0);
    for (const { code, evidence } of warnings) {
      expect(await tab.locator(".warnings > summary").textContent()).toContain(code.replaceAll("_", " "));
      expect(await tab.getByText(evidence).first().isVisible()).toBe(false);
    }
    await tab.context().close();
  });

  test("tables of a run fit a laptop, words over words", async () => {
    const { tab } = await open(pages.faults, { width: 1280 });
    const wide = await tab.locator(".table").evaluateAll((all) =>
      all.flatMap((one) => (one.scrollWidth > one.clientWidth + 1 ? [one.getAttribute("aria-label")] : [])),
    );
    expect(wide).toEqual([]);
    const aligned = await tab.locator("#verdict .table :is(th, td)").evaluateAll((all) =>
      all.map((one) => getComputedStyle(one).textAlign),
    );
    expect(new Set(aligned)).toEqual(new Set(["left"]));
    await tab.context().close();
  });

  test("a phone shows the outcome, and whether each threshold holds", async () => {
    for (const name of ["faults", "silent"] as const) {
      const { tab } = await open(pages[name], { width: 400 });
      const verdict = at(pages[name].results[0], "/verdict") as { outcome: string; summary: string };
      const word = tab.locator("#verdict .word").first();
      expect(await word.textContent()).toBe(verdict.outcome.replaceAll("_", " ").toUpperCase());
      const thresholds = at(pages[name].results[0], "/thresholds") as unknown[];
      const words = tab.locator("#verdict tbody tr", { hasText: /✓ pass|✗ fail|! not judged/ }).locator("th");
      expect(await words.count()).toBe(thresholds.length);
      for (const place of [word, ...(await words.all())]) {
        const box = await place.boundingBox();
        if (box === null) throw new Error("it is not on the page");
        expect(box.x).toBeGreaterThanOrEqual(0);
        expect(box.x + box.width).toBeLessThanOrEqual(400);
      }
      await tab.context().close();
    }
  });

  test("the cursor tells the values of an interval, by mouse and by keyboard", async () => {
    const { tab } = await open(pages.faults);
    const intervals = at(pages.faults.results[0], "/intervals") as Interval[];
    const rate = chart(tab, "Rate");
    const plot = rate.getByRole("slider");
    await plot.scrollIntoViewIfNeeded();
    const box = await rate.locator(".u-over").boundingBox();
    const last = intervals[intervals.length - 1];
    if (box === null || last === undefined) throw new Error("nothing is drawn");
    for (const index of [0, 3, 6]) {
      const interval = intervals[index];
      if (interval === undefined) throw new Error("the run was too short");
      // Within the interval, near its start: not nearest to its end.
      const time = interval.at_s - 0.9 * interval.length_s;
      await tab.mouse.move(box.x + (time / last.at_s) * box.width, box.y + box.height / 2);
      await expectText(rate.locator(".at"), `until ${seconds(interval.at_s)}`);
      await expectText(legend(rate, "achieved"), perSecond(interval.achieved_per_s ?? 0));
      // The other charts have the same cursor.
      const max = interval.response_time.max;
      await expectText(legend(chart(tab, "Response time"), "max"), max === null ? "–" : nanos(max));
      await expectText(legend(chart(tab, "In flight"), "in flight"), count(interval.in_flight));
    }
    await tab.mouse.move(0, 0);
    await plot.focus();
    for (const [key, index] of [["Home", 0], ["ArrowRight", 1], ["ArrowRight", 2], ["ArrowLeft", 1]] as const) {
      await tab.keyboard.press(key);
      const interval = intervals[index];
      const said = await plot.getAttribute("aria-valuetext");
      expect(said).toContain(`until ${seconds(interval?.at_s ?? 0)}`);
      expect(said).toContain(`achieved ${perSecond(interval?.achieved_per_s ?? 0)}`);
    }
    await tab.keyboard.press("Escape");
    await expectText(legend(rate, "achieved"), "");
    await tab.context().close();
  });

  test("lines are hidden and shown, and the range is zoomed and reset, by keyboard alone", async () => {
    const { tab } = await open(pages.faults);
    const times = chart(tab, "Response time");
    const button = times.getByRole("button", { name: "p50" });
    await button.focus();
    await tab.keyboard.press("Enter");
    expect(await button.getAttribute("aria-pressed")).toBe("false");
    await tab.keyboard.press("Enter");
    expect(await button.getAttribute("aria-pressed")).toBe("true");
    await times.getByRole("slider").focus();
    await tab.keyboard.press("+");
    const whole = times.getByRole("button", { name: "Whole range" });
    await whole.waitFor();
    await tab.keyboard.press("0");
    await whole.waitFor({ state: "detached" });
    await tab.context().close();
  });

  test("colours follow the system and the buttons", async () => {
    const { tab } = await open(pages.faults, { dark: true });
    const ground = () => tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    await tab.getByRole("button", { name: "Light", exact: true }).click();
    const light = await ground();
    expect(light).not.toBe(dark);
    await tab.getByRole("button", { name: "Dark", exact: true }).click();
    expect(await ground()).toBe(dark);
    await tab.getByRole("button", { name: "Auto", exact: true }).click();
    expect(await ground()).toBe(dark);
    await tab.emulateMedia({ colorScheme: "light" });
    expect(await ground()).toBe(light);
    await tab.context().close();
  });

  test("the spectrum, the histogram and the heat map have the values of the result", async () => {
    const { tab } = await open(pages.faults);
    const result = pages.faults.results[0];
    const spectrum = chart(tab, "Percentile spectrum");
    await spectrum.getByRole("slider").focus();
    await tab.keyboard.press("Home");
    const min = at(result, "/response_time/min") as number;
    await expectText(legend(spectrum, "response time"), nanos(min));
    await tab.keyboard.press("End");
    const max = at(result, "/response_time/max") as number;
    const bound = (at(result, "/response_time/censored") as number) > 0 ? "≥ " : "";
    await expectText(legend(spectrum, "response time"), `${bound}${nanos(max)}`);
    const histogram = chart(tab, "Histogram");
    await histogram.getByRole("slider").focus();
    await tab.keyboard.press("Home");
    const [bar] = at(result, "/response_time/distribution") as { from_ns: number; count: number }[];
    const all = at(result, "/response_time/count") as number;
    const text = `${share((bar?.count ?? 0) / all)} (${count(bar?.count ?? 0)})`;
    await expectText(legend(histogram, "response time"), text);
    const heat = chart(tab, "Heat map");
    await heat.getByRole("slider").focus();
    await tab.keyboard.press("ArrowRight");
    expect(await heat.locator(".at").textContent()).toMatch(/ values from .* to /);
    await tab.context().close();
  });

  test("a comparison draws both runs, and chooses among percentiles", async () => {
    const { tab } = await open(pages.comparison);
    await tab.getByRole("button", { name: "p50", exact: true }).click();
    const times = tab.locator("figure", { has: tab.getByRole("heading", { name: "Response time, p50" }) });
    expect(await times.locator(".legend button").count()).toBe(2);
    const { verdict } = await tab.evaluate(() => ({
      verdict: document.querySelector("#comparison .word")?.textContent ?? "",
    }));
    expect(["Undecided", "Not judged"]).toContain(verdict);
    await tab.context().close();
  });

  test("a run without a response says so", async () => {
    const { tab } = await open(pages.silent);
    expect(await tab.locator("#answers").textContent()).toContain("Not one response came.");
    expect(await tab.locator("main").textContent()).not.toMatch(/NaN|Infinity|undefined|null/);
    await tab.context().close();
  });

  test("a run of a hundred million requests is drawn from few points", async () => {
    const { tab } = await open(pages.merged);
    const data = await tab.evaluate(() => document.getElementById("chart-data")?.textContent?.length ?? 0);
    expect(data).toBeLessThan(800_000);
    const rate = chart(tab, "Rate");
    await rate.getByRole("slider").focus();
    await tab.keyboard.press("End");
    expect(await rate.locator(".at").textContent()).toMatch(/one extreme of \d+ intervals/);
    await tab.context().close();
  });
});

interface Interval {
  at_s: number;
  length_s: number;
  achieved_per_s: number | null;
  in_flight: number;
  response_time: { max: number | null };
}

interface Figure {
  pointer: string;
  unit: string;
  /** The run that the pointer leads into; null: all of them. */
  run: number | null;
  text: string;
}

/** The figures that stand on the page, with where they are from. */
function figures(tab: Tab): Promise<Figure[]> {
  return tab.locator("[data-of]").evaluateAll((elements) =>
    elements.map((element) => {
      const run = element.closest("[data-run]")?.getAttribute("data-run") ?? null;
      return {
        pointer: element.getAttribute("data-of") ?? "",
        unit: element.getAttribute("data-unit") ?? "",
        run: run === null ? null : Number(run),
        text: element.textContent ?? "",
      };
    }),
  );
}

/** The value at a JSON pointer (RFC 6901). */
function at(from: unknown, pointer: string): unknown {
  const keys = pointer.split("/").slice(1);
  return keys.reduce<unknown>((value, key) => {
    const name = key.replaceAll("~1", "/").replaceAll("~0", "~");
    return (value as Record<string, unknown> | undefined)?.[name];
  }, from);
}

/** The forms in which a value may be written. */
function expected(value: unknown, unit: string): string[] {
  if (value === null || value === undefined) return ["-"];
  // A length of nothing and a measured nothing.
  if (unit === "s" && value === 0) return ["0 s", "0 ns"];
  const write: Record<string, (value: never) => string> = {
    ns: nanos,
    s: seconds,
    count,
    per_s: perSecond,
    share,
    bytes,
    text: (value: unknown) => String(value).replaceAll("_", " "),
    outcome: (value: string) => value.replaceAll("_", " ").toUpperCase(),
  };
  const written = write[unit]?.(value as never);
  return written === undefined ? [] : unit === "text" ? [written, String(value)] : [written];
}

/** True if the result says that a figure is only a lower bound. */
function isBound(results: unknown[], run: number | null, pointer: string): boolean {
  const name = pointer.slice(pointer.lastIndexOf("/") + 1);
  const summary = pointer.replace(/(\/p)?\/[^/]*$/, "");
  const bounds = at(run === null ? results : results[run], `${summary}/at_least`);
  return Array.isArray(bounds) && bounds.includes(name);
}

function chart(tab: Tab, title: string): Locator {
  return tab.locator("figure", { has: tab.getByRole("heading", { name: title, exact: true }) });
}

/** The value of a line at the cursor. */
function legend(chart: Locator, label: string): Locator {
  return chart.locator(".legend button", { hasText: new RegExp(`^${label}`) }).locator("output");
}

async function expectText(place: Locator, text: string): Promise<void> {
  if (text === "") await expect.poll(() => place.textContent(), { timeout: 5_000 }).toBe("");
  else await expect.poll(() => place.textContent(), { timeout: 5_000 }).toContain(text);
}

