import { JOB_LANES, type JobLane } from "@trellis/protocol/jobs";

/** Every so many takings the lowest lane that has something goes first, so that none starves. */
const fairEvery = 16;

/** What waits in this process, by lane. */
export class LaneQueue<T> {
  readonly #lanes: Readonly<Record<JobLane, T[]>> = { high: [], normal: [], low: [] };
  #taken = 0;

  get size(): number {
    return this.#lanes.high.length + this.#lanes.normal.length + this.#lanes.low.length;
  }

  add(lane: JobLane, item: T): void {
    this.#lanes[lane].push(item);
  }

  /** The next one: the oldest of the highest lane, and now and then of the lowest. */
  take(): T | undefined {
    this.#taken += 1;
    const order = this.#taken % fairEvery === 0 ? JOB_LANES.toReversed() : JOB_LANES;
    for (const lane of order) {
      const item = this.#lanes[lane].shift();
      if (item !== undefined) return item;
    }
    return undefined;
  }

  /** Everything, which is then no longer here. */
  drain(): T[] {
    return JOB_LANES.flatMap((lane) => this.#lanes[lane].splice(0));
  }
}
