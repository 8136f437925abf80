import type { Result } from "@trellis/result";
import type { Logger } from "../logging/logger.ts";

/** Who published an event, as the platform signed it. */
export interface EventSource {
  readonly principal: { readonly kind: string; readonly id: string };
  readonly participant: { readonly id: string; readonly digest: string };
  readonly deployment: string;
  readonly instance: string;
  readonly connectionId: string;
}

/** An event as its handler gets it: verified, and decoded by its schema. */
export interface ReceivedEvent<Payload> {
  readonly id: string;
  /** Dotted name. */
  readonly name: string;
  readonly payload: Payload;
  /** The parameters of its subject, as text, by their names in the payload. */
  readonly params: Readonly<Record<string, string>>;
  /** When it was prepared, by its publisher's clock. */
  readonly time: Date;
  /** When the stream stored it, by the broker's clock. */
  readonly storedAt: Date;
  readonly publisher: EventSource;
}

export interface EventContext {
  /** Names the request in which the event was published, or this delivery; 32 hex characters. */
  readonly requestId: string;
  readonly trace: { readonly traceparent: string; readonly tracestate?: string } | undefined;
  /** 1 for the first; counts deliveries, those that ended with a lost process included. */
  readonly attempt: number;
  /** Aborts when the service stops and its time to drain is up. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

export interface EventRequest<Payload, Client> {
  readonly event: ReceivedEvent<Payload>;
  readonly context: EventContext;
  /** Calls made through it inherit request id and trace. */
  readonly client: Client;
}

/**
 * Handles one event. It failed when it throws, rejects, or gives an `Err` or an error; anything else that it gives is
 * ignored. Events come at least once.
 */
export type EventHandler<Payload, Client> = (
  request: EventRequest<Payload, Client>,
) => EventAnswer | PromiseLike<EventAnswer>;

/** What a handler may give back; only a failure means something. */
// biome-ignore lint/suspicious/noConfusingVoidType: handlers that give nothing back are the usual ones.
export type EventAnswer = void | undefined | Result<unknown, unknown> | Error;

/** The failure in what a handler gave back; `undefined` when it succeeded. */
export function failureOf(
  answer: unknown,
  isResult: (value: unknown) => value is Result<unknown, unknown>,
): unknown {
  if (answer instanceof Error) return answer;
  return isResult(answer) && answer.isErr() ? answer.error : undefined;
}
