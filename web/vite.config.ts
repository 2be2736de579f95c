import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";
import { licences } from "./licences.ts";
import { policy } from "./policy.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** One page that needs nothing beside it: script and style are written into it. */
export default defineConfig({
  root: folder,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    // The page is committed there, so that cargo needs no Node.js.
    outDir: `${folder}../crates/report/page`,
    emptyOutDir: false,
    modulePreload: false,
    rollupOptions: { input: `${folder}report.html` },
    target: "es2022",
  },
  // In this order: the policy is made of the script that has been written into the page.
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), licences(`${folder}node_modules`), policy()],
});
