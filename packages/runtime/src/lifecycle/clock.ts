/**
 * Where the runtime gets its time from. `now` is wall-clock time in ms (it may jump; only for stamps that
 * others read); `monotonic` is ms from an arbitrary origin and never goes back: every duration uses it.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
};
