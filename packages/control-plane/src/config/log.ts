/** Takes structured records; pino fits as it is. `fields` never hold a key, a seed, a token or a proof. */
export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message?: string): void;
  info(fields: Readonly<Record<string, unknown>>, message?: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message?: string): void;
  error(fields: Readonly<Record<string, unknown>>, message?: string): void;
}

/** Drops every record. */
export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} };
