/**
 * How much a pull loop has asked for and not yet got. The server serves pull requests in their order, so that a
 * message counts against the oldest.
 */
export class PullCredit {
  readonly #pulls = new Map<string, number>();
  #outstanding = 0;

  get outstanding(): number {
    return this.#outstanding;
  }

  asked(pull: string, batch: number): void {
    this.#pulls.set(pull, batch);
    this.#outstanding += batch;
  }

  got(): void {
    for (const [pull, left] of this.#pulls) {
      this.#outstanding -= 1;
      if (left === 1) this.#pulls.delete(pull);
      else this.#pulls.set(pull, left - 1);
      return;
    }
  }

  /** A request has ended, whatever is left of it; false when it had ended before. */
  ended(pull: string): boolean {
    const left = this.#pulls.get(pull);
    if (left === undefined) return false;
    this.#pulls.delete(pull);
    this.#outstanding -= left;
    return true;
  }

  clear(): void {
    this.#pulls.clear();
    this.#outstanding = 0;
  }
}
