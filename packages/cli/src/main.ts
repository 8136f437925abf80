import { readFileSync } from "node:fs";
import process from "node:process";
import { packageFile } from "./package-file.ts";
import { runCli } from "./run-cli.ts";
import { nodeSurroundings } from "./surroundings.ts";

const manifest = JSON.parse(readFileSync(packageFile("package.json"), "utf8")) as {
  version: string;
};
const surroundings = nodeSurroundings(process.argv.includes("--json"));
const code = await runCli(process.argv.slice(2), surroundings, manifest.version);
await surroundings.terminal.flush();
// What a command left open (a user's module, say) is not waited for.
process.exit(code);
