import { createHash } from "node:crypto";
import type { Plugin } from "vite";

const NOTHING = "default-src 'none';";

/**
 * Lets the page run its own script and no other, by its hash: what a server under load has smuggled into a
 * report is not run, even if it were not escaped.
 */
export function policy(): Plugin {
  return {
    name: "plimsoll-policy",
    enforce: "post",
    // After the script was written into the page, which happens in the same step.
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const page = String(file.source);
          const scripts = [...page.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)];
          if (scripts.length !== 1) throw new Error(`the page has ${scripts.length} scripts, not one`);
          if (!page.includes(NOTHING)) throw new Error("the page has no policy");
          const hash = createHash("sha256").update(scripts[0]?.[1] ?? "").digest("base64");
          file.source = page.replace(NOTHING, () => `${NOTHING} script-src 'sha256-${hash}';`);
        }
      },
    },
  };
}
