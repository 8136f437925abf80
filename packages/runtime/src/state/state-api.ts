import { defineApi, defineError, reserved, rpc } from "@trellis/contract";
import { Type } from "typebox";

/** Bytes of JSON text that one value may have. */
export const MAX_STATE_BYTES = 64 * 1024;

const Alias = Type.String({ pattern: "^[A-Za-z][A-Za-z0-9]{0,63}$" });
const Revision = Type.Integer({ minimum: 0 });
const Time = Type.Integer({ description: "Milliseconds since the epoch." });
/** Tells a repeated write from another one. */
const Write = Type.String({ minLength: 8, maxLength: 64 });
/** Only over this revision; 0: only over nothing. Any, when it is left out. */
const expected = Type.Optional(Revision);

/** The caller's contract does not declare state of this alias. */
export const StateNotDeclared = defineError("StateNotDeclared", {
  data: Type.Object({ alias: Type.String() }),
  message: ({ alias }) => `The caller's contract declares no state "${alias}".`,
});

/** The value is at another revision; 0: there is none. */
export const StateConflict = defineError("StateConflict", {
  data: Type.Object({ revision: Revision }),
  message: ({ revision }) => `It is at revision ${revision} now.`,
});

/** The value is not JSON, or larger than 64 KiB. */
export const StateRefused = defineError("StateRefused", {
  data: Type.Object({ problem: Type.String() }),
  message: ({ problem }) => `The value ${problem}.`,
});

/**
 * State of principals, kept by the control plane. Whose state it is follows from the caller, as the platform signed it,
 * and is no part of any input. Values are JSON text, which nobody on the way reads or changes.
 */
export const stateApi = defineApi(
  "trellis.state@v1",
  {
    title: "Trellis state",
    rpc: {
      "State.Get": rpc({
        input: Type.Object({ alias: Alias }),
        output: Type.Object({
          entry: Type.Optional(
            Type.Object({
              value: Type.String(),
              version: Type.Integer({ minimum: 1 }),
              revision: Revision,
              updatedAt: Time,
              expiresAt: Type.Optional(Time),
            }),
          ),
        }),
        errors: [StateNotDeclared],
        idempotent: true,
      }),
      "State.Put": rpc({
        input: Type.Object({
          alias: Alias,
          value: Type.String({ maxLength: MAX_STATE_BYTES }),
          version: Type.Integer({ minimum: 1 }),
          write: Write,
          expected,
        }),
        output: Type.Object({ revision: Revision }),
        errors: [StateNotDeclared, StateConflict, StateRefused],
        idempotent: true,
      }),
      "State.Delete": rpc({
        input: Type.Object({ alias: Alias, write: Write, expected }),
        output: Type.Object({ revision: Revision }),
        errors: [StateNotDeclared, StateConflict],
        idempotent: true,
      }),
    },
  },
  reserved,
);
