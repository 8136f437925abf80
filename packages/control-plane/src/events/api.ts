import {
  defineApi,
  defineError,
  type InputOf,
  type OutputOf,
  type RpcAction,
  reserved,
  rpc,
} from "@trellis/contract";
import type { Result } from "@trellis/result";
import { listenAction } from "@trellis/runtime/node";
import { Type } from "typebox";
import { CursorInvalid, NotKnown } from "../core/errors.ts";
import { Id } from "../core/schemas.ts";

const Time = Type.Integer({ description: "Milliseconds since the epoch." });
const Sequence = Type.Integer({ minimum: 1, description: "Position in the stream of all events." });
const page = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "Default 100." })),
  cursor: Type.Optional(Type.String({ maxLength: 512 })),
};
const next = { cursor: Type.Optional(Type.String()) };

const ConsumerSchema = Type.Object({
  deployment: Id,
  /** The deployment's name. */
  name: Type.String(),
  consumer: Type.String({ description: "As the contract calls it." }),
  attached: Type.Boolean({ description: "False: the contract does not declare it any more." }),
  pending: Type.Integer({ description: "Events that nobody has got yet." }),
  unsettled: Type.Integer({ description: "Events that replicas have and have not settled." }),
  redelivered: Type.Integer(),
  waiting: Type.Integer({ description: "Requests of replicas that wait for events." }),
  deadLetters: Type.Integer(),
});

const letter = {
  deployment: Id,
  consumer: Type.String(),
  /** Names the letter within its consumer. */
  sequence: Sequence,
  api: Type.String(),
  event: Type.String(),
  id: Type.String(),
  subject: Type.String(),
  reason: Type.String(),
  error: Type.Object({ type: Type.String(), message: Type.String(), id: Type.Optional(Type.String()) }),
  attempts: Type.Integer(),
  storedAt: Time,
  at: Time,
};

/** An event as the stream has it. Nothing about it is verified: that is its listeners' to do. */
export const RecentEventSchema = Type.Object({
  sequence: Sequence,
  api: Type.String(),
  event: Type.String(),
  params: Type.Array(Type.String()),
  id: Type.String(),
  time: Time,
  storedAt: Time,
  /** Deployment of the authorization that the event names. */
  deployment: Type.Optional(Type.String()),
  bytes: Type.Integer(),
  /** JSON text; left out when it is large. */
  payload: Type.Optional(Type.String()),
});

/** Letters that one request settles; whoever has more asks again. */
const chosen = Type.Object({
  deployment: Id,
  consumer: Type.String({ maxLength: 128 }),
  sequences: Type.Array(Sequence, { minItems: 1, maxItems: 200 }),
});
const settled = Type.Object({
  done: Type.Array(Sequence),
  /** Letters that are not there, or not any more. */
  missing: Type.Array(Sequence),
});

/** The broker could not do it now. */
export const BrokerRefused = defineError("BrokerRefused", {
  data: Type.Object({ problem: Type.String() }),
  message: ({ problem }) => problem,
});

/** Durable consumers, their dead letters, and what is on the stream. */
export const eventsApi = defineApi(
  "trellis.events@v1",
  {
    title: "Trellis events",
    rpc: {
      "Events.Consumers.List": rpc({
        input: Type.Object({ ...page, deployment: Type.Optional(Id) }),
        output: Type.Object({ consumers: Type.Array(ConsumerSchema), ...next }),
        errors: [CursorInvalid],
        idempotent: true,
      }),
      "Events.DeadLetters.List": rpc({
        description: "The dead letters of a deployment, or of one of its consumers, oldest first.",
        input: Type.Object({
          ...page,
          deployment: Id,
          consumer: Type.Optional(Type.String({ maxLength: 128 })),
          reason: Type.Optional(Type.String({ maxLength: 64 })),
        }),
        output: Type.Object({ deadLetters: Type.Array(Type.Object(letter)), ...next }),
        errors: [NotKnown, CursorInvalid],
        idempotent: true,
      }),
      "Events.DeadLetters.Get": rpc({
        input: Type.Object({ deployment: Id, consumer: Type.String({ maxLength: 128 }), sequence: Sequence }),
        output: Type.Object({
          deadLetter: Type.Object({
            ...letter,
            headers: Type.Record(Type.String(), Type.String()),
            payload: Type.Optional(
              Type.String({
                description: "Left out when it is not kept any more, or too large to answer with.",
              }),
            ),
          }),
        }),
        errors: [NotKnown],
        idempotent: true,
      }),
      "Events.DeadLetters.Replay": rpc({
        description:
          "Gives the events to that consumer again, and to no other; they are verified as on the first day.",
        input: chosen,
        output: settled,
        errors: [NotKnown, BrokerRefused],
        idempotent: true,
      }),
      "Events.DeadLetters.Discard": rpc({
        input: chosen,
        output: settled,
        errors: [NotKnown, BrokerRefused],
        idempotent: true,
      }),
      "Events.Recent": rpc({
        description: "The newest events of the stream, oldest of them first; `after` goes on from there.",
        input: Type.Object({
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, description: "Default 20." })),
          after: Type.Optional(Type.Integer({ minimum: 0 })),
          since: Type.Optional(Time),
          /** Names of events, of any API. */
          events: Type.Optional(Type.Array(Type.String({ maxLength: 128 }), { maxItems: 20 })),
        }),
        output: Type.Object({
          events: Type.Array(RecentEventSchema),
          /** Where to go on. */
          sequence: Type.Integer(),
        }),
        idempotent: true,
      }),
      "Events.Listen": listenAction,
    },
  },
  reserved,
);

type EventsActions = (typeof eventsApi)["rpc"];

type HandlerOf<A> =
  A extends RpcAction<infer I, infer O, infer E>
    ? (input: OutputOf<I>) => Promise<Result<InputOf<O>, InstanceType<E>>>
    : never;

/** The administrator's actions of {@link eventsApi} as plain functions of their input. */
export type EventsHandlers = {
  readonly [Name in Exclude<keyof EventsActions, "Events.Listen">]: HandlerOf<EventsActions[Name]>;
};

export type ListenHandler = HandlerOf<EventsActions["Events.Listen"]>;
