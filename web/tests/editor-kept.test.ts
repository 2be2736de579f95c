import type { Browser, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OVERRIDES } from "../ui/editor/flags.ts";
import { hasBrowser, launch, open, type Opened, startUi, textOf, type Ui, violations } from "./ui.ts";

/** An expectation that comes true within a while. */
const poll = <T>(found: () => Promise<T> | T) => expect.poll(found, { timeout: 10_000 });

const plan = (run: string) => `run: ${run}
targets: {api: "http://127.0.0.1:9"}
scenarios: [{steps: [{get: /}]}]
`;
const PLAN = plan("{rate: 20/s, duration: 1s}");

/** Fields of the form of Run, each with something to type. */
const FIELDS: readonly (readonly [label: string, typed: string])[] = [
  ["Name of the run", "evening"],
  ...OVERRIDES.map(({ label }) => [label, "7"] as const),
  ["Other flags", "--tag evening"],
];

describe.skipIf(!hasBrowser())("what the editor keeps of a plan", () => {
  let browser: Browser;
  let ui: Ui;

  beforeAll(async () => {
    browser = await launch();
    ui = await startUi();
  });

  afterAll(async () => {
    await browser?.close();
    await ui?.end();
  });

  async function on(place: string, act: (tab: Tab, opened: Opened) => Promise<void>): Promise<void> {
    const opened = await open(browser, ui, { place, still: true });
    await act(opened.tab, opened);
    await opened.end();
  }

  const go = (tab: Tab, place: string) => tab.evaluate((place) => void (location.hash = place), place);
  const button = (tab: Tab, name: string) => tab.getByRole("button", { name, exact: true });
  const field = (tab: Tab, name: string) =>
    tab.locator(".plan-run").getByRole("textbox", { name, exact: true });
  const text = (tab: Tab) => tab.getByRole("textbox", { name: /^Text of/ });
  const badge = (tab: Tab, words: string) =>
    tab.locator(".plan-state .badge", { hasText: new RegExp(`^\\W*${words}$`) }).waitFor();
  const formOfRun = async (tab: Tab) => {
    await tab.getByRole("tab", { name: "Run", exact: true }).click();
    await button(tab, "Start the run").waitFor();
  };
  const typed = async (tab: Tab) => {
    await formOfRun(tab);
    return Promise.all(FIELDS.map(async ([name]) => [name, await field(tab, name).inputValue()]));
  };
  const NOTHING = FIELDS.map(([name]) => [name, ""]);

  async function write(tab: Tab, wanted: string): Promise<void> {
    await text(tab).click();
    await tab.keyboard.press("Control+a");
    await tab.keyboard.insertText(wanted);
  }

  /** Makes a plan by the form of a load on a URL, which calls it `run.yaml`. */
  const byForm = async (tab: Tab) => {
    await go(tab, "#/new?form=run");
    await tab.getByRole("textbox", { name: "Address", exact: true }).fill("http://127.0.0.1:9/");
    await button(tab, "Make plan").click();
    await tab.waitForURL(/#\/plan\/run\.yaml$/);
    await text(tab).waitFor();
  };
  const byName = async (tab: Tab, name: string) => {
    await go(tab, "#/plans");
    await tab.getByRole("textbox", { name: "New plan" }).fill(name);
    await button(tab, "Create").click();
    await text(tab).waitFor();
  };
  const sure = (tab: Tab, what: string) =>
    tab.getByRole("dialog").getByRole("button", { name: what }).click();
  const discard = async (tab: Tab, name: string) => {
    await go(tab, "#/plans");
    await button(tab, `Discard ${name}`).click();
    await sure(tab, "Discard");
    await button(tab, `Discard ${name}`).waitFor({ state: "detached" });
  };

  const opened = (name: string) => (tab: Tab) => go(tab, `#/plan/${name}`);

  /** Ways to a new plan of the name of another one, whose form of Run was filled in. */
  type Act = (tab: Tab) => Promise<void>;
  const ways: [way: string, name: string, first: Act, then: Act][] = [
    ["discarded, and made by the form again", "run.yaml", byForm, async (tab) => {
      await discard(tab, "run.yaml");
      await byForm(tab);
    }],
    ["discarded, and made by its name again", "run.yaml", byForm, async (tab) => {
      await discard(tab, "run.yaml");
      await byName(tab, "run.yaml");
    }],
    ["made by the form again", "run.yaml", byForm, byForm],
    ["deleted, and made by its name again", "gone.yaml", opened("gone.yaml"), async (tab) => {
      await go(tab, "#/plans");
      await button(tab, "Delete gone.yaml").click();
      await sure(tab, "Delete");
      await button(tab, "Delete gone.yaml").waitFor({ state: "detached" });
      await byName(tab, "gone.yaml");
    }],
    ["renamed, and another one made", "old.yaml", opened("old.yaml"), async (tab) => {
      await go(tab, "#/plans");
      await button(tab, "Rename old.yaml").click();
      await tab.getByRole("dialog").getByLabel("Name of the file").fill("new.yaml");
      await sure(tab, "Rename");
      // What was typed goes with the plan.
      await tab.getByRole("link", { name: "new.yaml", exact: true }).click();
      expect(await typed(tab)).toEqual(FIELDS);
      await byName(tab, "old.yaml");
    }],
  ];

  for (const [way, name, first, then] of ways) {
    test(`the form of Run is empty for the plan of a name whose plan was ${way}`, async () => {
      ui.write("gone.yaml", PLAN);
      ui.write("old.yaml", PLAN);
      await on("#/plans", async (tab) => {
        await first(tab);
        await formOfRun(tab);
        for (const [label, value] of FIELDS) await field(tab, label).fill(value);
        await then(tab);
        expect(tab.url()).toContain(`#/plan/${name}`);
        expect(await typed(tab)).toEqual(NOTHING);
      });
    });
  }

  test("the form of Run keeps its input while its plan stays", async () => {
    ui.write("stays.yaml", PLAN);
    await on("#/plan/stays.yaml", async (tab) => {
      await formOfRun(tab);
      for (const [label, value] of FIELDS) await field(tab, label).fill(value);
      // Discarding a text of a file takes no plan away.
      await write(tab, `${PLAN}# more\n`);
      await badge(tab, "not saved");
      await discard(tab, "stays.yaml");
      await tab.getByRole("link", { name: "stays.yaml", exact: true }).click();
      expect(await typed(tab)).toEqual(FIELDS);
    });
  });

  test("a field of Run shows what the plan has, and says in words what is run without it", async () => {
    ui.write("open.yaml", PLAN);
    ui.write("closed.yaml", plan("{timeout: 5s}"));
    const shown = async (tab: Tab, name: string) => field(tab, name).getAttribute("placeholder");
    const hint = (tab: Tab, name: string) => {
      const has = tab.getByRole("textbox", { name, exact: true });
      return tab.locator(".plan-run .field", { has }).locator(".hint").textContent();
    };
    await on("#/plan/closed.yaml", async (tab) => {
      await formOfRun(tab);
      await poll(() => hint(tab, "Rate")).toContain("without it, 64 users, as fast as the server allows");
      expect(await hint(tab, "Duration")).toContain("without it, 10s");
      for (const [label] of FIELDS) expect([label, (await shown(tab, label)) ?? ""]).toEqual([label, ""]);
      // Fields change what the others stand for.
      await field(tab, "Users").fill("3");
      await poll(() => hint(tab, "Rate")).toContain("without it, 3 users, as fast as the server allows");
      await field(tab, "Users").fill("");
      await field(tab, "Rate").fill("50/s");
      await poll(() => hint(tab, "Users")).toContain("without it, none: the load is a rate");
      expect(await hint(tab, "Rate")).not.toContain("without it");
      expect(await violations(tab)).toEqual([]);
    });
    await on("#/plan/open.yaml", async (tab) => {
      await formOfRun(tab);
      await poll(() => hint(tab, "Users")).toContain("without it, none: the load is a rate");
      expect([await shown(tab, "Rate"), await shown(tab, "Duration")]).toEqual(["20/s", "1s"]);
      expect(await hint(tab, "Rate")).not.toContain("without it");
    });
  });

  test("a load on a URL with an address alone is the one that its form shows", async () => {
    await on("#/new?form=run", async (tab) => {
      const form = tab.getByRole("form", { name: "Load on a URL" });
      const fields = await form.locator("input[type=text]").all();
      for (const one of fields) {
        const value = await one.inputValue();
        const shown = (await one.getAttribute("placeholder")) ?? "";
        const examples = [value, shown].filter((text) => /^(100\/s|p99|20|64|\{)/.test(text));
        expect(examples).toEqual(value === "100/s" ? [value] : []);
      }
      await form.getByRole("textbox", { name: "Address", exact: true }).fill("http://127.0.0.1:9/");
      await button(tab, "Make plan").click();
      await text(tab).waitFor();
      const made = await textOf(tab);
      expect(made).toMatch(/^ +rate: 100\/s$/m);
      expect(made).toMatch(/^ +duration: 10s$/m);
      expect(made).not.toContain("thresholds");
    });
  });

  test("an edited text is kept for the tab where the page goes on to another place", async () => {
    ui.write("kept.yaml", PLAN);
    await on("#/plan/kept.yaml", async (tab) => {
      await write(tab, `${PLAN}# of a file\n`);
      await badge(tab, "not saved");
      await byName(tab, "fresh.yaml");
      await write(tab, `${PLAN}# of none\n`);
      await tab.getByRole("link", { name: "Runs", exact: true }).click();
      await tab.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
      expect(await tab.getByRole("dialog").count()).toBe(0);
      await go(tab, "#/plans");
      const listed = tab.getByLabel("Texts that are not saved");
      for (const [name, words] of [["kept.yaml", "of a file"], ["fresh.yaml", "of none"]] as const) {
        await listed.getByRole("link", { name, exact: true }).click();
        await poll(() => textOf(tab)).toBe(`${PLAN}# ${words}\n`);
        await tab.goBack();
      }
      await discard(tab, "kept.yaml");
      await tab.getByRole("link", { name: "kept.yaml", exact: true }).click();
      await poll(() => textOf(tab)).toBe(PLAN);
    });
    expect(ui.read("kept.yaml")).toBe(PLAN);
  });

  test("closing the tab asks as long as it alone has a text that somebody wrote", async () => {
    ui.write("asks.yaml", PLAN);
    /**
     * Closes the tab, and says yes. True if it asked. A no would leave a refusal that is still on its way
     * through the browser, which may crash at the end of the tab's context.
     */
    const asks = (tab: Tab) =>
      new Promise<boolean>((resolve, reject) => {
        let asked = false;
        tab.on("dialog", (dialog) => {
          asked = dialog.type() === "beforeunload";
          // The tab may be gone before it has confirmed the answer; its end is what counts.
          dialog.accept().catch(() => {});
        });
        tab.once("close", () => resolve(asked));
        tab.close({ runBeforeUnload: true }).catch(reject);
      });
    for (const [state, expected, act] of [
      ["nothing was changed", false, async () => {}],
      ["a new text was not touched", false, byForm],
      ["a file was changed", true, (tab: Tab) => write(tab, `${PLAN}# more\n`)],
      ["a new text was changed", true, async (tab: Tab) => {
        await byForm(tab);
        await write(tab, "# mine\n");
        await tab.getByRole("link", { name: "Runs", exact: true }).click();
      }],
    ] as const) {
      const { tab, context } = await open(browser, ui, { place: "#/plan/asks.yaml", still: true });
      await text(tab).click();
      await act(tab);
      expect([state, await asks(tab)]).toEqual([state, expected]);
      await context.close();
    }
  });
});
