import { defineApi, defineApp, defineError, defineService, rpc, use } from "@trellis/contract";
import { Type } from "typebox";

/** The one API on which faults are tried: quick and slow, repeatable and not, with every kind of answer. */

export const Odd = defineError("Odd", { data: Type.Object({ n: Type.Number(), text: Type.String() }) });

const numbered = Type.Object({ n: Type.Number() });
const timed = Type.Object({ n: Type.Number(), ms: Type.Number() });
const answered = Type.Object({ n: Type.Number(), by: Type.String() });

export const work = defineApi("faults.work@v1", {
  rpc: {
    "Work.Echo": rpc({
      input: Type.Object({ text: Type.String() }),
      output: Type.Object({ text: Type.String() }),
      idempotent: true,
    }),
    "Work.Count": rpc({ input: numbered, output: answered }),
    "Work.Slow": rpc({ input: timed, output: answered }),
    "Work.SlowAgain": rpc({ input: timed, output: answered, idempotent: true }),
    "Work.Fail": rpc({ input: Type.Object({ how: Type.String() }), output: Type.Unknown(), errors: [Odd] }),
    "Work.Text": rpc({ input: Type.Object({ length: Type.Number() }), output: Type.String() }),
    "Work.Nothing": rpc({}),
    "Work.Give": rpc({ input: Type.Object({ what: Type.String() }), output: Type.Unknown() }),
  },
});

export const workService = defineService("faults.work-service", { implements: [work] });
export const workApp = defineApp("faults.app", { uses: [use(work)] });
