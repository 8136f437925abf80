import { defineApi, reserved, rpc } from "@trellis/contract";
import { Type } from "typebox";
import type { HandlerOf } from "../core/api.ts";
import { CursorInvalid, NotKnown } from "../core/errors.ts";
import { Id } from "../core/schemas.ts";

const Time = Type.Integer({ description: "Milliseconds since the epoch." });
const Sequence = Type.Integer({
  minimum: 1,
  description: "Of the letter, in the deployment's dead letters.",
});
const Alias = Type.String({ pattern: "^[A-Za-z][A-Za-z0-9]{0,63}$" });
/** A consumer of a deployment, by id or name. */
const consumer = { deployment: Id, consumer: Alias };
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, description: "Default 100." })),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
};
const next = { cursor: Type.Optional(Type.String()) };

const Letter = Type.Object({
  sequence: Sequence,
  /** Dotted name of the event. */
  event: Type.String(),
  api: Type.String(),
  eventId: Type.String(),
  reason: Type.String(),
  error: Type.Object({ type: Type.String(), message: Type.String(), id: Type.Optional(Type.String()) }),
  attempts: Type.Integer(),
  /** When the event was stored, and when it was given up. */
  storedAt: Time,
  at: Time,
});

const bulk = {
  input: Type.Object({ ...consumer, ...page, sequence: Type.Optional(Sequence) }),
  output: Type.Object({ changed: Type.Integer(), ...next }),
  errors: [NotKnown, CursorInvalid],
  idempotent: true,
} as const;

/** The platform's view of durable consumers and of the events that they could not handle. */
export const eventsApi = defineApi(
  "trellis.events@v1",
  {
    title: "Trellis events",
    rpc: {
      "Events.Consumers.List": rpc({
        input: Type.Object({ deployment: Type.Optional(Id) }),
        output: Type.Object({
          consumers: Type.Array(
            Type.Object({
              deployment: Id,
              service: Type.String(),
              consumer: Type.String(),
              /** Not yet given to a replica; with one; given more than once. */
              pending: Type.Integer(),
              running: Type.Integer(),
              redelivered: Type.Integer(),
              deadLetters: Type.Integer(),
            }),
          ),
        }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Events.DeadLetters.List": rpc({
        description: "The oldest first.",
        input: Type.Object({ ...consumer, ...page }),
        output: Type.Object({ letters: Type.Array(Letter), ...next }),
        errors: [NotKnown, CursorInvalid],
        idempotent: true,
      }),
      "Events.DeadLetters.Get": rpc({
        input: Type.Object({ ...consumer, sequence: Sequence }),
        output: Type.Object({
          letter: Letter,
          /** Its payload as it was published; absent when it is no longer kept. */
          payload: Type.Optional(Type.String()),
        }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Events.DeadLetters.Replay": rpc({
        description:
          "Gives an event to this consumer again, or, without a sequence, the next page of them; go on with the cursor.",
        ...bulk,
        input: bulk.input,
        errors: [NotKnown, CursorInvalid],
      }),
      "Events.DeadLetters.Discard": rpc({
        description: "Throws letters away: one, or, without a sequence, the next page of them.",
        ...bulk,
        input: bulk.input,
        errors: [NotKnown, CursorInvalid],
      }),
    },
  },
  reserved,
);

type EventsActions = (typeof eventsApi)["rpc"];

/** Every action of {@link eventsApi} as a plain function of its input. */
export type EventsHandlers = { readonly [Name in keyof EventsActions]: HandlerOf<EventsActions[Name]> };
