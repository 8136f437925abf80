/**
 * The messages that this process has settled lately. When the word about it was lost with the socket, or the server
 * forgot it as it went down, the message comes again; it is then told once more, and not handled a second time. A
 * message is known by its sequence and by the time at which it was stored: a stream that is made anew begins its
 * sequences again. Bounded: two generations, of which the older one goes.
 */
export class SettledSequences {
  readonly #capacity: number;
  #young = new Map<number, number>();
  #old = new Map<number, number>();

  constructor(capacity = 16_384) {
    this.#capacity = capacity;
  }

  add({ sequence, storedAt }: { readonly sequence: number; readonly storedAt: number }): void {
    if (this.#young.size >= this.#capacity / 2) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(sequence, storedAt);
  }

  has({ sequence, storedAt }: { readonly sequence: number; readonly storedAt: number }): boolean {
    return (this.#young.get(sequence) ?? this.#old.get(sequence)) === storedAt;
  }
}
