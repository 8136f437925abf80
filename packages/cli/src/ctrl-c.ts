/** A signal this soon after the first is the same key press, ms. */
const echoMs = 1_000;

/** What a signal means to a process that ends politely when it is asked to. */
export type CtrlC = "first" | "echo" | "again";

/**
 * Tells a second Ctrl-C from an echo of the first. A terminal sends the signal to everything in the foreground, and
 * `npm run`, `npx` and the like pass theirs on to the command below them: one key press is then two signals, and taken
 * for two it would cut off the closing that the first began. `now` is in ms, of a clock that never steps.
 */
export class CtrlCs {
  #firstAt: number | undefined;

  heard(now: number): CtrlC {
    if (this.#firstAt === undefined) {
      this.#firstAt = now;
      return "first";
    }
    return now - this.#firstAt < echoMs ? "echo" : "again";
  }
}
