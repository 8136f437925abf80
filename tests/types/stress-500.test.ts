import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import { stressSource } from "./stress-500.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = `${root}tests/types/.cache`;

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface Cost {
  /** How often the compiler filled in type parameters: the same on every machine. */
  readonly instantiations: number;
  readonly totalMs: number;
}

/** Type-checks a generated file as a user's project would. */
function check(source: string): Cost {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/stress.ts`, source);
  const config = {
    extends: "../../../tsconfig.base.json",
    compilerOptions: {
      noEmit: true,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
    },
    files: ["./stress.ts"],
  };
  writeFileSync(`${folder}/tsconfig.json`, JSON.stringify(config));
  const tsc = `${root}node_modules/.bin/tsc`;
  const report = execFileSync(tsc, ["-p", folder, "--extendedDiagnostics"], { encoding: "utf8" });
  const figure = (name: string): number => Number(new RegExp(`${name}:\\s+([\\d.]+)`).exec(report)?.[1]);
  return { instantiations: figure("Instantiations"), totalMs: figure("Total time") * 1_000 };
}

test("a 500-action API, and a call of each action, type-checks within its budget", {
  timeout: 120_000,
}, () => {
  // On an idle machine 500 actions take 1.2 s. What else is running slows 100 actions down just as much: five times
  // as many actions take less than five times as long, or something has become worse than linear.
  const [few, many] = [stressSource(100), stressSource(500)];
  const runs = [1, 2, 3].map(() => ({ few: check(few), many: check(many) }));
  const best = (of: (run: (typeof runs)[number]) => Cost) => Math.min(...runs.map((run) => of(run).totalMs));
  expect(best((run) => run.many) / best((run) => run.few)).toBeLessThan(5);
  expect(runs[0]?.many.instantiations).toBeLessThan(900_000);
});

test("the cost grows with the number of actions, not with its square", { timeout: 120_000 }, () => {
  const [few, many] = [check(stressSource(100)), check(stressSource(400))];
  expect(many.instantiations / few.instantiations).toBeLessThan(4.4);
});

test("a caller reads short where an editor shows it", () => {
  const source = `${stressSource(1)}export const shown: never = client.group0.items0Do;\n`;
  let message = "";
  try {
    check(source.replaceAll(/ {2}void owned.*\n/g, ""));
  } catch (error) {
    message = (error as { stdout: string }).stdout;
  }
  const shown = /Type '(RpcCaller<.*>)' is not assignable to type 'never'/.exec(message)?.[1];
  expect(shown).toMatch(/^RpcCaller<\{/);
  expect(shown?.length).toBeLessThan(250);
});
