import { defineApi, defineError, reserved, rpc } from "@trellis/contract";
import { Type } from "typebox";

/** Ephemeral listeners that one connection may have at a time: each has a name that its permissions know. */
export const MAX_LISTENERS = 8;

/** The platform does not make such a listener. */
export const ListenRefused = defineError("ListenRefused", {
  data: Type.Object({ problem: Type.String() }),
  message: ({ problem }) => problem,
});

const name = Type.String({ minLength: 1, maxLength: 256 });

/**
 * Asks the platform for an ephemeral consumer. It is the connection's own: what it may hear is what the caller's own
 * contract uses, and no administrator has to grant it.
 */
export const listenAction = rpc({
  description: "Makes one of the caller's own ephemeral consumers of events that its contract uses.",
  input: Type.Object({
    slot: Type.Integer({ minimum: 0, maximum: MAX_LISTENERS - 1 }),
    api: name,
    event: name,
    /** Texts of some parameters; the others may be anything. */
    params: Type.Optional(Type.Record(name, Type.String({ maxLength: 1_024 }))),
    replay: Type.Union([
      Type.Literal("new"),
      Type.Literal("all"),
      Type.Object({ since: Type.Integer({ description: "Milliseconds since the epoch." }) }),
    ]),
    /** Goes on behind this message of the stream, whatever `replay` says. */
    after: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
  output: Type.Object({
    stream: Type.String(),
    consumer: Type.String(),
    /** The last message that the stream held when the consumer was made. */
    last: Type.Integer(),
  }),
  errors: [ListenRefused],
  idempotent: true,
});

/** What the runtime of every participant uses of the platform's events API. */
export const listenApi = defineApi("trellis.events@v1", { rpc: { "Events.Listen": listenAction } }, reserved);
