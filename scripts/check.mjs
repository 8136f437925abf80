// Everything that must hold before a change goes in, cheap things first. `npm run check -- lint types` runs a selection.
import { join } from "node:path";
import process from "node:process";
import { bold, green, red, root, run, setUp } from "./lib/setup.mjs";

const bin = (name) => [process.execPath, join(root, "node_modules", name)];
const steps = {
  format: [...bin("@biomejs/biome/bin/biome"), "check", "--linter-enabled=false", "."],
  build: [...bin("typescript/bin/tsc"), "-b"],
  // Behind the build: its rules ask for the types of packages.
  lint: [...bin("oxlint/bin/oxlint"), "--type-aware"],
  unused: [...bin("knip/bin/knip.js")],
  packages: [process.execPath, join(root, "scripts", "check-packages.mjs")],
  test: [process.execPath, join(root, "scripts", "test.mjs")],
};

await setUp();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in steps));
if (unknown.length > 0) {
  process.stderr.write(`Unknown step: ${unknown.join(", ")}. Steps: ${Object.keys(steps).join(", ")}.\n`);
  process.exit(2);
}
for (const [name, [command, ...args]] of Object.entries(steps)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  process.stdout.write(`\n${bold(name)}\n`);
  const started = Date.now();
  const code = await run(command, args);
  if (code !== 0) {
    process.stderr.write(`${red("✗")} ${name} failed\n`);
    process.exit(code);
  }
  process.stdout.write(`${green("✓")} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)\n`);
}
