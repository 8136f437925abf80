/**
 * The sequences that this process has settled lately. When the word about it was lost with the socket, or the server
 * forgot it as it went down, the message comes again; it is then told once more, and not handled a second time.
 * Bounded: two generations, of which the older one goes.
 */
export class SettledSequences {
  readonly #capacity: number;
  #young = new Set<number>();
  #old = new Set<number>();

  constructor(capacity = 16_384) {
    this.#capacity = capacity;
  }

  add(sequence: number): void {
    if (this.#young.size >= this.#capacity / 2) {
      this.#old = this.#young;
      this.#young = new Set();
    }
    this.#young.add(sequence);
  }

  has(sequence: number): boolean {
    return this.#young.has(sequence) || this.#old.has(sequence);
  }

  /** The stream was made anew: its sequences begin again. */
  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
