import { performance } from "node:perf_hooks";

/** Calls per second with `inFlight` callers, each calling again as soon as it has its answer. */
export async function throughput(
  call: () => PromiseLike<unknown>,
  inFlight: number,
  calls: number,
): Promise<number> {
  let left = calls;
  const caller = async () => {
    while (left-- > 0) await call();
  };
  const started = performance.now();
  await Promise.all(Array.from({ length: inFlight }, caller));
  return calls / ((performance.now() - started) / 1_000);
}

/** Latencies of single calls one after the other, ms. */
export async function latencies(call: () => PromiseLike<unknown>, calls: number): Promise<number[]> {
  const found: number[] = [];
  for (let index = 0; index < calls; index++) {
    const started = performance.now();
    await call();
    found.push(performance.now() - started);
  }
  return found;
}
