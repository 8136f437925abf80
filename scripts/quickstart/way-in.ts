import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { ControlPlane } from "@trellis/control-plane";
import {
  devFilePath,
  devFolderName,
  readDevFile,
  removeDevFile,
  writeDevFile,
} from "../../packages/cli/src/platform/dev-file.ts";
import { ownMark } from "../../packages/cli/src/platform/process-mark.ts";

const root = join(import.meta.dirname, "../..");

/**
 * Lets `npx trellis` in this repository find the quickstart's platform, unless it finds a living one already.
 * Returns how to take that back, or `undefined` when another one keeps its place.
 */
export function openWayIn(plane: ControlPlane): (() => void) | undefined {
  const found = readDevFile(devFilePath(root));
  if (found.kind === "ok" && found.running) return undefined;
  mkdirSync(join(root, devFolderName), { recursive: true, mode: 0o700 });
  const { url, rootFingerprint, devToken: token = "" } = plane;
  const mark = ownMark();
  writeDevFile(root, { version: 1, url, token, root: rootFingerprint, ...mark });
  return () => removeDevFile(root, mark.pid);
}
