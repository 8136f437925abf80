import { defineApp, state } from "@trellis/contract";
import { Type } from "typebox";
import { expectTypeOf } from "vitest";
import type { ConnectedClient } from "../client/trellis-client.ts";

const app = defineApp("acme.notes", {
  state: { prefs: state({ value: Type.Object({ theme: Type.String() }) }) },
});
declare const client: ConnectedClient<typeof app>;

const read = await client.state.prefs.get().orThrow();
expectTypeOf(read?.value).toEqualTypeOf<{ theme: string } | undefined>();
await client.state.prefs.replace({ theme: "dark" }, { revision: 1 });
// @ts-expect-error a replace needs the revision that it replaces
await client.state.prefs.replace({ theme: "dark" });
// @ts-expect-error the value is typed
await client.state.prefs.put({ theme: 1 });
// @ts-expect-error only what is declared
export const other = client.state.other;
