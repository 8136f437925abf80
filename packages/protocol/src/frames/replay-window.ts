const WORD = 32;

/**
 * Accepts each frame counter once, in constant memory: a sliding bitmap (RFC 6479). Counters may arrive out of
 * order by up to `size`; older ones are refused, since nobody can tell any more whether they were seen.
 */
export class ReplayWindow {
  readonly #size: number;
  readonly #words: Uint32Array;
  #highest = -1;

  /** @param size How far a counter may lag behind the highest; rounded up to a multiple of 32. */
  constructor(size = 2048) {
    if (!Number.isSafeInteger(size) || size < 1)
      throw new RangeError("A replay window has a size of at least 1.");
    const words = Math.ceil(size / WORD);
    this.#size = words * WORD;
    // One word more than the size: the word of the highest counter is only partly used.
    this.#words = new Uint32Array(words + 1);
  }

  /** Whether the counter is new. Call it only for a frame that is authenticated, else anybody moves the window. */
  accept(counter: number): boolean {
    if (!Number.isSafeInteger(counter) || counter < 0) return false;
    const highest = this.#highest;
    if (counter + this.#size <= highest) return false;
    if (counter > highest) this.#advance(counter);
    const slot = Math.floor(counter / WORD) % this.#words.length;
    const bit = 1 << (counter % WORD);
    const word = this.#words[slot] ?? 0;
    if ((word & bit) !== 0) return false;
    this.#words[slot] = word | bit;
    return true;
  }

  #advance(counter: number): void {
    const words = this.#words;
    const before = this.#highest < 0 ? -1 : Math.floor(this.#highest / WORD);
    const now = Math.floor(counter / WORD);
    if (now - before >= words.length) words.fill(0);
    else for (let word = before + 1; word <= now; word += 1) words[word % words.length] = 0;
    this.#highest = counter;
  }
}
