import { watchLeaks } from "./leaks.ts";

/** The one shape of everything that lives. */
export interface Startable {
  start(): PromiseLike<unknown>;
  stop(): PromiseLike<unknown>;
  /** Resolves after `stop`; checked where there is one. */
  readonly closed?: PromiseLike<unknown>;
}

export interface StressOptions {
  /** How often the whole set of scenarios runs. Default 2. */
  readonly rounds?: number;
  /** Instances that start and stop at once. Default 5. */
  readonly concurrency?: number;
  /** Bound for each single start or stop, ms. Default 10 000. */
  readonly timeout?: number;
  /** How long things may take to disappear after a scenario, ms. Default 1 000. */
  readonly settle?: number;
}

/**
 * Starts and stops instances in every order that a real program may, and throws, naming the scenario, when one
 * hangs, a `stop` rejects or anything is left behind. A `start` that a `stop` overtook may reject.
 */
export async function stressStartStop(create: () => Startable, options: StressOptions = {}): Promise<void> {
  const { rounds = 2, concurrency = 5, timeout = 10_000, settle = 1_000 } = options;
  const watch = await watchLeaks();
  for (let round = 1; round <= rounds; round += 1) {
    for (const [name, scenario] of SCENARIOS) {
      const step: Step = (what, promise) => within(timeout, `${name}: ${what}`, promise);
      await scenario({ create, concurrency, round, step });
      await watch.expectNoLeaks({ within: settle }).catch((error: unknown) => {
        throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      });
    }
  }
}

type Step = (what: string, promise: PromiseLike<unknown>) => Promise<void>;

interface Run {
  readonly create: () => Startable;
  readonly concurrency: number;
  readonly round: number;
  readonly step: Step;
}

const SCENARIOS: readonly (readonly [string, (run: Run) => Promise<void>])[] = [
  ["stop without start", ({ create, step }) => stopTwice(create(), step)],
  [
    "start, then stop twice at once",
    async ({ create, step }) => {
      const subject = create();
      await step("start", subject.start());
      await Promise.all([step("stop", subject.stop()), step("second stop", subject.stop())]);
      await stopTwice(subject, step);
    },
  ],
  [
    "stop while starting",
    async ({ create, round, step }) => {
      for (const delayMs of [0, 1, 5, 20 + round]) {
        const subject = create();
        const starting = ended(subject.start());
        if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
        await step(`stop ${delayMs} ms after start`, subject.stop());
        // No further stop: it would tidy up what the overtaken start left behind.
        await step("the start that was overtaken", starting);
      }
    },
  ],
  [
    "start after stop",
    async ({ create, step }) => {
      const subject = create();
      await step("stop", subject.stop());
      // Refusing is right, and so is ending at once; running on would be a leak.
      await step("start", ended(subject.start()));
      await stopTwice(subject, step);
    },
  ],
  [
    "many at once",
    async ({ create, concurrency, step }) => {
      const subjects = Array.from({ length: concurrency }, create);
      await Promise.all(subjects.map((subject) => step("start", subject.start())));
      await Promise.all(subjects.map((subject) => stopTwice(subject, step)));
    },
  ],
];

async function stopTwice(subject: Startable, step: Step): Promise<void> {
  await step("stop", subject.stop());
  await step("stop again", subject.stop());
  if (subject.closed !== undefined) await step("closed", subject.closed);
}

async function ended(promise: PromiseLike<unknown>): Promise<void> {
  try {
    await promise;
  } catch {
    // How it ended is not asked.
  }
}

async function within(timeout: number, what: string, promise: PromiseLike<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took over ${timeout} ms`)), timeout);
  });
  try {
    await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
