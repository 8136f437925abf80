import type { Socket } from "node:net";

/** The state of the network, shared by all connections of a proxy. */
export interface Weather {
  delayMs: number;
  bytesPerSecond: number;
  blackhole: boolean;
}

interface Chunk {
  readonly data: Buffer;
  /** Monotonic ms at which it may arrive. */
  readonly due: number;
}

/** More than this waits in the sender's own buffers: back-pressure goes through. */
const MOST_HELD = 1024 * 1024;
/** A throttled stream moves in steps of this many ms. */
const THROTTLE_STEP_MS = 10;

/** One direction of a connection: bytes keep their order, and arrive as late and as slowly as the weather says. */
export class FaultyPipe {
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #weather: Weather;
  #chunks: Chunk[] = [];
  #held = 0;
  #timer: NodeJS.Timeout | undefined;
  #ended = false;
  #stopped = false;
  /** Monotonic ms before which a throttled stream may not send again. */
  #free = 0;

  constructor(from: Socket, to: Socket, weather: Weather) {
    this.#from = from;
    this.#to = to;
    this.#weather = weather;
    from.on("data", (data) => this.#take(data));
    from.once("end", () => {
      this.#ended = true;
      this.#flow();
    });
    to.on("drain", () => this.#flow());
    if (weather.blackhole) from.pause();
  }

  weatherChanged(): void {
    this.#flow();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#chunks = [];
  }

  #take(data: Buffer): void {
    this.#chunks.push({ data, due: performance.now() + this.#weather.delayMs });
    this.#held += data.length;
    this.#flow();
  }

  /** Moves what may move now, and sets the timer for the rest. */
  #flow(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const { blackhole } = this.#weather;
    if (blackhole || this.#held >= MOST_HELD) this.#from.pause();
    else this.#from.resume();
    if (blackhole) return;
    let wait = this.#sendDue();
    if (this.#held < MOST_HELD) this.#from.resume();
    if (this.#chunks.length === 0 && this.#ended) this.#to.end();
    else if (wait !== undefined) {
      wait = Math.max(1, wait);
      this.#timer = setTimeout(() => this.#flow(), wait);
    }
  }

  /** Sends until something has to wait; gives for how many ms, or undefined when a drain or new data comes first. */
  #sendDue(): number | undefined {
    for (let chunk = this.#chunks[0]; chunk !== undefined; chunk = this.#chunks[0]) {
      if (this.#to.writableNeedDrain) return undefined;
      const now = performance.now();
      const wait = Math.max(chunk.due, this.#free) - now;
      if (wait > 0) return wait;
      this.#sendPart(chunk, now);
    }
    return undefined;
  }

  #sendPart(chunk: Chunk, now: number): void {
    const rate = this.#weather.bytesPerSecond;
    const limited = Number.isFinite(rate);
    const most = limited ? Math.max(1, Math.floor((rate * THROTTLE_STEP_MS) / 1_000)) : chunk.data.length;
    const part = chunk.data.subarray(0, most);
    this.#held -= part.length;
    if (part.length === chunk.data.length) this.#chunks.shift();
    else this.#chunks[0] = { data: chunk.data.subarray(most), due: chunk.due };
    if (limited) this.#free = Math.max(now, this.#free) + (part.length / rate) * 1_000;
    this.#to.write(part);
  }
}
