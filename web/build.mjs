// Builds the page into the Python package. What is built depends on the sources and the locked versions only.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = process.argv[2] ?? join(HERE, "../src/elasticdl/runtime/dashboard/static");
const BUNDLED = ["preact", "uplot"];

const read = (...parts) => readFileSync(join(HERE, ...parts), "utf8");

/** A file's name changes its address: a browser that kept an older page does not mix it with the new one. */
function addressed(html) {
  for (const name of ["theme.js", "app.js", "app.css"]) {
    const hash = createHash("sha256").update(readFileSync(join(OUT, name))).digest("hex").slice(0, 10);
    html = html.replace(`/static/${name}`, `/static/${name}?v=${hash}`);
  }
  return html;
}

function licenses() {
  return BUNDLED.map((name) => {
    const folder = join("node_modules", name);
    const { version } = JSON.parse(read(folder, "package.json"));
    const file = readdirSync(join(HERE, folder)).find((each) => /^licen[cs]e/i.test(each));
    return `${name} ${version}\n${"=".repeat(72)}\n${read(folder, file).trim()}\n`;
  }).join("\n\n");
}

mkdirSync(OUT, { recursive: true });
await build({
  absWorkingDir: HERE,
  entryPoints: { app: "src/main.tsx", theme: "src/theme_first.ts" },
  outdir: OUT,
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
writeFileSync(join(OUT, "icon.svg"), read("src", "icon.svg"));
writeFileSync(join(OUT, "index.html"), addressed(read("src", "index.html")));
writeFileSync(join(OUT, "LICENSES.txt"), licenses());
