import { readFileSync } from "node:fs";
import type { Figures, Report } from "./figures.js";
import { machine } from "./machine.js";

export interface Options {
  /** Fewer and shorter rounds. */
  readonly quick: boolean;
  readonly json: boolean;
  /** Progress, on stderr. */
  say(text: string): void;
}

export function options(): Options {
  const args = process.argv.slice(2);
  const unknown = args.filter((arg) => arg !== "--quick" && arg !== "--json");
  if (unknown.length > 0)
    throw new Error(`Unknown option ${unknown.join(" ")}; there are --quick and --json.`);
  const json = args.includes("--json");
  return { quick: args.includes("--quick"), json, say: (text) => void process.stderr.write(`› ${text}\n`) };
}

/** Says which goals were met, and with `--json` ends stdout with one object. */
export function finish(bench: string, opts: Options, figures: Figures): void {
  const goals = Object.entries(figures).filter(([, { goal }]) => goal !== undefined);
  console.log("\nGoals");
  for (const [name, { goal, ratio, value, unit, ok }] of goals) {
    console.log(
      `${ok ? "✓" : "✗"} ${name}: ${ratio === undefined ? `${value} ${unit}` : `${ratio} x`} (goal: ${goal})`,
    );
  }
  if (!opts.json) return;
  const report: Report = { bench, machine: machine(), versions: versions(), figures };
  console.log(JSON.stringify(report));
}

function versions(): Record<string, string> {
  return {
    node: process.versions.node,
    "@nats-io/nats-core": installed("@nats-io/nats-core"),
    "@nats-io/services": installed("@nats-io/services"),
  };
}

function installed(name: string): string {
  for (const folder of ["../../node_modules", "../../../node_modules"]) {
    try {
      const file = new URL(`${folder}/${name}/package.json`, import.meta.url);
      return String((JSON.parse(readFileSync(file, "utf8")) as { version?: unknown }).version);
    } catch {
      // not there
    }
  }
  return "unknown";
}
