import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

/** Puts the licences of what the script is made of into the page, in place of `<!--licences-->`. */
export function licences(modules: string): Plugin {
  return {
    name: "plimsoll-licences",
    enforce: "post",
    // After the script was written into the page, which happens in the same step.
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        const names = packagesOf(this.getModuleIds());
        if (names.length === 0) throw new Error("no package was found in the script");
        const texts = names.map((name) => `${name}\n\n${licenceOf(join(modules, name))}`);
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const page = String(file.source);
          if (!page.includes("<!--licences-->")) throw new Error("the page has no place for licences");
          file.source = page.replace("<!--licences-->", () => escaped(texts.join("\n\n\n")));
        }
      },
    },
  };
}

/** The packages that modules are from, each once. */
function packagesOf(modules: Iterable<string>): string[] {
  const found = new Set<string>();
  for (const module of modules) {
    const name = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(module)?.[1];
    if (name !== undefined) found.add(name);
  }
  return [...found].sort();
}

function licenceOf(folder: string): string {
  const name = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  if (name === undefined) throw new Error(`${folder} has no licence`);
  return readFileSync(join(folder, name), "utf8").trim();
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
