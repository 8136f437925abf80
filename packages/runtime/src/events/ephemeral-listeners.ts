import type { EventAction } from "@trellis/contract";
import {
  BusyError,
  CancelledError,
  eventParamText,
  type TrellisError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { AsyncResult } from "@trellis/result";
import { type AskForListener, EphemeralListener } from "./ephemeral-listener.ts";
import type { ConsumerLink } from "./event-consumer.ts";
import type { EventVerifier } from "./event-verifier.ts";
import type { EventListener } from "./event-work.ts";
import { MAX_LISTENERS } from "./listen-api.ts";

/** Listens for this process alone, with nothing durable behind it. */
export interface EphemeralListenOptions<Params = Readonly<Record<string, unknown>>> {
  readonly mode: "ephemeral";
  /** Where to begin: with what comes now (default), with everything kept, or at an instant. */
  readonly replay?: "new" | "all" | { readonly since: Date };
  /** Only events whose subject parameters have these values. */
  readonly params?: Params;
  /** Ends the listening. */
  readonly signal?: AbortSignal;
}

/** An ephemeral listener that hears. */
export interface Listening {
  /** Ends it; a handler that runs has its signal aborted. Idempotent. */
  stop(): void;
}

export interface EphemeralListenersOptions {
  readonly link: ConsumerLink;
  readonly traced: boolean;
  readonly ask: AskForListener;
  verifier(): EventVerifier;
}

/** The ephemeral listeners of one connection: there are a few names for them. */
export class EphemeralListeners {
  readonly #options: EphemeralListenersOptions;
  readonly #open = new Map<number, EphemeralListener>();

  constructor(options: EphemeralListenersOptions) {
    this.#options = options;
  }

  /** Resolves when the listener hears: what is published from then on comes. */
  listen(listener: EventListener, options: EphemeralListenOptions): AsyncResult<Listening, TrellisError> {
    const { signal } = options;
    const params = paramTexts(listener.action, options.params ?? {});
    if (params instanceof ValidationError) return AsyncResult.err(params);
    if (signal?.aborted === true)
      return AsyncResult.err(new CancelledError({ reason: "aborted", cause: signal.reason }));
    const { link, traced, ask, verifier } = this.#options;
    if (link.isClosed) return AsyncResult.err(new UnavailableError({ reason: "closed" }));
    const slot = this.#freeSlot();
    if (slot === undefined) return AsyncResult.err(tooMany());
    const { replay = "new" } = options;
    const { action } = listener;
    const ephemeral = new EphemeralListener({
      link,
      traced,
      listener,
      ask,
      verifier: verifier(),
      input: {
        slot,
        api: action.api,
        event: action.name,
        params,
        replay: typeof replay === "object" ? { since: replay.since.getTime() } : replay,
      },
      onEnd: () => {
        this.#open.delete(slot);
        signal?.removeEventListener("abort", stop);
      },
    });
    const stop = () => ephemeral.stop();
    this.#open.set(slot, ephemeral);
    signal?.addEventListener("abort", stop, { once: true });
    return ephemeral
      .start()
      .map(() => ({ stop }))
      .mapErr((error) => {
        stop();
        return error;
      });
  }

  /** Ends all of them. */
  stop(): void {
    for (const listener of [...this.#open.values()]) listener.stop();
  }

  #freeSlot(): number | undefined {
    for (let slot = 0; slot < MAX_LISTENERS; slot += 1) if (!this.#open.has(slot)) return slot;
    return undefined;
  }
}

/** The texts under which values stand in subjects; the same as publishers write. */
function paramTexts(
  { name, params }: EventAction,
  given: Readonly<Record<string, unknown>>,
): Record<string, string> | ValidationError {
  const texts: Record<string, string> = {};
  for (const [param, value] of Object.entries(given)) {
    if (value === undefined) continue;
    const read = params.includes(param) ? eventParamText(value) : undefined;
    if (read?.ok === true) texts[param] = read.text;
    else {
      const message =
        read === undefined
          ? `is not a parameter of ${name}: ${params.join(", ") || "it has none"}`
          : read.message;
      return new ValidationError({ errors: [{ path: `/params/${param}`, message }] });
    }
  }
  return texts;
}

function tooMany(): BusyError {
  return new BusyError({
    retryAfterMs: 1_000,
    message: `A connection has at most ${MAX_LISTENERS} ephemeral listeners; stop one, or declare a consumer.`,
  });
}

/** For a surface without a platform to ask. */
export const unasked: AskForListener = () => AsyncResult.err(new UnavailableError({ reason: "not_bound" }));
