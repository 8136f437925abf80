import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** What each package may import: of ours, and from outside. A dependency that is not here needs a reason first. */
const allowed: Record<string, { readonly ours: readonly string[]; readonly outside: readonly RegExp[] }> = {
  result: { ours: [], outside: [] },
  contract: { ours: ["result"], outside: [/^typebox(\/|$)/, /^@noble\/hashes\//] },
  protocol: { ours: ["result", "contract"], outside: [/^typebox(\/|$)/, /^@noble\//, /^croner$/] },
  runtime: {
    ours: ["result", "contract", "protocol"],
    outside: [/^typebox$/, /^@nats-io\/(nats-core|transport-node)$/, /^@opentelemetry\/api$/, /^#platform$/],
  },
  "control-plane": {
    ours: ["result", "contract", "protocol", "runtime"],
    outside: [
      /^node:/,
      /^typebox(\/|$)/,
      /^@nats-io\/(nats-core|transport-node|jetstream)$/,
      /^@photostructure\/sqlite$/,
      /^kysely$/,
      /^hono(\/|$)/,
      /^@hono\/node-server$/,
      /^tweetnacl$/,
    ],
  },
  testing: {
    ours: ["result", "contract", "protocol", "runtime", "control-plane"],
    outside: [/^node:/, /^@nats-io\/(nats-core|transport-node)$/],
  },
  cli: {
    ours: ["result", "contract", "protocol", "runtime", "control-plane"],
    outside: [/^node:/, /^typebox(\/compile)?$/, /^commander$/, /^tsx(\/|$)/],
  },
};

/** Folders that may import what the rest of their package may not. */
const exceptions: readonly { readonly folder: string; readonly outside: RegExp }[] = [
  { folder: "packages/runtime/src/platform/node", outside: /^node:/ },
  // The broker client has no public way to end a dial whose socket is gone; its version is pinned.
  { folder: "packages/runtime/src/connect", outside: /^@nats-io\/nats-core\/internal$/ },
];

interface Import {
  readonly file: string;
  readonly specifier: string;
}

describe("the structure of the house", () => {
  it.each(Object.keys(allowed))("%s imports only what it may", (name) => {
    expect(importsOf(name).filter(({ file, specifier }) => !isAllowed(name, file, specifier))).toEqual([]);
  });

  it("keeps entry points explicit: nothing is exported wholesale", () => {
    const wholesale = Object.keys(allowed)
      .flatMap((name) => sources(join(root, "packages", name, "src")))
      .filter((file) => /^export \* /m.test(readFileSync(file, "utf8")));
    expect(wholesale).toEqual([]);
  });

  // An entry point is a list of names, and as long as what it offers.
  it("keeps files short: none over 400 lines, entry points apart", () => {
    const long = Object.keys(allowed)
      .flatMap((name) => sources(join(root, "packages", name, "src")))
      .map((file) => ({ file: relative(root, file), lines: readFileSync(file, "utf8").split("\n").length }))
      .filter(({ file, lines }) => lines > 400 && !file.endsWith("src/index.ts"));
    expect(long).toEqual([]);
  });

  it("has no cast that silences the compiler", () => {
    const casts = Object.keys(allowed)
      .flatMap((name) => sources(join(root, "packages", name, "src")))
      .flatMap((file) => {
        const text = readFileSync(file, "utf8").replace(/^\s*(\*|\/\/|\/\*).*$/gm, "");
        return /(: any\b|<any>|as any\b|as unknown as|@ts-ignore)/.test(text) ? [relative(root, file)] : [];
      });
    expect(casts).toEqual([]);
  });
});

function isAllowed(name: string, file: string, specifier: string): boolean {
  const rules = allowed[name];
  if (specifier.startsWith(".") || rules === undefined) return true;
  const ours = /^@trellis\/([a-z-]+)/.exec(specifier)?.[1];
  if (ours !== undefined) return rules.ours.includes(ours);
  if (rules.outside.some((pattern) => pattern.test(specifier))) return true;
  return exceptions.some(({ folder, outside }) => file.startsWith(`${folder}/`) && outside.test(specifier));
}

function importsOf(name: string): Import[] {
  return sources(join(root, "packages", name, "src")).flatMap((file) => {
    // Only what stands at the beginning of a line is an import; examples in comments are not.
    const text = readFileSync(file, "utf8");
    const found = [...text.matchAll(/^(?:import|export)\b[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"/gm)];
    return found.map((match) => ({ file: relative(root, file), specifier: match[1] ?? match[2] ?? "" }));
  });
}

/** Source files of a folder; tests may import what they like. */
function sources(folder: string): string[] {
  return readdirSync(folder).flatMap((entry) => {
    const path = join(folder, entry);
    if (statSync(path).isDirectory()) return sources(path);
    return entry.endsWith(".ts") && !/\.(test|test-d|test-kit)\.ts$/.test(entry) ? [path] : [];
  });
}
