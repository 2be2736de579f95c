import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { licences } from "./licences.ts";

const folder = fileURLToPath(new URL(".", import.meta.url));

/** The page of `plimsoll ui`: a page, a script and a style sheet, whose names stay the same. */
export default defineConfig({
  root: `${folder}ui`,
  // Where the program serves script and style sheet.
  base: "/assets/",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    // The page is committed there, so that cargo needs no Node.js.
    outDir: `${folder}../crates/web/page`,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 2_000,
    target: "es2022",
    rollupOptions: {
      output: { codeSplitting: false, entryFileNames: "app.js", assetFileNames: "app[extname]" },
    },
  },
  plugins: [licences(`${folder}node_modules`)],
});
