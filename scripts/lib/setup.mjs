// Plain JavaScript on purpose: it runs on a bare clone, before anything is installed.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const stampFile = join(root, "node_modules", ".trellis-installed");
const minimumNode = [20, 19];

/** How every script of this repository runs TypeScript: sources resolve to sources, no build needed. */
export const tsFlags = ["--conditions=@trellis/source", "--import", "tsx"];

export function step(text) {
  process.stdout.write(`${bold("›")} ${text}\n`);
}

export function fail(message, hint) {
  process.stderr.write(`\n${red("✗")} ${message}\n  ${hint}\n`);
  process.exit(1);
}

const colours = process.stdout.isTTY && !process.env.NO_COLOR;
export const bold = (text) => (colours ? `\u001b[1m${text}\u001b[22m` : text);
export const red = (text) => (colours ? `\u001b[31m${text}\u001b[39m` : text);
export const green = (text) => (colours ? `\u001b[32m${text}\u001b[39m` : text);

/** Runs a command with its output shown; resolves with the exit code. Ctrl-C reaches it through the terminal. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options });
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? (signal === null ? 1 : 128)));
  });
}

export function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [needMajor, needMinor] = minimumNode;
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return;
  fail(
    `Node ${process.versions.node} is too old: Trellis needs ${minimumNode.join(".")} or newer.`,
    "Install Node 20 LTS or later and run the same command again.",
  );
}

/** Installs the dependencies when the lock file says something else than what was installed last. */
export async function installDependencies() {
  const lock = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  if (existsSync(stampFile) && readFileSync(stampFile, "utf8") === lock) return;
  step("Installing dependencies (npm ci); once a minute at most");
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const code = await run(npm, ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  if (code !== 0) {
    fail(
      "npm could not install the dependencies.",
      "See npm's message above; behind a proxy, set `npm config set registry`.",
    );
  }
  mkdirSync(dirname(stampFile), { recursive: true });
  writeFileSync(stampFile, lock);
}

/** Makes sure that a nats-server of the right version is there, fetching one when it is not. */
export async function ensureNatsServer() {
  const code = await run(process.execPath, [...tsFlags, join(root, "scripts", "ensure-nats.ts")]);
  if (code !== 0) process.exit(code);
}

export async function setUp() {
  checkNode();
  await installDependencies();
  await ensureNatsServer();
}
