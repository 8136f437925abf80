/** Turns text into coloured text, or leaves it alone. */
export interface Colours {
  bold(text: string): string;
  dim(text: string): string;
  red(text: string): string;
  green(text: string): string;
  yellow(text: string): string;
  cyan(text: string): string;
}

/**
 * Whether to colour a stream: only on a terminal, never with NO_COLOR (https://no-color.org) or TERM=dumb.
 * FORCE_COLOR wins, for tools that capture output and show it later.
 */
export function wantsColours(stream: { isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean {
  const { NO_COLOR: no, FORCE_COLOR: force, TERM: term } = env;
  if (force !== undefined && force !== "" && force !== "0") return true;
  return stream.isTTY === true && (no === undefined || no === "") && term !== "dumb";
}

export function makeColours(enabled: boolean): Colours {
  const style = (open: number, close: number) => (text: string) =>
    enabled ? `\u001b[${open}m${text}\u001b[${close}m` : text;
  return {
    bold: style(1, 22),
    dim: style(2, 22),
    red: style(31, 39),
    green: style(32, 39),
    yellow: style(33, 39),
    cyan: style(36, 39),
  };
}
