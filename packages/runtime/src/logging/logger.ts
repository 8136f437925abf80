/**
 * Takes structured log records; pino, console-shaped and most other loggers fit as they are.
 * `fields` never hold a key, a seed, a token or a payload.
 */
export interface Logger {
  debug(fields: LogFields, message?: string): void;
  info(fields: LogFields, message?: string): void;
  warn(fields: LogFields, message?: string): void;
  error(fields: LogFields, message?: string): void;
}

export type LogFields = Readonly<Record<string, unknown>>;

type Level = keyof Logger;

/** Drops every record: what `log: false` means. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
};

/** A logger that throws (a full disk, a closed transport) must not take the work down that it reports on. */
export function guardedLogger(log: Logger): Logger {
  const guarded = (level: Level) => (fields: LogFields, message?: string) => {
    try {
      log[level](fields, message);
    } catch {
      // There is nobody left to tell.
    }
  };
  return { debug: guarded("debug"), info: guarded("info"), warn: guarded("warn"), error: guarded("error") };
}

/** What the default logger writes to, so that the platform (stderr, console) stays outside. */
export interface LogSink {
  /** Human-readable lines when true, JSON lines when false. */
  readonly readable: boolean;
  write(line: string): void;
  now(): number;
}

/** Makes the default logger: JSON lines in production, readable lines on a terminal; `debug` is dropped. */
export function createLogger(sink: LogSink, name: string): Logger {
  const record = (level: Level) => (fields: LogFields, message?: string) => {
    const at = new Date(sink.now()).toISOString();
    sink.write(
      sink.readable
        ? readableLine({ at, level, name, message, fields })
        : `${JSON.stringify({ time: at, level, name, msg: message, ...plainFields(fields) })}\n`,
    );
  };
  return { debug() {}, info: record("info"), warn: record("warn"), error: record("error") };
}

interface LogRecord {
  readonly at: string;
  readonly level: Level;
  readonly name: string;
  readonly message: string | undefined;
  readonly fields: LogFields;
}

function readableLine({ at, level, name, message, fields }: LogRecord): string {
  const rest = Object.entries(plainFields(fields))
    .map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ");
  return `${at.slice(11, 23)} ${level.padEnd(5)} ${name}: ${message ?? ""}${rest ? `  ${rest}` : ""}\n`;
}

/** Errors become `{ type, message, stack }`; the cause chain stays visible to operators, never to callers. */
function plainFields(fields: LogFields): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    plain[key] = value instanceof Error ? plainError(value, 0) : value;
  }
  return plain;
}

function plainError(error: Error, depth: number): Record<string, unknown> {
  const plain: Record<string, unknown> = { type: error.name, message: error.message, stack: error.stack };
  if (error.cause instanceof Error && depth < 4) plain["cause"] = plainError(error.cause, depth + 1);
  return plain;
}
