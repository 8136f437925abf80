// `npm run chaos -- <name> [options]`: long runs in which parts of the system are killed, seeded and printed.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { root, run, setUp } from "./lib/setup.mjs";

const folder = join(root, "tests", "chaos");
const [name, ...flags] = process.argv.slice(2);
const known = readdirSync(folder).filter((entry) => existsSync(join(folder, entry, "main.ts")));
if (name === undefined || !known.includes(name)) {
  process.stdout.write(
    `Usage: npm run chaos -- <name> [--rounds <n>] [--seed <n>]\n\nNames: ${known.join(", ")}\n`,
  );
  process.exit(name === undefined ? 0 : 2);
}
await setUp();
const loader = ["--conditions=@trellis/source", "--import", "tsx"];
process.exit(await run(process.execPath, [...loader, join(folder, name, "main.ts"), ...flags]));
