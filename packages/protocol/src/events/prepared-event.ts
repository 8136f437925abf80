import { compileSchema } from "@trellis/contract";
import { type Static, Type } from "typebox";
import { CLOSED, TimeField } from "../statements/fields.ts";
import { isEventId, isTraceState } from "./event-headers.ts";
import { readEventSubject } from "./event-params.ts";

/**
 * An event that is ready to be published, now or later, by this process or by another replica of its service: fixed
 * in every byte, not signed yet. Plain JSON, so that it can be kept in a row of a database.
 */
export const PreparedEventSchema = Type.Object(
  {
    version: Type.Literal(1),
    id: Type.String({ minLength: 1, maxLength: 128 }),
    api: Type.String({ maxLength: 256 }),
    /** Dotted name of the event in its API. */
    name: Type.String({ maxLength: 256 }),
    subject: Type.String({ maxLength: 32_768 }),
    /** JSON text of the payload. */
    payload: Type.String(),
    /** When it was prepared, ms. */
    time: TimeField,
    requestId: Type.Optional(Type.String({ pattern: "^[0-9a-f]{32}$" })),
    traceparent: Type.Optional(Type.String({ pattern: "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$" })),
    tracestate: Type.Optional(Type.String({ maxLength: 512 })),
  },
  CLOSED,
);

export type PreparedEvent = Readonly<Static<typeof PreparedEventSchema>>;

/** Whether a value, read back from where it was kept, is a prepared event whose parts agree with each other. */
export function isPreparedEvent(value: unknown): value is PreparedEvent {
  if (compileSchema(PreparedEventSchema).issues(value) !== undefined) return false;
  const event = value as PreparedEvent;
  const address = readEventSubject(event.subject);
  return (
    address !== undefined &&
    address.api === event.api &&
    address.action === event.name &&
    isEventId(event.id) &&
    (event.tracestate === undefined || isTraceState(event.tracestate))
  );
}
