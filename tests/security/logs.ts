import type { Logger } from "@trellis/runtime";
import { createLogger } from "@trellis/runtime/node";

/** Collects everything that is logged, as a log file would hold it: readable lines, and JSON with causes and all. */
export interface LogTrap extends Logger {
  /** All that was logged so far. */
  text(): string;
  readonly lines: readonly string[];
}

export function logTrap(): LogTrap {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  const sinks = [true, false].map((readable) =>
    createLogger({ readable, write, now: () => Date.now() }, "trap"),
  );
  const record =
    (level: keyof Logger) =>
    (fields: Readonly<Record<string, unknown>>, message?: string): void => {
      for (const sink of sinks) sink[level](fields, message);
      // What a logger that knows nothing of ours would make of it: every own property, however deep.
      lines.push(`${level} ${message ?? ""} ${JSON.stringify(plain(fields, 0))}`);
    };
  return {
    debug: record("debug"),
    info: record("info"),
    warn: record("warn"),
    error: record("error"),
    lines,
    text: () => lines.join("\n"),
  };
}

/** Everything that can be reached from a value, as text; bytes in the spellings that secrets are written in. */
function plain(value: unknown, depth: number): unknown {
  if (depth > 8) return "...";
  if (value instanceof Uint8Array) {
    const bytes = Buffer.from(value);
    return [bytes.toString("base64url"), bytes.toString("hex"), bytes.toString("latin1")];
  }
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => plain(item, depth + 1));
  const names = value instanceof Error ? Object.getOwnPropertyNames(value) : Object.keys(value);
  return Object.fromEntries(names.map((name) => [name, plain(Reflect.get(value, name), depth + 1)]));
}
