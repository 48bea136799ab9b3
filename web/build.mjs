// Bundles src/main.ts into the package's folder, with the hash of its sources in front and the licences of what it holds at the end.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "../src/tunnelmark/report/web/report.js");

// The same as tests/unit/report/test_web_bundle.py computes: names and contents, each ended by a zero byte.
function hash() {
  const found = [...readdirSync(join(here, "src"), { recursive: true }).filter((name) => name.endsWith(".ts")).map((name) => join("src", name)), "build.mjs", "package-lock.json", "tsconfig.json"];
  const sum = createHash("sha256");
  for (const name of found.sort()) {
    sum.update(name).update("\0").update(readFileSync(join(here, name))).update("\0");
  }
  return sum.digest("hex");
}

function licences(inputs) {
  const packages = new Map();
  for (const input of Object.keys(inputs)) {
    const match = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) packages.set(relative("node_modules", match[1]), match[1]);
  }
  const texts = [];
  for (const [name, folder] of [...packages].sort()) {
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE"].map((one) => join(here, folder, one)).find(existsSync);
    if (!file) throw new Error(`${name} has no file of its licence`);
    const { version } = JSON.parse(readFileSync(join(here, folder, "package.json"), "utf8"));
    texts.push(`${name} ${version}\n\n${readFileSync(file, "utf8").trim()}`);
  }
  return texts.join("\n\n----\n\n").replaceAll("*/", "* /");
}

const made = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none", // the whole texts follow
  metafile: true,
  write: false,
});
const code = new TextDecoder().decode(made.outputFiles[0].contents).trim();
const text = `/* tunnelmark report, made by scripts/web; sources ${hash()} */\n${code}\n/*! This holds:\n\n${licences(made.metafile.inputs)}\n*/\n`;
if (/<\/script|<!--/i.test(text)) throw new Error("the bundle holds what would end its script element");
mkdirSync(dirname(target), { recursive: true });
writeFileSync(target, text);
console.log(`${relative(process.cwd(), target)}: ${(Buffer.byteLength(text) / 1000).toFixed(0)} kB, ${(Buffer.byteLength(code) / 1000).toFixed(0)} kB of it code`);
