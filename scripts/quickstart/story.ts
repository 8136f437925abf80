import { makeColours, wantsColours } from "../../packages/cli/src/output/colours.ts";

const colours = makeColours(wantsColours(process.stdout, process.env));
const width = 78;

/** Tells on standard output what happens, for somebody who sees it for the first time. */
export const story = {
  heading(text: string): void {
    write(`\n${colours.bold(text)}`);
  },

  /** Something that takes a moment: what it is first, how long it took when it is done. */
  async step<T>(text: string, work: () => Promise<T>): Promise<T> {
    const started = performance.now();
    const done = await work();
    write(`${colours.bold("›")} ${text} ${colours.dim(`(${seconds(performance.now() - started)})`)}`);
    return done;
  },

  /** A thing that was tried: the line of code, and what came of it. */
  scene(input: { title: string; code: string; outcome: readonly string[]; ms?: number }): void {
    write(`\n${colours.bold(input.title)}`);
    write(`  ${colours.cyan(input.code)}`);
    const [first = "", ...more] = input.outcome;
    const time = input.ms === undefined ? "" : `${input.ms.toFixed(1)} ms`;
    const gap = " ".repeat(Math.max(2, width - 4 - first.length - time.length));
    write(`  ${colours.green("→")} ${first}${time === "" ? "" : gap + colours.dim(time)}`);
    for (const line of more) write(`    ${line}`);
  },

  line(text = ""): void {
    write(text);
  },

  /** A command to try, and what it is for. */
  command(command: string, why: string): void {
    write(`  ${colours.cyan(command.padEnd(52))}  ${colours.dim(why)}`);
  },
};

function write(text: string): void {
  process.stdout.write(`${text}\n`);
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
