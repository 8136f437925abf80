import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { DiscoveredSettings } from "../platform.ts";

/** Where `trellis dev` leaves its address and token, relative to a project folder. */
const devFile = join(".trellis", "dev.json");

/**
 * Reads TRELLIS_URL, TRELLIS_SEED, TRELLIS_ROOT and TRELLIS_DEV_TOKEN; without a URL it looks for the file
 * of a running `trellis dev` in this folder and its parents. The environment wins as a whole: a token of one
 * platform is never sent to the address of another.
 */
export function discoverSettings(env: NodeJS.ProcessEnv, folder: string): DiscoveredSettings {
  const production = env["NODE_ENV"] === "production";
  const url = env["TRELLIS_URL"];
  const seed = env["TRELLIS_SEED"];
  if (url !== undefined && url !== "") {
    return {
      production,
      trellisUrl: url,
      ...optional("seed", seed),
      ...optional("root", env["TRELLIS_ROOT"]),
      ...optional("devToken", env["TRELLIS_DEV_TOKEN"]),
    };
  }
  return { production, ...optional("seed", seed), ...findDevFile(folder) };
}

function findDevFile(start: string): Omit<DiscoveredSettings, "production"> {
  let folder = start;
  for (;;) {
    const found = readDevFile(join(folder, devFile));
    if (found !== undefined) return found;
    const parent = dirname(folder);
    if (parent === folder) return {};
    folder = parent;
  }
}

function readDevFile(path: string): Omit<DiscoveredSettings, "production"> | undefined {
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
  if (typeof content !== "object" || content === null) return undefined;
  const { url, token, root } = content as Record<string, unknown>;
  if (typeof url !== "string") return undefined;
  return {
    trellisUrl: url,
    ...optional("devToken", typeof token === "string" ? token : undefined),
    ...optional("root", typeof root === "string" ? root : undefined),
  };
}

function optional<K extends string>(key: K, value: string | undefined): { [P in K]?: string } {
  const found: { [P in K]?: string } = {};
  if (value !== undefined && value !== "") found[key] = value;
  return found;
}
