import type { Writable } from "node:stream";
import { type Colours, makeColours, wantsColours } from "./colours.ts";
import { type Column, formatTable } from "./table.ts";

const barWidth = 30;

type Output = Writable & { isTTY?: boolean };

export interface TerminalOptions {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly env: NodeJS.ProcessEnv;
  /** Standard output carries JSON only. */
  readonly json: boolean;
}

/**
 * Where a command writes. What it is asked for goes to standard output, everything else (progress, hints,
 * failures) to standard error, so that output can be piped.
 */
export class Terminal {
  readonly json: boolean;
  /** For standard output. */
  readonly colours: Colours;
  /** For standard error. */
  readonly noteColours: Colours;
  readonly #stdout: Output;
  readonly #stderr: Output;
  #onGone: (() => void) | undefined;
  #gone = false;

  constructor(options: TerminalOptions) {
    const { stdout, stderr, env } = options;
    this.json = options.json;
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.colours = makeColours(wantsColours(stdout, env));
    this.noteColours = makeColours(wantsColours(stderr, env));
    stdout.on("error", () => this.#lost());
    stderr.on("error", () => undefined);
  }

  /** True on a terminal: somebody is looking. */
  get interactive(): boolean {
    return this.#stdout.isTTY === true;
  }

  /** The reader of standard output is gone (`| head -1`): called once, also when it has gone already. */
  onGone(callback: () => void): void {
    this.#onGone = callback;
    if (this.#gone) callback();
  }

  /** A line of the answer. */
  line(text = ""): void {
    if (!this.#gone) this.#stdout.write(`${text}\n`);
  }

  /** A line beside the answer. */
  note(text: string): void {
    this.#stderr.write(`${text}\n`);
  }

  /** The answer as JSON: laid out for a reader, on one line for a program. */
  value(value: unknown): void {
    this.line(JSON.stringify(value ?? null, undefined, this.interactive ? 2 : undefined));
  }

  /** Rows: a table for people, an array with `--json`. `none` is said when there are none. */
  rows<Row>(columns: readonly Column<Row>[], rows: readonly Row[], none: string): void {
    if (this.json) return this.value(rows);
    if (rows.length === 0) return this.note(none);
    const [heading = "", ...body] = formatTable(columns, rows);
    this.line(this.colours.bold(heading));
    for (const line of body) this.line(line);
  }

  /** How far long work is: a bar that is drawn over itself, where somebody is looking. */
  progress(done: number, total: number): void {
    if (this.json || this.#stderr.isTTY !== true || total === 0) return;
    const share = Math.min(1, done / total);
    const filled = Math.round(share * barWidth);
    const bar = "█".repeat(filled) + "░".repeat(barWidth - filled);
    this.#stderr.write(`\r${bar} ${done}/${total}${share === 1 ? "\n" : ""}`);
  }

  /** Resolves when everything written has been handed over, or cannot be any more. */
  async flush(): Promise<void> {
    await Promise.all([this.#stdout, this.#stderr].map(drained));
  }

  #lost(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#onGone?.();
  }
}

function drained(stream: Output): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.writableLength === 0) return resolve();
    stream.write("", () => resolve());
  });
}
