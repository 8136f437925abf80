export interface LookUpPoolOptions {
  /** Look-ups under way at the most. Default 64. */
  readonly lanes?: number;
  /** Look-ups that wait for a lane. Default 192. */
  readonly room?: number;
  /** Look-ups of one sender, under way and waiting. Default 4: an honest one has one or two. */
  readonly perSender?: number;
}

interface Waiting {
  start(): void;
  giveUp(): void;
}

/**
 * Shares a bounded number of look-ups among senders that nobody knows yet.
 *
 * Invariants:
 * L1. Neither the look-ups under way nor those that wait are ever more than stated.
 * L2. A sender has few of them, so that one that asks for what does not exist takes no place of another.
 * L3. Who a sender is, is its own claim. With as many names as it likes it fills the room; then the newest goes first
 *     and the oldest is given up: whoever comes has a chance, and nobody waits for long.
 */
export class LookUpPool {
  readonly #lanes: number;
  readonly #room: number;
  readonly #perSender: number;
  readonly #held = new Map<string, number>();
  readonly #waiting: Waiting[] = [];
  #running = 0;

  constructor({ lanes = 64, room = 192, perSender = 4 }: LookUpPoolOptions = {}) {
    this.#lanes = lanes;
    this.#room = room;
    this.#perSender = perSender;
  }

  /** Runs the look-up when there is a lane for it; `undefined` when there is none for this sender, or none in time. */
  async run<T>(sender: string, lookUp: () => Promise<T>): Promise<T | undefined> {
    const held = this.#held.get(sender) ?? 0;
    if (held >= this.#perSender) return undefined;
    this.#held.set(sender, held + 1);
    try {
      if (this.#running < this.#lanes) this.#running += 1;
      else if (!(await this.#lane())) return undefined;
      try {
        return await lookUp();
      } finally {
        this.#running -= 1;
        this.#waiting.pop()?.start();
      }
    } finally {
      this.#leave(sender);
    }
  }

  /** Waits for a lane; resolves with whether it came. */
  #lane(): Promise<boolean> {
    return new Promise((resolve) => {
      this.#waiting.push({
        start: () => {
          this.#running += 1;
          resolve(true);
        },
        giveUp: () => resolve(false),
      });
      if (this.#waiting.length > this.#room) this.#waiting.shift()?.giveUp();
    });
  }

  #leave(sender: string): void {
    const held = (this.#held.get(sender) ?? 1) - 1;
    if (held > 0) this.#held.set(sender, held);
    else this.#held.delete(sender);
  }
}
