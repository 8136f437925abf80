import { DefinitionError } from "../errors/definition-error.ts";
import { type Duration, parseDuration, requireCount } from "../units.ts";

/** Growing delays: `base`, `base * factor`, and so on, at most `max`, each varied by `jitter` (0 to 1). */
export interface ExponentialBackoff {
  readonly base: Duration;
  readonly factor?: number;
  readonly max?: Duration;
  readonly jitter?: number;
}

/** Backoff with growing delays, for `retry`. */
export interface ExponentialPolicy {
  readonly kind: "exponential";
  readonly baseMs: number;
  readonly factor: number;
  readonly maxMs: number | undefined;
  readonly jitter: number;
}

/** How often work is tried, and after which delays. */
export interface RetryDefinition {
  /** Attempts in all, the first included. Default 5. */
  readonly attempts?: number;
  /** One delay fewer than attempts, or `exponential({ base })`. Default 5 s, 30 s, 2 min, 10 min. */
  readonly backoff?: readonly Duration[] | ExponentialPolicy;
}

/** Retry as artifact and runtime read it. */
export interface RetryPolicy {
  readonly attempts: number;
  readonly backoff: { readonly kind: "delays"; readonly delaysMs: readonly number[] } | ExponentialPolicy;
}

const DEFAULT_DELAYS: readonly Duration[] = ["5s", "30s", "2m", "10m"];

/** Delays that grow, for `retry: { backoff }`. */
export function exponential(backoff: ExponentialBackoff): ExponentialPolicy {
  const { base, factor = 2, max, jitter = 0 } = backoff;
  if (!(Number.isFinite(factor) && factor >= 1)) {
    throw new DefinitionError({
      place: "exponential factor",
      problem: `${factor} is not a number of at least 1`,
    });
  }
  if (!(jitter >= 0 && jitter <= 1)) {
    throw new DefinitionError({
      place: "exponential jitter",
      problem: `${jitter} is not a number from 0 to 1`,
    });
  }
  return {
    kind: "exponential",
    baseMs: parseDuration(base, "exponential base"),
    factor,
    maxMs: max === undefined ? undefined : parseDuration(max, "exponential max"),
    jitter,
  };
}

/** Reads a retry definition; refuses a number of delays that does not fit the attempts. */
export function retryPolicy(definition: RetryDefinition | undefined, place: string): RetryPolicy {
  const given = definition?.backoff;
  if (given !== undefined && "kind" in given) {
    return { attempts: requireCount(definition?.attempts ?? 5, `${place} attempts`), backoff: given };
  }
  const delays = given ?? DEFAULT_DELAYS;
  const attempts = requireCount(definition?.attempts ?? delays.length + 1, `${place} attempts`);
  const used = given === undefined ? fitted(delays, attempts) : delays;
  if (used.length !== attempts - 1) {
    throw new DefinitionError({
      place: `${place} backoff`,
      problem: `${attempts} attempts need exactly ${attempts - 1} delays, not ${used.length}`,
      hint: 'Give a delay for each retry, or exponential({ base: "5s" })',
    });
  }
  return {
    attempts,
    backoff: { kind: "delays", delaysMs: used.map((d) => parseDuration(d, `${place} backoff`)) },
  };
}

/** The default delays cut to the attempts, the last one repeated where there are more. */
function fitted(delays: readonly Duration[], attempts: number): readonly Duration[] {
  return Array.from(
    { length: attempts - 1 },
    (_, index) => delays[Math.min(index, delays.length - 1)] ?? "10m",
  );
}
