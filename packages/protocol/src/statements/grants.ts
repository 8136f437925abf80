import { canonicalJson } from "@trellis/contract";
import { type Static, Type } from "typebox";
import type { Port } from "../port/port.ts";
import { ActionField, ApiField, CLOSED, TextField, TokenField } from "./fields.ts";
import { textDigest } from "./keys.ts";

const Actions = Type.Array(ActionField, { maxItems: 10_000 });

/** What may be called, published and consumed. Unsigned: an authorization names it by digest, many share one. */
export const GrantsSchema = Type.Object(
  {
    version: Type.Literal(1),
    calls: Type.Array(
      Type.Object(
        {
          api: ApiField,
          /** The provider. */
          deployment: TokenField,
          rpc: Actions,
          feeds: Actions,
          operations: Actions,
          /** Events that may be published. */
          publishes: Actions,
          /** Events that may be consumed. */
          consumes: Actions,
        },
        CLOSED,
      ),
      { maxItems: 1_000 },
    ),
    capabilities: Type.Array(TextField, { maxItems: 1_000 }),
  },
  CLOSED,
);

export type Grants = Static<typeof GrantsSchema>;

/** The surfaces that grants speak of. */
export type GrantedSurface = "rpc" | "feeds" | "operations" | "publishes" | "consumes";

export interface GrantQuestion {
  readonly surface: GrantedSurface;
  readonly api: string;
  readonly deployment: string;
  readonly action: string;
}

/** The digest that grants are known by: of their canonical JSON. */
export function grantsDigest(port: Port, grants: Grants): string {
  return textDigest(port, canonicalJson(grants));
}

/** Whether the grants allow exactly this action of this provider. */
export function isGranted(grants: Grants, question: GrantQuestion): boolean {
  const { surface, api, deployment, action } = question;
  return grants.calls.some(
    (call) => call.api === api && call.deployment === deployment && call[surface].includes(action),
  );
}
