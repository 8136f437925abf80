import { systemTimers, type Timers } from "./timers.ts";

/** Waits for `work`, but no longer than `ms`; true when it ended in time. Its rejection counts as an end. */
export function within(
  work: PromiseLike<unknown>,
  ms: number,
  timers: Timers = systemTimers,
): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = timers.set(() => resolve(false), ms);
    const done = () => {
      timer.clear();
      resolve(true);
    };
    work.then(done, done);
  });
}
