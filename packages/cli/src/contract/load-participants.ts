import { readFileSync } from "node:fs";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { EXIT } from "../exit-code.ts";
import { CliFailure } from "../failure.ts";
import { codeOf } from "../platform/private-file.ts";
import { isParticipantArtifact } from "./artifact.ts";

/** A contract to be installed. */
export interface LoadedArtifact {
  readonly id: string;
  readonly artifact: Record<string, unknown>;
}

/**
 * Reads participants from a file: a module that exports what `defineService` and `defineApp` gave, or JSON with
 * one artifact or several.
 */
export async function loadParticipants(file: string, folder: string): Promise<LoadedArtifact[]> {
  const path = resolve(folder, file);
  const found = extname(path) === ".json" ? fromJson(path) : await fromModule(path);
  if (found.length > 0) return found;
  throw new CliFailure(`${file} exports no participant.`, {
    exitCode: EXIT.usage,
    hint: "Export what defineService() or defineApp() gives: `export const orders = defineService(...)`.",
  });
}

function fromJson(path: string): LoadedArtifact[] {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw unreadable(path, cause);
  }
  const artifacts: unknown[] = Array.isArray(value) ? value : [value];
  return artifacts.map((artifact) => {
    if (isParticipantArtifact(artifact)) return { id: artifact.id, artifact: { ...artifact } };
    throw new CliFailure(`${path} does not hold the artifact of a participant.`, {
      exitCode: EXIT.usage,
      hint: "`trellis participants show <id> --json` shows one, below `artifact`.",
    });
  });
}

async function fromModule(path: string): Promise<LoadedArtifact[]> {
  const { tsImport } = await import("tsx/esm/api");
  try {
    // Not `import` with tsx registered: Node refuses that for a file of a package that is not `"type": "module"`.
    const exported: unknown = await tsImport(pathToFileURL(path).href, import.meta.url);
    return [...exportsOf(exported)].flatMap(artifactOf);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

/** What a module exports. One that is compiled to CommonJS has its exports below `default`, once more or only there. */
function exportsOf(module: unknown): Set<unknown> {
  const { default: own, ...named } = module as Record<string, unknown>;
  const inner = typeof own === "object" && own !== null && !("artifact" in own) ? Object.values(own) : [];
  return new Set([own, ...Object.values(named), ...inner]);
}

/** By form, not by class: the file may use another copy of the contract package. */
function artifactOf(exported: unknown): LoadedArtifact[] {
  if (typeof exported !== "object" || exported === null || !("artifact" in exported)) return [];
  const { artifact } = exported;
  return isParticipantArtifact(artifact) ? [{ id: artifact.id, artifact: { ...artifact } }] : [];
}

function unreadable(path: string, cause: unknown): CliFailure {
  const code = codeOf(cause);
  const missing = code === "ENOENT" || (code === "ERR_MODULE_NOT_FOUND" && String(cause).includes(path));
  const message = cause instanceof Error ? cause.message : String(cause);
  return new CliFailure(missing ? `There is no file ${path}.` : `${path} cannot be read: ${message}`, {
    exitCode: EXIT.usage,
    cause,
  });
}
