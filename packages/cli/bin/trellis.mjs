#!/usr/bin/env node
// Plain JavaScript on purpose: it must be able to say that Node is too old. Published packages run what was
// built; in the repository the sources run, so that nothing stale ever does.
import { existsSync } from "node:fs";
import process from "node:process";

const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `trellis needs Node 20.19 or newer; this is ${process.versions.node}.\nInstall Node 20 LTS or later and run the same command again.\n`,
  );
  process.exit(1);
}

if (existsSync(new URL("../../../tsconfig.base.json", import.meta.url))) {
  const { useSources } = await import("./use-sources.mjs");
  useSources();
  await import("../src/main.ts");
} else {
  await import("../dist/main.js");
}
