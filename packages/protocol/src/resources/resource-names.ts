import { requireToken } from "../subjects/token.ts";

/** The stream of all events; only signed things are in it. */
export const EVENT_STREAM = "TRELLIS_EVENTS";

/** What a deployment's own stream, bucket or consumer is called: nobody who has no binding can guess it. */
export function resourceName(secretHex: string, alias: string): string {
  return `${requireToken(secretHex, "secret")}_${requireToken(alias, "alias")}`;
}

/** The stream of a deployment's dead letters. */
export function deadLetterStream(secretHex: string): string {
  return `DLQ_${requireToken(secretHex, "secret")}`;
}

/** What the subjects of a consumer's dead letters start with, without a final dot. */
export function deadLetterPrefix(secretHex: string, alias: string): string {
  return `dlq.v1.${requireToken(secretHex, "secret")}.${requireToken(alias, "alias")}`;
}

/** An ephemeral consumer of a connection: one of a few names, so that the connection's permissions can hold them. */
export function listenerName(connection: string, slot: number): string {
  return `${requireToken(connection, "connection")}_${slot}`;
}
