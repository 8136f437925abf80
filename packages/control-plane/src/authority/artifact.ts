import { canonicalJson, digestOf, isApiId } from "@trellis/contract";
import { err, ok, type Result } from "@trellis/result";
import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";

const actionName = "^[A-Za-z][A-Za-z0-9]*(\\.[A-Za-z][A-Za-z0-9]*)*$";
/** Names of actions; what each of them says is the contract's business, not the authority's. */
const Actions = Type.Record(Type.String({ pattern: actionName, maxLength: 200 }), Type.Unknown(), {
  additionalProperties: false,
});

const Surfaces = { rpc: Actions, events: Actions, feeds: Actions, operations: Actions };

const Artifact = Type.Object({
  format: Type.Literal("trellis.participant/v1"),
  kind: Type.Union([Type.Literal("service"), Type.Literal("app")]),
  id: Type.String({ pattern: "^[a-z][a-z0-9-]*(\\.[a-z][a-z0-9-]*)*$", maxLength: 200 }),
  implements: Type.Array(Type.Object({ id: Type.String({ maxLength: 200 }), ...Surfaces }), {
    maxItems: 200,
  }),
  uses: Type.Array(
    Type.Object({
      api: Type.String({ maxLength: 200 }),
      optional: Type.Optional(Type.Boolean()),
      ...Surfaces,
    }),
    { maxItems: 500 },
  ),
});

const compiled = Compile(Artifact);

/** The part of a participant's contract that decides about authority. */
export type AuthorityArtifact = Static<typeof Artifact>;

/** An artifact as it is kept: its canonical text, its digest, and the part that we decide by. */
export interface InstallableArtifact {
  artifact: AuthorityArtifact;
  text: string;
  digest: string;
}

/** Reads an artifact that somebody sent; says in one sentence what is wrong with it. */
export function readArtifact(value: unknown): Result<InstallableArtifact, string> {
  if (!compiled.Check(value)) {
    const [first] = compiled.Errors(value);
    return err(
      `The artifact is not a participant's: ${first?.instancePath || "/"} ${first?.message ?? "is wrong"}.`,
    );
  }
  const apis = [...value.implements.map((api) => api.id), ...value.uses.map((use) => use.api)];
  const illegal = apis.find((id) => !isApiId(id));
  if (illegal !== undefined) return err(`"${illegal}" is not an API id.`);
  const owned = value.implements.map((api) => api.id);
  const platform = [...owned, value.id].find((id) => id.startsWith("trellis."));
  if (platform !== undefined) return err(`"${platform}" is in the platform's own namespace.`);
  if (new Set(owned).size !== owned.length) return err("The artifact implements one API twice.");
  const text = canonicalJson(value);
  return ok({ artifact: value, text, digest: digestOf(value) });
}

/** Reads an artifact that we stored ourselves; throws when it is damaged. */
export function storedArtifact(text: string): AuthorityArtifact {
  const value: unknown = JSON.parse(text);
  if (!compiled.Check(value)) throw new Error("A stored participant artifact is damaged.");
  return value;
}
