// `npm run bench -- <name> [--quick] [--json]`: builds, installs the peers that are compared with, measures.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fail, root, run, setUp, step } from "./lib/setup.mjs";

const folder = join(root, "bench");
const [name, ...flags] = process.argv.slice(2);
const known = readdirSync(join(folder, "src")).filter((entry) =>
  existsSync(join(folder, "src", entry, "main.ts")),
);
if (name === undefined || name === "--help" || !known.includes(name)) {
  process.stdout.write(
    `Usage: npm run bench -- <name> [--quick] [--json]\n\nBenchmarks: ${known.join(", ")}\n`,
  );
  process.exit(name === undefined || name === "--help" ? 0 : 2);
}

await setUp();
const stamp = join(folder, "node_modules", ".trellis-installed");
const lock = readFileSync(join(folder, "package-lock.json"), "utf8");
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lock) {
  step("Installing what is compared with");
  if ((await run("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], { cwd: folder })) !== 0) {
    fail("npm could not install the benchmark's dependencies.", "See npm's message above.");
  }
  writeFileSync(stamp, lock);
}
step("Building");
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
for (const args of [["-b"], ["-p", folder]]) {
  if ((await run(process.execPath, [tsc, ...args])) !== 0) process.exit(1);
}
// The memory figures need collections on demand; nothing else is switched on.
process.exit(await run(process.execPath, ["--expose-gc", join(folder, "dist", name, "main.js"), ...flags]));
