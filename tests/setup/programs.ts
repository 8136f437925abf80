import { mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const children = join(root, "tests/faults/children");

/**
 * Every program that tests start in processes of their own, in one file each, made from the sources before any test
 * runs: it starts in a fifth of the time that a process takes to compile and load a thousand modules.
 */
export default async function bundlePrograms(): Promise<void> {
  const names = readdirSync(children).filter((name) => name.endsWith(".ts"));
  await Promise.all([
    bundle([join(root, "packages/cli/src/main.ts")], join(root, "packages/cli/.cache")),
    bundle(
      names.map((name) => join(children, name)),
      join(root, "tests/faults/.cache"),
    ),
  ]);
}

async function bundle(entries: readonly string[], folder: string): Promise<void> {
  const { outputFiles } = await build({
    entryPoints: [...entries],
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node20",
    conditions: ["@trellis/source"],
    // What is native, and what hooks into the loading of modules.
    external: ["@photostructure/sqlite", "tsx"],
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    logLevel: "warning",
  });
  mkdirSync(folder, { recursive: true });
  for (const { path, contents } of outputFiles) {
    // Moved over the last one, since another run may be reading that.
    const fresh = `${path}.${process.pid}`;
    writeFileSync(fresh, contents);
    renameSync(fresh, path);
  }
}
