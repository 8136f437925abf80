/**
 * What may be worked on next. Items of one key go one after another in the order in which they came, and the next one
 * goes only when the one before is released; items without a key, and of different keys, do not wait for each other.
 */
export class KeyOrder<T> {
  #ready: T[] = [];
  #head = 0;
  /** Keys of which an item is ready or at work, with those that wait behind it. */
  readonly #keys = new Map<string, T[]>();
  #waiting = 0;

  /** Items that were added and not taken. */
  get size(): number {
    return this.#ready.length - this.#head + this.#waiting;
  }

  add(item: T, key: string | undefined): void {
    const behind = key === undefined ? undefined : this.#keys.get(key);
    if (behind !== undefined) {
      behind.push(item);
      this.#waiting += 1;
      return;
    }
    if (key !== undefined) this.#keys.set(key, []);
    this.#ready.push(item);
  }

  take(): T | undefined {
    const item = this.#ready[this.#head];
    if (item === undefined) return undefined;
    this.#head += 1;
    if (this.#head === this.#ready.length || this.#head >= 256) {
      this.#ready.splice(0, this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** An item that was taken, and still has its key, is to be taken again. */
  resume(item: T): void {
    this.#ready.push(item);
  }

  /** The item of the key that was at work is through: the next one is ready. */
  release(key: string | undefined): void {
    if (key === undefined) return;
    const next = this.#keys.get(key)?.shift();
    if (next === undefined) {
      this.#keys.delete(key);
      return;
    }
    this.#waiting -= 1;
    this.#ready.push(next);
  }

  /** Takes out everything that waits, keys included, in the order in which it came within each key. */
  drain(): T[] {
    const items = this.#ready.slice(this.#head);
    for (const behind of this.#keys.values()) items.push(...behind.splice(0));
    this.#ready = [];
    this.#head = 0;
    this.#waiting = 0;
    return items;
  }
}
