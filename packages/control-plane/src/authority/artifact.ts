import { canonicalJson, digestOf, isApiId } from "@trellis/contract";
import { err, ok, type Result } from "@trellis/result";
import { type Static, type TSchema, Type } from "typebox";
import { Compile } from "typebox/compile";
import { JobArtifactSchema } from "./job-artifact.ts";

const actionName = "^[A-Za-z][A-Za-z0-9]*(\\.[A-Za-z][A-Za-z0-9]*)*$";
/** Names of actions; what each of them says is the contract's business, not the authority's. */
const Actions = Type.Record(Type.String({ pattern: actionName, maxLength: 200 }), Type.Unknown(), {
  additionalProperties: false,
});

const Events = Type.Record(
  Type.String({ pattern: actionName, maxLength: 200 }),
  Type.Object({ params: Type.Array(Type.String({ maxLength: 200 }), { maxItems: 16 }) }),
  { additionalProperties: false },
);

const Surfaces = { rpc: Actions, events: Events, feeds: Actions, operations: Actions };

const byAlias = <S extends TSchema>(schema: S) =>
  Type.Record(Type.String({ pattern: "^[A-Za-z][A-Za-z0-9]{0,63}$" }), schema, {
    additionalProperties: false,
  });
/** A limit that may be left to the broker's own. */
const Limit = Type.Union([Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }), Type.Null()]);
const optional = Type.Boolean();

const Kv = Type.Object({
  history: Type.Integer({ minimum: 1, maximum: 64 }),
  ttlMs: Limit,
  maxValueBytes: Limit,
  optional,
});
const Store = Type.Object({ ttlMs: Limit, maxObjectBytes: Limit, maxTotalBytes: Limit, optional });
const Consumer = Type.Object({
  events: Type.Array(
    Type.Object({ api: Type.String({ maxLength: 200 }), event: Type.String({ maxLength: 200 }) }),
    { minItems: 1, maxItems: 200 },
  ),
  replay: Type.Union([
    Type.Literal("new"),
    Type.Literal("all"),
    Type.Object({ since: Type.String({ maxLength: 64 }) }),
  ]),
  ackWaitMs: Type.Integer({ minimum: 100, maximum: 3_600_000 }),
  ordering: Type.Union([Type.Literal("none"), Type.Literal("per-key")]),
  optional,
});

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
  kv: byAlias(Kv),
  store: byAlias(Store),
  consumers: byAlias(Consumer),
  jobs: byAlias(JobArtifactSchema),
  state: byAlias(Type.Object({ ttlMs: Limit })),
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
  const stranger = strangerEvent(value);
  if (stranger !== undefined) return err(stranger);
  const owned = value.implements.map((api) => api.id);
  const platform = [...owned, value.id].find((id) => id.startsWith("trellis."));
  if (platform !== undefined) return err(`"${platform}" is in the platform's own namespace.`);
  if (new Set(owned).size !== owned.length) return err("The artifact implements one API twice.");
  const text = canonicalJson(value);
  return ok({ artifact: value, text, digest: digestOf(value) });
}

/** A consumer may take only events of APIs that its participant implements or uses. */
function strangerEvent(artifact: AuthorityArtifact): string | undefined {
  for (const [alias, { events }] of Object.entries(artifact.consumers)) {
    const unknown = events.find((event) => eventOf(artifact, event) === undefined);
    if (unknown === undefined) continue;
    return `The consumer "${alias}" takes ${unknown.event} of ${unknown.api}, which the artifact neither implements nor uses.`;
  }
  return undefined;
}

/** Reads an artifact that we stored ourselves; throws when it is damaged. */
export function storedArtifact(text: string): AuthorityArtifact {
  const value: unknown = JSON.parse(text);
  if (!compiled.Check(value)) throw new Error("A stored participant artifact is damaged.");
  return value;
}

/** The event that a consumer names, from the APIs that the artifact implements or uses. */
export function eventOf(
  artifact: Pick<AuthorityArtifact, "implements" | "uses">,
  { api, event }: { readonly api: string; readonly event: string },
): { readonly params: readonly string[] } | undefined {
  const own = artifact.implements.find(({ id }) => id === api)?.events[event];
  if (own !== undefined) return own;
  const used = artifact.uses.filter((use) => use.api === api);
  return used.map(({ events }) => events[event]).find((found) => found !== undefined);
}
