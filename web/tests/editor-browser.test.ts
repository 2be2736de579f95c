import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Locator, Page as Tab } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, listening, type Listening } from "./program.ts";
import { hasBrowser, launch, open, type Opened, startUi, textOf, type Ui, violations } from "./ui.ts";

const imports = fileURLToPath(new URL("../../crates/import/tests/h2loadrunner/", import.meta.url));

/** An expectation that comes true within a while. */
const poll = <T>(found: () => Promise<T> | T) => expect.poll(found, { timeout: 10_000 });

const PHASES = `# The head of the file.
phases:
  # Not measured.
  - {name: warm-up, rate: 100, duration: 500ms, measured: false}   # short
  - {name: usual, rate: 200, duration: 1s}
  # The end.
  - {name: rush, stages: 1s@600}
targets:
  api: http://127.0.0.1:9
scenarios:
  - steps:
      # The only one.
      - get: /   # all of it
thresholds:
  - p99<5s
`;

const plain = (url: string) => `# A plan.
run:
  rate: 20/s   # slowly
  duration: 1s
targets:
  api: ${url}
scenarios:
  - name: visit
    steps:
      - name: create
        post: /resources
        json: {colour: blue}   # as they like it
      - get: /
thresholds:
  - p99<5s
`;

describe.skipIf(!hasBrowser())("the editor of plans", () => {
  let browser: Browser;
  let ui: Ui;
  let server: Listening;

  beforeAll(async () => {
    browser = await launch();
    ui = await startUi();
    const crud = ["target", "crud", "--listen", "127.0.0.1:0", "--drop", "0", "--fail", "0"];
    server = await listening(crud, /(127\.0\.0\.1:\d+)/);
    ui.write("phases.yaml", PHASES);
    ui.write("shop/visit.yaml", plain(`http://${server.address}`));
    ui.write("other.csv", "a,b\n1,2\n");
  });

  afterAll(async () => {
    await browser?.close();
    await ui?.end();
    if (server !== undefined) await ended(server);
  });

  /** Does something on a page of its own, on which nothing may go wrong. */
  async function on(
    place: string,
    act: (tab: Tab, opened: Opened) => Promise<void>,
    refusals = false,
  ): Promise<void> {
    const opened = await open(browser, ui, { place, still: true, refusals });
    await act(opened.tab, opened);
    await opened.end();
  }

  const text = (tab: Tab) => tab.getByRole("textbox", { name: /^Text of/ });
  const button = (tab: Tab, name: string | RegExp) =>
    tab.getByRole("button", { name, exact: typeof name === "string" });
  const tool = (tab: Tab, name: string) => tab.getByRole("tab", { name, exact: true }).click();
  /** Waits for a word about the plan, behind its sign. */
  const badge = (tab: Tab, words: string) =>
    tab.locator(".plan-state .badge", { hasText: new RegExp(`^\\W*${words}$`) }).waitFor();
  const expectText = (tab: Tab, wanted: string) => poll(() => textOf(tab)).toBe(wanted);

  /** Replaces the whole text. */
  async function write(tab: Tab, wanted: string): Promise<void> {
    await text(tab).click();
    await tab.keyboard.press("Control+a");
    await tab.keyboard.insertText(wanted);
  }

  test("a new plan from an example is edited and saved", async () => {
    await on("#/new", async (tab) => {
      await tab.getByText(/^\d+ examples$/).waitFor();
      const groups = await tab.locator("[role=group] > h3").allTextContents();
      expect(groups).toEqual(["First steps", "Data", "Flows", "Shapes of load", "Protocols"]);
      await tab.getByLabel("Search in examples").fill("csv");
      await button(tab, "Edit as new file: csv-data").click();
      await tab.locator(".note", { hasText: "data/users.csv was put into the folder" }).waitFor();
      await badge(tab, "no errors");
      expect(ui.read("data/users.csv")).toContain("user,password");
      // What was not touched is made again, and nothing is asked.
      await tab.goBack();
      await tab.getByLabel("Search in examples").fill("thresholds step");
      await button(tab, "Edit as new file: thresholds").click();
      await badge(tab, "new, not saved");
      await badge(tab, "no errors");
      const example = await textOf(tab);
      expect(example).toContain("p99<5s");
      await text(tab).click();
      await tab.keyboard.press("Control+s");
      await badge(tab, "saved");
      await tab.locator(".note", { hasText: "thresholds.yaml is saved" }).waitFor();
      expect(ui.read("thresholds.yaml")).toBe(example);
      await tab.getByRole("link", { name: "Plans" }).first().click();
      await tab.getByRole("link", { name: "thresholds.yaml" }).waitFor();
    });
  });

  test("a mistake is found at its place and mended by its hint", async () => {
    ui.write("mistake.yaml", plain("http://127.0.0.1:9").replace("duration", "duratoin"));
    await on("#/plan/mistake.yaml", async (tab) => {
      await badge(tab, "1 error");
      const finding = tab.locator(".plan-findings li");
      expect(await finding.textContent()).toContain("did you mean `duration`?");
      await finding.getByRole("button", { name: /duratoin/ }).click();
      expect(await tab.locator(".cm-lintRange-error").first().textContent()).toBe("duratoin");
      expect(await tab.evaluate(() => String(getSelection()))).toBe("duratoin");
      await finding.getByRole("button", { name: "Change to duration" }).click();
      await badge(tab, "no errors");
      await expectText(tab, plain("http://127.0.0.1:9"));
      await badge(tab, "not saved");
    });
  });

  test("a form changes what it is about, keeps comments, and can be undone", async () => {
    await on("#/plan/phases.yaml", async (tab) => {
      await badge(tab, "no errors");
      await button(tab, /^usual/).click();
      const rate = tab.getByRole("textbox", { name: "rate", exact: true });
      expect(await rate.inputValue()).toBe("200");
      await rate.fill("250/s");
      await rate.press("Enter");
      await expectText(tab, PHASES.replace("rate: 200", "rate: 250/s"));
      await button(tab, /^scenario 1/).click();
      await tab.getByLabel("New step in steps").selectOption("post");
      await button(tab, "Add step").click();
      const added = PHASES.replace("rate: 200", "rate: 250/s").replace(
        "# all of it\n",
        "# all of it\n      - post: /\n",
      );
      await expectText(tab, added);
      await tab.getByRole("textbox", { name: "path or URL" }).fill("/orders");
      await tab.getByRole("textbox", { name: "path or URL" }).press("Tab");
      await expectText(tab, added.replace("post: /", "post: /orders"));
      await button(tab, "Move step 2 up").click();
      await expect
        .poll(() => textOf(tab))
        .toContain("      - post: /orders\n      # The only one.\n      - get: /   # all of it");
      for (let undone = 0; undone < 4; undone += 1) await button(tab, "Undo").click();
      await expectText(tab, PHASES);
      await badge(tab, "saved");
    });
  });

  test("a body is edited as text, and what is wrong with it is said", async () => {
    ui.write("body.yaml", plain("http://127.0.0.1:9"));
    await on("#/plan/body.yaml", async (tab) => {
      await badge(tab, "no errors");
      await button(tab, /^create/).click();
      const body = tab.getByRole("textbox", { name: "json", exact: true });
      expect(await body.inputValue()).toBe("{colour: blue}");
      await body.fill("{colour: [red}");
      await body.press("Tab");
      await tab.locator(".plan-field [role=alert]").waitFor();
      await expectText(tab, plain("http://127.0.0.1:9"));
      await body.fill('{colour: red, sizes: [1, "2"]}');
      await body.press("Tab");
      await expectText(tab, plain("http://127.0.0.1:9").replace("blue", 'red, sizes: [1, "2"]'));
    });
  });

  test("the cursor leads to the form, and a form to its place", async () => {
    await on("#/plan/phases.yaml", async (tab) => {
      await badge(tab, "no errors");
      await tab.locator(".cm-line", { hasText: "p99<5s" }).click();
      await tab.locator(".plan-outline [aria-current]", { hasText: "p99<5s" }).waitFor();
      await button(tab, /^rush/).click();
      await button(tab, "Line 7: show stages in the text").click();
      await poll(() => tab.locator(".cm-activeLine").textContent()).toContain("rush");
      expect(await text(tab).evaluate((element) => element === document.activeElement)).toBe(true);
    });
  });

  test("keys are completed, and have words when the mouse is over them", async () => {
    ui.write("words.yaml", "run:\n  rate: 5\n");
    await on("#/plan/words.yaml", async (tab) => {
      await text(tab).click();
      await tab.keyboard.press("Control+End");
      await tab.keyboard.type("  arr");
      await tab.locator(".cm-tooltip-autocomplete", { hasText: "arrival" }).waitFor();
      // Completion takes no key within the first moment, so that nothing is chosen by accident.
      await tab.waitForTimeout(150);
      await tab.keyboard.press("Enter");
      await tab.locator(".cm-tooltip-autocomplete", { hasText: "poisson" }).waitFor();
      await tab.waitForTimeout(150);
      await tab.keyboard.press("ArrowDown");
      await tab.keyboard.press("Enter");
      await expectText(tab, "run:\n  rate: 5\n  arrival: poisson");
      await tab.locator(".cm-line", { hasText: "rate: 5" }).locator("span").first().hover();
      await tab.locator(".plan-hover", { hasText: "Open model" }).waitFor();
    });
  });

  test("the schedule is drawn, and follows what is typed", async () => {
    await on("#/plan/phases.yaml", async (tab) => {
      await tool(tab, "Schedule");
      const totals = tab.locator(".plan-totals");
      await totals.waitFor();
      const arrivals = async () =>
        Number((await totals.textContent())?.match(/iterations([\d,]+)/)?.[1]?.replace(",", "") ?? 0);
      expect(await arrivals()).toBeGreaterThan(0);
      const before = await arrivals();
      for (const name of ["warm-up", "usual", "rush"]) await tab.getByRole("rowheader", { name }).waitFor();
      const painted = await tab.locator(".plot canvas").evaluate((element) => {
        const canvas = element as HTMLCanvasElement;
        const { data } = canvas.getContext("2d")?.getImageData(0, 0, canvas.width, canvas.height) ?? {
          data: [],
        };
        return data.length > 0 && Array.from(data).some((value) => value !== 0);
      });
      expect(painted).toBe(true);
      await write(tab, PHASES.replace("rate: 200", "rate: 400"));
      await poll(arrivals).toBeGreaterThan(before);
      await write(tab, PHASES.replace("rate: 200", "rate: x"));
      await tab.getByText("This shows the text before").waitFor();
      await tool(tab, "Explain");
      await write(tab, PHASES);
      await tab.getByRole("rowheader", { name: "connect_timeout" }).waitFor();
    });
  });

  test("a tried iteration is shown in full, and a value of it is used", async () => {
    await on("#/plan/shop/visit.yaml", async (tab) => {
      await tool(tab, "Try once");
      await button(tab, "Try once").click();
      const first = tab.getByRole("group", { name: "Exchange 1: create" });
      await first.waitFor();
      expect(await first.textContent()).toContain("201");
      await first.locator("summary", { hasText: "Request" }).click();
      expect(await first.textContent()).toContain("POST /resources HTTP/1.1");
      expect(await first.getByRole("group", { name: "Body of request 1" }).textContent()).toContain(
        '"colour": "blue"',
      );
      await first.getByRole("button", { name: /^Use the value of location/ }).click();
      const name = tab.getByLabel("Name of the variable");
      await name.fill("not a name");
      await button(tab, "Write extraction").click();
      await tab.getByText("letters, digits and _").waitFor();
      await name.fill("made");
      await button(tab, "Write extraction").click();
      await poll(() => textOf(tab)).toContain("made: {header: location, as_path: true}");
      const written = await textOf(tab);
      expect(written).toContain("# as they like it");
      // The next step asks for it, and gets a body of JSON.
      await write(tab, written.replace("- get: /\n", "- {name: read, get: '${made}'}\n"));
      await badge(tab, "no errors");
      await button(tab, "Try once").click();
      const second = tab.getByRole("group", { name: "Exchange 2: read" });
      await second.waitFor();
      expect(await first.locator("dl").textContent()).toMatch(/made\/resources\/\w+/);
      await second.getByRole("button", { name: /^Use the value at \/id/ }).click();
      await button(tab, "Write extraction").click();
      await poll(() => textOf(tab)).toContain("extract: {id: {json: /id}}");
      await badge(tab, "no errors");
    });
  });

  test("a curl command and a file of h2loadrunner are imported", async () => {
    await on("#/import", async (tab) => {
      await tab
        .getByLabel(/^Or paste/)
        .fill("curl -X POST http://shop.test/orders -H 'x-a: b' -d '{\"a\": 1}' --retry 3");
      await button(tab, "Import").click();
      const plan = tab.locator("pre[aria-label='The plan']");
      await plan.waitFor();
      expect(await plan.textContent()).toContain("/orders");
      expect(await tab.locator(".plan-notes").textContent()).toContain("--retry");
      await tab.getByLabel("File to import").setInputFiles(join(imports, "basic_get.json"));
      await poll(() => plan.textContent()).toContain("/hello");
      const imported = await plan.textContent();
      // It is saved where it says, and not over a file.
      const name = tab.getByLabel("Name of the plan");
      await poll(() => name.inputValue()).toBe("basic_get.yaml");
      await name.fill("phases.yaml");
      await button(tab, "Save as plan").click();
      await tab.locator(".field-error", { hasText: "there is such a file" }).waitFor();
      await name.fill("imports/hello.yaml");
      await button(tab, "Save as plan").click();
      await tab.locator(".note", { hasText: "imports/hello.yaml is saved" }).waitFor();
      await badge(tab, "saved");
      expect(`${await textOf(tab)}`.trimEnd()).toBe(imported?.trimEnd());
      expect(statSync(join(ui.folder, "imports/hello.yaml")).size).toBeGreaterThan(50);
      await tab.getByRole("link", { name: "Plans" }).first().click();
      await tab.getByRole("link", { name: "imports/hello.yaml" }).waitFor();
    }, true);
    await on("#/import", async (tab) => {
      await tab.getByLabel(/^Or paste/).fill("curl http://shop.test/ --http3");
      await button(tab, "Import").click();
      await tab.getByRole("alert").waitFor();
      expect(await tab.getByRole("alert").textContent()).toContain("HTTP/3 is not supported yet");
    });
  });

  test("a plan is made by a form, which says what is wrong", async () => {
    await on("#/new?form=run", async (tab) => {
      const form = tab.getByRole("form", { name: "Load on a URL" });
      // In words of a page: nothing of a terminal, and examples in the place of names of values.
      await form.getByLabel("Address", { exact: true }).waitFor();
      const asked = (await form.locator("input").evaluateAll((all: HTMLInputElement[]) =>
        all.flatMap((input) => [input.labels?.[0]?.textContent ?? "", input.placeholder, input.value]),
      )) as string[];
      expect(asked.slice(0, 3)).toEqual(["Address", "http://127.0.0.1:8080/", ""]);
      expect(asked.slice(3, 9)).toEqual(["Rate", "", "100/s", "Duration", "10s", "10s"]);
      expect(asked.filter((text) => /^(N|RATE|TIME|SIZE|PLAN\|URL|THRESHOLD|BOUNDS)$/.test(text))).toEqual([]);
      expect(await form.textContent()).not.toMatch(/stdin|exit code|`/);
      const problem = (name: string) =>
        form.locator(".field", { has: tab.getByLabel(name, { exact: true }) }).locator(".field-error");
      await button(tab, "Make plan").click();
      expect(await problem("Address").textContent()).toContain("an address is needed");
      await form.getByLabel("Address", { exact: true }).fill("http://127.0.0.1:9/here");
      for (const [name, value, said] of [
        ["Rate", "fast", "fast is not a rate: write 5000 (per second)"],
        ["Address", "h ttp", "h ttp is not a host"],
        ["Header fields", "none", "no : between name and value"],
        ["Thresholds", "p99<", "the limit is missing"],
      ] as const) {
        const field = form.getByLabel(name, { exact: true });
        const before = await field.inputValue();
        await field.fill(value);
        await button(tab, "Make plan").click();
        await expect.poll(() => problem(name).textContent()).toContain(said);
        expect(await form.getByRole("alert").count()).toBe(0);
        await field.fill(before);
      }
      await form.getByLabel("Rate", { exact: true }).fill("50/s");
      await button(tab, "Make plan").click();
      await badge(tab, "new, not saved");
      await badge(tab, "no errors");
      expect(await textOf(tab)).toMatch(/rate: 50/);
      expect(await textOf(tab)).toContain("/here");
    });
    await on("#/new?form=crud", async (tab) => {
      const form = tab.getByRole("form", { name: "A REST resource" });
      await form.getByRole("textbox", { name: "leader" }).fill(`http://${server.address}`);
      await form.locator("summary", { hasText: "Mix" }).click();
      await form.getByRole("textbox", { name: "create pct" }).fill("many");
      await button(tab, "Make plan").click();
      await form.locator(".field-error").waitFor();
      await form.getByRole("textbox", { name: "create pct" }).fill("100");
      await form.getByRole("textbox", { name: "total" }).fill("20");
      await button(tab, "Make plan").click();
      await badge(tab, "no errors");
      expect(await textOf(tab)).toContain("post:");
    });
  });

  /** Pastes a text into a field, as a browser does. */
  const paste = (field: Locator, pasted: string) =>
    field.evaluate((field, pasted) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", pasted);
      field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, pasted);

  test("lines that are pasted into a field of several values are a row each", async () => {
    await on("#/new?form=run", async (tab) => {
      const form = tab.getByRole("form", { name: "Load on a URL" });
      await form.getByLabel("Address", { exact: true }).waitFor();
      await form.evaluate((form) => form.querySelectorAll("details").forEach((fold) => (fold.open = true)));
      for (const [name, lines] of [
        ["Header fields", ["x-a: 1", "x-b: 2"]],
        ["Address", ["http://127.0.0.1:9/a", "http://127.0.0.1:9/b"]],
        ["Thresholds", ["p99<1s", "error_rate<1%"]],
      ] as const) {
        await paste(form.getByLabel(name, { exact: true }), `${lines.join("\r\n")}\n`);
        const second = form.getByLabel(`${name} 2`, { exact: true });
        await poll(() => second.inputValue()).toBe(lines[1]);
        expect(await form.getByLabel(name, { exact: true }).inputValue()).toBe(lines[0]);
      }
      await button(tab, "Make plan").click();
      await badge(tab, "no errors");
      const plan = await textOf(tab);
      for (const part of ["x-a:", "x-b:", "/a", "/b", "p99<1s", "error_rate<1%"]) expect(plan).toContain(part);
      // The same in the forms of a plan.
      await paste(tab.getByRole("textbox", { name: "another headers" }), "x-c: 3\nx-d: 4");
      await poll(() => textOf(tab)).toMatch(/x-b: 2[^]*x-c: 3[^]*x-d: 4/);
    });
  });

  test("a replica is named by its URL, and a search is a form like the others", async () => {
    await on("#/new?form=canister", async (tab) => {
      const form = tab.getByRole("form", { name: "A canister" });
      await form.getByRole("textbox", { name: "Address" }).first().fill("http://127.0.0.1:9");
      await button(tab, "Make plan").click();
      await badge(tab, "new, not saved");
      expect(await textOf(tab)).toContain("http://127.0.0.1:9");
    });
    await on("#/new", async (tab) => {
      await tab.getByRole("link", { name: /The highest rate/ }).click();
      await tab.getByRole("heading", { level: 3, name: "The highest rate" }).waitFor();
      await button(tab, "Find").click();
      await tab.getByText("write an address, such as").waitFor();
    });
  });

  test("a run is started with the text as it is, and with flags above it", async () => {
    await on("#/plan/shop/visit.yaml", async (tab) => {
      await write(tab, plain(`http://${server.address}`).replace("duration: 1s", "duration: 2s"));
      await tool(tab, "Run");
      await tab.getByRole("textbox", { name: "Rate" }).fill("no rate");
      await button(tab, "Start the run").click();
      await tab.getByRole("alert").waitFor();
      await tab.getByRole("textbox", { name: "Rate" }).fill("30/s");
      await tab.getByLabel("Name of the run").fill("from the editor");
      await button(tab, "Start the run").click();
      await tab.waitForURL(/#\/live\//);
      // Nothing that was typed is lost.
      await tab.goBack();
      await badge(tab, "not saved");
      expect(await textOf(tab)).toContain("duration: 2s");
    });
  });

  test("an example runs against the built-in server by one click", async () => {
    await on("#/new", async (tab) => {
      await button(tab, "Run against a built-in server: open-rate").click();
      await tab.waitForURL(/#\/live\//);
    });
  });

  test("a file that something else has changed is not overwritten unasked", async () => {
    ui.write("shared.yaml", PHASES);
    await on("#/plan/shared.yaml", async (tab) => {
      const other = PHASES.replace("usual", "theirs");
      const own = PHASES.replace("usual", "mine");
      await badge(tab, "no errors");
      ui.write("shared.yaml", other);
      await write(tab, own);
      await tab.keyboard.press("Control+s");
      await button(tab, "Keep editing").click();
      expect(ui.read("shared.yaml")).toBe(other);
      await text(tab).click();
      await tab.keyboard.press("Control+s");
      await button(tab, "Overwrite").click();
      await badge(tab, "saved");
      expect(ui.read("shared.yaml")).toBe(own);
      ui.write("shared.yaml", other);
      await write(tab, `${own}# more\n`);
      await tab.keyboard.press("Control+s");
      await button(tab, "Reload the file").click();
      await expectText(tab, other);
      await badge(tab, "saved");
    });
  });

  test("the text that is seen is run, and that of a file which something else has changed is taken", async () => {
    const visit = plain(`http://${server.address}`);
    ui.write("seen.yaml", visit.replace("rate: 20/s", "rate: 44/s"));
    await on("#/plan/seen.yaml", async (tab) => {
      await badge(tab, "no errors");
      ui.write("seen.yaml", visit.replace("rate: 20/s", "rate: 55/s"));
      await tool(tab, "Run");
      await button(tab, "Start the run").click();
      await tab.waitForURL(/#\/live\//, { timeout: 30_000 });
      await tab.getByText("(44 iterations/s of 2 requests)").first().waitFor({ timeout: 30_000 });
      await tab.goBack();
      await poll(() => textOf(tab)).toContain("55/s");
      // A page that comes to the front looks again.
      const focus = () => tab.evaluate(() => void dispatchEvent(new Event("focus")));
      ui.write("seen.yaml", visit.replace("rate: 20/s", "rate: 66/s"));
      await focus();
      await poll(() => textOf(tab)).toContain("66/s");
      await tab.locator(".note", { hasText: "seen.yaml was changed elsewhere" }).waitFor();
      await badge(tab, "saved");
      // Text of one's own stays, and is known to be behind.
      await write(tab, `${visit}# mine\n`);
      ui.write("seen.yaml", visit.replace("rate: 20/s", "rate: 77/s"));
      await focus();
      await badge(tab, "the file was changed elsewhere");
      await expectText(tab, `${visit}# mine\n`);
      await tab.keyboard.press("Control+s");
      await button(tab, "Reload the file").click();
      await poll(() => textOf(tab)).toContain("77/s");
      await tab.locator(".plan-state .badge", { hasText: "elsewhere" }).waitFor({ state: "detached" });
    });
  });

  test("a start with the same token keeps session and text; with another one the text waits", async () => {
    const token = "0123456789abcdef0123456789abcdef";
    const files = { "a.yaml": PHASES };
    const first = await startUi(files, { token });
    const { tab, context } = await open(browser, first, { place: "#/plan/a.yaml", refusals: true, still: true });
    await badge(tab, "no errors");
    await write(tab, `${PHASES}# first\n`);
    await badge(tab, "not saved");
    await first.kill();
    const second = await startUi({}, { after: first, token });
    // The page asks something, and is known.
    await tab.keyboard.press("Control+s");
    await badge(tab, "saved");
    expect(second.read("a.yaml")).toBe(`${PHASES}# first\n`);
    await write(tab, `${PHASES}# second\n`);
    await second.kill();
    const third = await startUi({}, { after: first });
    await tab.keyboard.press("Control+s");
    await tab.getByRole("heading", { name: "Open the address that plimsoll ui printed" }).waitFor();
    await tab.goto(third.address);
    await expectText(tab, `${PHASES}# second\n`);
    await badge(tab, "not saved");
    await tab.locator(".note", { hasText: "The text of a.yaml that was not saved is here again." }).waitFor();
    await context.close();
    await third.end();
  });

  test("a form that is left and opened again has its input, and what it made asks nothing", async () => {
    await on("#/new?form=run", async (tab) => {
      const form = tab.getByRole("form", { name: "Load on a URL" });
      await form.getByRole("textbox", { name: "Address", exact: true }).fill("http://127.0.0.1:9/kept");
      await button(tab, "Make plan").click();
      await badge(tab, "new, not saved");
      await tab.goBack();
      const address = form.getByRole("textbox", { name: "Address", exact: true });
      await poll(() => address.inputValue()).toBe("http://127.0.0.1:9/kept");
      await tab.getByRole("link", { name: "Find", exact: true }).click();
      await tab.getByLabel("First rate").fill("77/s");
      await tab.getByRole("link", { name: "Runs", exact: true }).click();
      await tab.getByRole("heading", { name: "Runs", level: 1 }).waitFor();
      await tab.goBack();
      await poll(() => tab.getByLabel("First rate").inputValue()).toBe("77/s");
    });
  });

  /** Ways to open a new text, each with the name that it would have. */
  const ways: [way: string, place: string, name: string, act: (tab: Tab) => Promise<void>][] = [
    [
      "the form of a command",
      "#/new?form=run",
      "run.yaml",
      async (tab) => {
        await tab.getByRole("textbox", { name: "Address", exact: true }).fill("http://127.0.0.1:9/");
        await button(tab, "Make plan").click();
      },
    ],
    ["the form of a scenario", "#/new?form=scenario", "scenario.yaml", (tab) => button(tab, "Make plan").click()],
    ["the form of a cluster", "#/new?form=cluster", "shop.yaml", (tab) => button(tab, "Make spec").click()],
    ["an example", "#/new", "open-rate.yaml", (tab) => button(tab, "Edit as new file: open-rate").click()],
    [
      "an import",
      "#/import",
      "imported.yaml",
      async (tab) => {
        await tab.getByLabel(/^Or paste/).fill("curl http://shop.test/");
        await button(tab, "Import").click();
        await button(tab, "Save as plan").click();
      },
    ],
  ];
  const kept = (tab: Tab, path: string) =>
    tab.evaluate((path) => sessionStorage.getItem(`plimsoll-draft:${path}`), path);
  /** Has the tab keep a text that was edited and is in no file. */
  const keep = (tab: Tab, path: string, etag: string | null = null) =>
    tab.evaluate(
      ([path, etag]) =>
        sessionStorage.setItem(`plimsoll-draft:${path}`, JSON.stringify({ text: "# mine\n", etag, begun: "" })),
      [path, etag] as const,
    );

  for (const [way, place, name, act] of ways) {
    test(`a text that is not saved stays beside that of ${way}`, async () => {
      await on("#/find", async (tab) => {
        await keep(tab, name);
        const before = await kept(tab, name);
        await tab.evaluate((place) => void (location.hash = place), place);
        await act(tab);
        const [stem] = name.split(".");
        await tab.waitForURL(new RegExp(`#/plan/${stem}-2\\.yaml$`));
        await text(tab).waitFor();
        expect(await textOf(tab)).not.toContain("# mine");
        expect(await kept(tab, name)).toBe(before);
        // The list has it, until it is discarded.
        await tab.evaluate(() => void (location.hash = "#/plans"));
        await tab.getByRole("link", { name, exact: true }).click();
        await expectText(tab, "# mine\n");
        await badge(tab, "new, not saved");
      });
    });
  }

  test("texts that are not saved are listed, opened and discarded; their names are not free", async () => {
    await on("#/new?form=run", async (tab) => {
      const form = tab.getByRole("form", { name: "Load on a URL" });
      await form.getByRole("textbox", { name: "Address", exact: true }).fill("http://127.0.0.1:9/listed");
      await button(tab, "Make plan").click();
      await badge(tab, "new, not saved");
      await tab.getByRole("link", { name: "Plans" }).first().click();
      const listed = tab.getByLabel("Texts that are not saved");
      await listed.getByRole("row", { name: /run\.yaml.*new, not saved/ }).waitFor();
      expect(await violations(tab)).toEqual([]);
      await tab.getByRole("textbox", { name: "New plan" }).fill("run");
      await tab.locator(".field-error", { hasText: "not saved" }).waitFor();
      // The same form once more opens the same text.
      await tab.evaluate(() => void (location.hash = "#/new?form=run"));
      await button(tab, "Make plan").click();
      await tab.waitForURL(/#\/plan\/run\.yaml$/);
      await tab.getByRole("link", { name: "Plans" }).first().click();
      await button(tab, "Discard run.yaml").click();
      await tab.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
      await button(tab, "Discard run.yaml").click();
      await tab.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
      await listed.waitFor({ state: "detached" });
      expect(await kept(tab, "run.yaml")).toBeNull();
    });
  });

  test("a file is added, copied, renamed and deleted, and nothing goes without an answer", async () => {
    ui.write("kept/old.yaml", PHASES);
    await on(
      "#/plans",
      async (tab) => {
        const row = (name: string) =>
          tab
            .getByRole("row", { name: new RegExp(`^${name.replace(".", "\\.")} `) })
            .filter({ has: tab.getByRole("button", { name: /^Rename/ }) });
        const file = (name: string, text: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
        const dialog = tab.getByRole("dialog");
        await row("kept/old.yaml").waitFor();
        await button(tab, "Copy kept/old.yaml").click();
        const name = dialog.getByLabel("Name of the file");
        expect(await name.inputValue()).toBe("kept/old-2.yaml");
        await name.fill("phases.yaml");
        await dialog.getByRole("button", { name: "Copy" }).click();
        await dialog.getByText("there is such a file").waitFor();
        await name.fill("kept/twin.yaml");
        expect(await violations(tab)).toEqual([]);
        await name.press("Enter");
        await row("kept/twin.yaml").waitFor();
        expect(ui.read("kept/twin.yaml")).toBe(PHASES);
        // A text that is not saved goes with its file.
        await keep(tab, "kept/twin.yaml", "of a file");
        // A name that is typed as soon as the window is there is not written over by the one it begins with.
        const typed = await button(tab, "Rename kept/twin.yaml").evaluate(async (open: HTMLElement) => {
          open.click();
          const field = () => document.querySelector<HTMLInputElement>("dialog[open] input");
          while (field() === null) await Promise.resolve();
          const input = field()!;
          input.value = "../out.yaml";
          input.dispatchEvent(new Event("input", { bubbles: true }));
          for (let frame = 0; frame < 20; frame += 1) await new Promise(requestAnimationFrame);
          return input.value;
        });
        expect(typed).toBe("../out.yaml");
        await dialog.getByRole("button", { name: "Rename" }).click();
        await dialog.locator(".field-error").waitFor();
        await name.fill("kept/new.yaml");
        await dialog.getByRole("button", { name: "Rename" }).click();
        await row("kept/new.yaml").waitFor();
        expect(await row("kept/twin.yaml").count()).toBe(0);
        expect([await kept(tab, "kept/twin.yaml"), (await kept(tab, "kept/new.yaml")) !== null]).toEqual([null, true]);
        await button(tab, "Delete kept/new.yaml").click();
        await dialog.getByRole("button", { name: "Cancel" }).click();
        expect(ui.read("kept/new.yaml")).toBe(PHASES);
        await button(tab, "Delete kept/new.yaml").click();
        await dialog.getByRole("button", { name: "Delete" }).click();
        await row("kept/new.yaml").waitFor({ state: "detached" });
        expect(existsSync(join(ui.folder, "kept/new.yaml"))).toBe(false);
        // Files of data: one that is there is replaced after a question only, and what is no text is refused.
        const chooser = tab.getByLabel("File for: Add files");
        await chooser.setInputFiles(file("people.csv", "name\nada\n"));
        await row("people.csv").waitFor();
        await chooser.setInputFiles(file("people.csv", "name\nbob\n"));
        await dialog.getByRole("button", { name: "Cancel" }).click();
        expect(ui.read("people.csv")).toBe("name\nada\n");
        await chooser.setInputFiles(file("people.csv", "name\nbob\n"));
        await dialog.getByRole("button", { name: "Replace" }).click();
        await poll(() => ui.read("people.csv")).toBe("name\nbob\n");
        await chooser.setInputFiles({ ...file("no.csv", ""), buffer: Buffer.from([0xff, 0xfe]) });
        await tab.locator(".note", { hasText: "no.csv is not text in UTF-8" }).waitFor();
        await chooser.setInputFiles(file("run.sh", "x"));
        await tab.locator(".note", { hasText: "run.sh cannot be added" }).waitFor();
        expect(existsSync(join(ui.folder, "run.sh"))).toBe(false);
      },
      true,
    );
  });

  test("files that are no plans are told where only plans are listed", async () => {
    await on("#/plans", async (tab) => {
      await tab.getByLabel("Search", { exact: true }).fill("other.csv");
      await tab.getByText("0 files; 1 more is no plan").waitFor();
      await tab.getByText("No plan is among these files: without “Only plans” they are listed.").waitFor();
      await tab.getByLabel("Only plans").uncheck();
      await tab.getByRole("link", { name: "other.csv" }).waitFor();
      await tab.getByText("1 file", { exact: true }).waitFor();
      await tab.getByLabel("Search", { exact: true }).fill("nothing of this name");
      await tab.getByText("No file has such a name.").waitFor();
    });
  });

  test("a file that a plan lacks is chosen or written where the finding is", async () => {
    const lacking = plain("http://127.0.0.1:9").replace("targets:", "data: {a: {csv: a.csv}, b: {csv: b.csv}}\ntargets:");
    ui.write("lacks/plan.yaml", lacking.replace("get: /", "get: /${name}/${mail}"));
    await on("#/plan/lacks/plan.yaml", async (tab) => {
      await badge(tab, "2 errors");
      const buffer = Buffer.from("name\nada\n");
      await tab.getByLabel("File for: Choose a file for lacks/a.csv").setInputFiles({
        name: "other.csv",
        mimeType: "text/csv",
        buffer,
      });
      await badge(tab, "1 error");
      expect(ui.read("lacks/a.csv")).toBe("name\nada\n");
      await button(tab, "Write lacks/b.csv").click();
      await badge(tab, "new, not saved");
      await write(tab, "mail\nbob\n");
      await button(tab, "Save").click();
      await badge(tab, "saved");
      await tab.goBack();
      await badge(tab, "no errors");
    });
  });

  test("the text of a file that was removed is there still", async () => {
    await on(
      "#/find",
      async (tab) => {
        await keep(tab, "removed.yaml", "of a file");
        await tab.evaluate(() => void (location.hash = "#/plan/removed.yaml"));
        await expectText(tab, "# mine\n");
        await badge(tab, "new, not saved");
        await tab.getByRole("link", { name: "Plans", exact: true }).first().click();
        const listed = tab.getByLabel("Texts that are not saved");
        await listed.getByRole("link", { name: "removed.yaml" }).waitFor();
      },
      true,
    );
  });

  for (const url of ["htp://127.0.0.1/", "ftp://127.0.0.1/", "http://127.0.0.1/a b", "http://127.0.0.1:99999/"]) {
    test(`an address such as ${url} is marked at its field`, async () => {
      await on("#/new?form=run", async (tab) => {
        const form = tab.getByRole("form", { name: "Load on a URL" });
        const address = form.getByRole("textbox", { name: "Address", exact: true });
        await address.fill(url);
        await button(tab, "Make plan").click();
        await poll(() => address.getAttribute("aria-invalid")).toBe("true");
        expect(await form.getByRole("alert").count()).toBe(0);
        expect(await address.evaluate((field) => field === document.activeElement)).toBe(true);
      });
    });
  }

  test("a flag that was mistyped is one that is not there, at its field", async () => {
    await on("#/plan/phases.yaml", async (tab) => {
      await badge(tab, "no errors");
      await tool(tab, "Run");
      const more = tab.getByRole("textbox", { name: "Other flags" });
      for (const [typed, said] of [
        ["--tmeout 2s", "there is no flag `--tmeout`: did you mean `--timeout`?"],
        ["--out json=x", "`--out` cannot be used from the page: it says where a result goes"],
        ["--fleet a.test", "`--fleet` cannot be used from the page: choose the machines"],
      ] as const) {
        await more.fill(typed);
        await button(tab, "Start the run").click();
        await tab.locator(".field-error", { hasText: said }).waitFor();
        expect(await more.getAttribute("aria-invalid")).toBe("true");
      }
    });
  });

  test("by keyboard alone: a new plan, a mistake, a form, saved", async () => {
    await on("#/plans", async (tab) => {
      const { keyboard } = tab;
      /** Goes on with Tab until something has the focus. */
      const tabTo = async (name: RegExp, back = false) => {
        for (let pressed = 0; pressed < 120; pressed += 1) {
          await keyboard.press(back ? "Shift+Tab" : "Tab");
          const now = await tab.evaluate(() => {
            const element = document.activeElement as HTMLElement | null;
            const label = (element as HTMLInputElement | null)?.labels?.[0]?.textContent ?? "";
            const words = [element?.getAttribute("aria-label") ?? "", label, element?.textContent ?? ""];
            return words.join(" ").slice(0, 200);
          });
          if (name.test(now)) return;
        }
        throw new Error(`${name} cannot be reached`);
      };
      await tab.getByRole("heading", { name: "Plans", level: 1 }).waitFor();
      await tabTo(/New plan/);
      await keyboard.type("by-keys");
      await keyboard.press("Enter");
      await badge(tab, "new, not saved");
      await badge(tab, "no errors");
      await tabTo(/^Text of by-keys.yaml/);
      await keyboard.press("Control+Home");
      await keyboard.press("ArrowDown");
      await keyboard.press("End");
      await keyboard.type("x");
      await badge(tab, "1 error");
      await keyboard.press("Backspace");
      await badge(tab, "no errors");
      // Tab leaves the text: the keyboard is not trapped in it.
      await tabTo(/Outline and forms/);
      await keyboard.press("ArrowRight");
      await tab.locator(".plan-totals").waitFor();
      await keyboard.press("Home");
      await tabTo(/Load and settings/);
      await keyboard.press("Enter");
      await tabTo(/^ *duration/);
      await keyboard.press("Control+a");
      await keyboard.type("3s");
      await keyboard.press("Enter");
      await poll(() => textOf(tab)).toContain("duration: 3s");
      await keyboard.press("Control+s");
      await tab.locator(".note", { hasText: "by-keys.yaml is saved" }).waitFor();
      expect(ui.read("by-keys.yaml")).toContain("duration: 3s");
    });
  });

  test("a file that is no plan is plain text, and one that is not there says so", async () => {
    await on("#/plan/other.csv", async (tab) => {
      await expectText(tab, "a,b\n1,2\n");
      expect(await tab.getByRole("tab").count()).toBe(0);
    });
    await on("#/plan/nothing.yaml", async (tab) => {
      await tab.getByRole("alert").waitFor();
      await button(tab, "Begin a new plan of this name").click();
      await badge(tab, "new, not saved");
    });
  });

  const places: [name: string, place: string, act: (tab: Tab) => Promise<void>][] = [
    ["the list of plans", "#/plans", async (tab) => tab.getByRole("link", { name: "phases.yaml" }).waitFor()],
    [
      "a plan with its forms",
      "#/plan/phases.yaml",
      async (tab) => {
        await badge(tab, "no errors");
        await button(tab, /^GET \//).click();
        for (const fold of await tab.locator(".plan-fold").all())
          await fold.evaluate((one) => ((one as HTMLDetailsElement).open = true));
      },
    ],
    ["a plan with a mistake", "#/plan/wrong.yaml", async (tab) => badge(tab, "\\d+ errors?")],
    [
      "the schedule",
      "#/plan/phases.yaml",
      async (tab) => {
        await tool(tab, "Schedule");
        await tab.locator(".plan-totals").waitFor();
      },
    ],
    [
      "the explanation",
      "#/plan/phases.yaml",
      async (tab) => {
        await tool(tab, "Explain");
        await tab.getByRole("rowheader", { name: "connect_timeout" }).waitFor();
      },
    ],
    [
      "a tried iteration",
      "#/plan/shop/visit.yaml",
      async (tab) => {
        await tool(tab, "Try once");
        await button(tab, "Try once").click();
        await tab.getByRole("group", { name: /^Exchange 1/ }).waitFor();
      },
    ],
    ["the start of a run", "#/plan/phases.yaml", async (tab) => tool(tab, "Run")],
    [
      "new plans",
      "#/new?form=crud",
      async (tab) => {
        await button(tab, "Make plan").waitFor();
        await tab.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      },
    ],
    [
      "an import",
      "#/import",
      async (tab) => {
        await tab.getByLabel(/^Or paste/).fill("curl http://shop.test/ --retry 3");
        await button(tab, "Import").click();
        await tab.locator("pre[aria-label='The plan']").waitFor();
      },
    ],
  ];

  for (const width of [390, 1440]) {
    for (const dark of [false, true]) {
      test(
        `everything fits ${width} px, ${dark ? "dark" : "light"}, passes axe and keeps the policy`,
        { timeout: 240_000 },
        async () => {
          ui.write("wrong.yaml", PHASES.replace("rate", "ratte"));
          const { tab, trouble, end } = await open(browser, ui, { width, dark, still: true });
          for (const [name, place, act] of places) {
            // From elsewhere, so that the same place is drawn anew.
            await tab.evaluate(() => void (location.hash = "#/runs"));
            await tab.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
            await tab.evaluate((hash) => void (location.hash = hash), place);
            await act(tab);
            const wide = await tab.evaluate(() => document.documentElement.scrollWidth);
            expect([name, wide <= width, await violations(tab), trouble]).toEqual([name, true, [], []]);
          }
          await end();
        },
      );
    }
  }

  test("bytes of a server are text and nothing else", async () => {
    const hostile = "<img src=x onerror=alert(1)>";
    const name = JSON.stringify(hostile);
    ui.write("hostile.yaml", `name: ${name}\n${plain(`http://${server.address}`).replace("blue", name)}`);
    await on("#/plan/hostile.yaml", async (tab) => {
      await tool(tab, "Try once");
      await button(tab, "Try once").click();
      await tab.getByRole("group", { name: /^Exchange 1/ }).waitFor();
      expect(await tab.locator("img").count()).toBe(0);
      const body = tab.getByRole("group", { name: "Body of request 1", includeHidden: true });
      expect(await body.textContent()).toContain(hostile);
    });
  });

  test("the fixtures are what other tools have written", () => {
    expect(JSON.parse(readFileSync(join(imports, "basic_get.json"), "utf8"))).toHaveProperty("Scenarios");
  });
});
