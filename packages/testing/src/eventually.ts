export interface EventuallyOptions {
  /** Milliseconds. Default 5 000. */
  readonly timeout?: number;
  /** Milliseconds between two tries. Default 10. */
  readonly interval?: number;
}

/**
 * Calls `probe` until it neither throws nor gives `false`, and returns what it gave. When the time is up it throws
 * the last error of the probe itself, so that a failed expectation shows its own message. For a state that nothing
 * announces; where there is an event, wait for the event.
 */
export async function eventually<T>(
  probe: () => T | PromiseLike<T>,
  options: EventuallyOptions = {},
): Promise<T> {
  const { timeout = 5_000, interval = 10 } = options;
  const end = performance.now() + timeout;
  let failure: unknown = new Error(`the probe did not answer within ${timeout} ms`);
  for (;;) {
    try {
      const outcome = await before(end, probe);
      if (outcome === undefined) throw failure;
      if (outcome.value !== false) return outcome.value;
      failure = new Error(`still false after ${timeout} ms`);
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= end) throw failure;
    await new Promise((resolve) => setTimeout(resolve, interval));
  }
}

/** What the probe gives, or undefined when it has not answered by `end`. */
async function before<T>(end: number, probe: () => T | PromiseLike<T>): Promise<{ value: T } | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(1, end - performance.now()));
  });
  try {
    const answer = Promise.resolve(probe()).then((value) => ({ value }));
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
