// Packs every package as it would be published and looks at what a user would get.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { root } from "./lib/setup.mjs";

const bin = (name) => join(root, "node_modules", ".bin", name);
const folder = mkdtempSync(join(tmpdir(), "trellis-pack-"));
let failed = false;

for (const name of readdirSync(join(root, "packages"))) {
  const path = join(root, "packages", name);
  const { exports } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const out = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], {
    cwd: path,
    encoding: "utf8",
  });
  const [{ filename, files }] = JSON.parse(out);
  const stray = files.filter(({ path: file }) => /\.(test|test-d|test-kit)\.|tsbuildinfo/.test(file));
  report(
    `${name}: nothing of the tests is packed`,
    stray.length === 0,
    stray.map(({ path: file }) => file).join("\n"),
  );
  check(`${name}: publint`, bin("publint"), ["run", path, "--strict", "--pack", "false"]);
  if (exports !== undefined) {
    check(`${name}: types resolve`, bin("attw"), [
      join(folder, filename),
      "--profile",
      "esm-only",
      "--format",
      "ascii",
    ]);
  }
}
rmSync(folder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);

function check(what, command, args) {
  try {
    execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    report(what, true, "");
  } catch (error) {
    report(what, false, `${error.stdout ?? ""}${error.stderr ?? ""}`);
  }
}

function report(what, ok, details) {
  process.stdout.write(`${ok ? "✓" : "✗"} ${what}\n`);
  if (ok) return;
  failed = true;
  process.stdout.write(`${details}\n`);
}
