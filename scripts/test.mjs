// Sets up what the tests need and runs all of them. Extra arguments go to vitest: `npm test -- packages/runtime`.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { root, run, setUp, step } from "./lib/setup.mjs";

const args = process.argv.slice(2);
await setUp();

const bin = (name) => join(root, "node_modules", name);
if (args.length === 0) {
  step("Type tests");
  const code = await run(process.execPath, [bin("typescript/bin/tsc"), "-p", "tsconfig.tests.json"]);
  if (code !== 0) {
    process.stderr.write("\nType tests failed: see above.\n\n0 passed, 1 failed\n");
    process.exit(1);
  }
}

step("Tests");
const folder = mkdtempSync(join(tmpdir(), "trellis-test-"));
const report = join(folder, "report.json");
const code = await run(process.execPath, [
  bin("vitest/vitest.mjs"),
  "run",
  "--reporter=default",
  "--reporter=json",
  `--outputFile.json=${report}`,
  ...args,
]);
const { passed, failed } = read(report);
rmSync(folder, { recursive: true, force: true });
// A run that crashed outside a test has no failed test to show for it; it has failed all the same.
const failures = failed === 0 && code !== 0 ? 1 : failed;
process.stdout.write(`\n${passed} passed, ${failures} failed\n`);
process.exit(failures === 0 ? 0 : 1);

function read(path) {
  try {
    const { numPassedTests, numFailedTests, numFailedTestSuites } = JSON.parse(readFileSync(path, "utf8"));
    return { passed: numPassedTests, failed: Math.max(numFailedTests, numFailedTestSuites > 0 ? 1 : 0) };
  } catch {
    return { passed: 0, failed: 1 };
  }
}
