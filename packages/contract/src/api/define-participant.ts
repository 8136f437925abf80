import { DefinitionError } from "../errors/definition-error.ts";
import { isAlias, type Reserved, requireParticipantId } from "../ids.ts";
import { digestOf } from "../json/digest.ts";
import { type Api, type None, SURFACES } from "./api.ts";
import { requireDistinctPlaces } from "./facade-places.ts";
import type { Participant, ParticipantKind, Resources } from "./participant.ts";
import { type ParticipantArtifact, participantArtifact } from "./participant-artifact.ts";
import { requireReferences } from "./references.ts";
import type { Use } from "./use.ts";

type AnyUse = Use<unknown, unknown, unknown, unknown>;

/** What a service consists of. */
export interface ServiceDefinition<
  Implements extends Api,
  Uses extends AnyUse,
  Kv extends Resources["kv"],
  Store extends Resources["store"],
  Jobs extends Resources["jobs"],
  Consumers extends Resources["consumers"],
  State extends Resources["state"],
> {
  readonly title?: string;
  /** APIs that it provides. */
  readonly implements?: readonly Implements[];
  /** APIs that it calls, each as `use(api)`. */
  readonly uses?: readonly Uses[];
  readonly kv?: Kv;
  readonly store?: Store;
  readonly jobs?: Jobs;
  readonly consumers?: Consumers;
  readonly state?: State;
}

/** What an app consists of: it calls, and provides nothing. */
export interface AppDefinition<Uses extends AnyUse, State extends Resources["state"]> {
  readonly title?: string;
  /** APIs that it calls, each as `use(api)`. */
  readonly uses?: readonly Uses[];
  readonly state?: State;
}

/** Defines a service. Throws a {@link DefinitionError} that names the place when it cannot be. */
export function defineService<
  const Id extends string,
  Implements extends Api = never,
  Uses extends AnyUse = never,
  Kv extends Resources["kv"] = None,
  Store extends Resources["store"] = None,
  Jobs extends Resources["jobs"] = None,
  Consumers extends Resources["consumers"] = None,
  State extends Resources["state"] = None,
>(
  id: Id,
  definition: ServiceDefinition<Implements, Uses, Kv, Store, Jobs, Consumers, State>,
  permit?: Reserved,
): Participant<
  "service",
  Id,
  Implements,
  Uses,
  { kv: Kv; store: Store; jobs: Jobs; consumers: Consumers; state: State }
> {
  requireParticipantId(id, permit);
  return new DefinedParticipant("service", id, {
    title: definition.title,
    implements: definition.implements ?? [],
    uses: definition.uses ?? [],
    resources: {
      kv: definition.kv ?? ({} as Kv),
      store: definition.store ?? ({} as Store),
      jobs: definition.jobs ?? ({} as Jobs),
      consumers: definition.consumers ?? ({} as Consumers),
      state: definition.state ?? ({} as State),
    },
  });
}

/** Defines an app. Throws a {@link DefinitionError} that names the place when it cannot be. */
export function defineApp<
  const Id extends string,
  Uses extends AnyUse = never,
  State extends Resources["state"] = None,
>(
  id: Id,
  definition: AppDefinition<Uses, State>,
  permit?: Reserved,
): Participant<"app", Id, never, Uses, { kv: None; store: None; jobs: None; consumers: None; state: State }> {
  requireParticipantId(id, permit);
  return new DefinedParticipant("app", id, {
    title: definition.title,
    implements: [] as readonly never[],
    uses: definition.uses ?? [],
    resources: { kv: {}, store: {}, jobs: {}, consumers: {}, state: definition.state ?? ({} as State) },
  });
}

interface Parts<Implements, Uses, Res extends Resources> {
  readonly title: string | undefined;
  readonly implements: readonly Implements[];
  readonly uses: readonly Uses[];
  readonly resources: Res;
}

class DefinedParticipant<
  Kind extends ParticipantKind,
  Id extends string,
  Implements extends Api,
  Uses extends AnyUse,
  Res extends Resources,
> implements Participant<Kind, Id, Implements, Uses, Res>
{
  readonly kind: Kind;
  readonly id: Id;
  readonly title: string | undefined;
  readonly implements: readonly Implements[];
  readonly uses: readonly Uses[];
  readonly kv: Res["kv"];
  readonly store: Res["store"];
  readonly jobs: Res["jobs"];
  readonly consumers: Res["consumers"];
  readonly state: Res["state"];
  readonly artifact: ParticipantArtifact;
  #digest: string | undefined;

  constructor(kind: Kind, id: Id, parts: Parts<Implements, Uses, Res>) {
    this.kind = kind;
    this.id = id;
    this.title = parts.title;
    this.implements = parts.implements;
    this.uses = parts.uses;
    this.kv = parts.resources.kv;
    this.store = parts.resources.store;
    this.jobs = parts.resources.jobs;
    this.consumers = parts.resources.consumers;
    this.state = parts.resources.state;
    const whole = this as Participant;
    requireConsistent(whole);
    this.artifact = participantArtifact(whole);
  }

  get digest(): string {
    this.#digest ??= digestOf(this.artifact);
    return this.#digest;
  }
}

/** The checks that look at the participant as a whole. */
function requireConsistent(participant: Participant): void {
  const place = `${participant.kind} ${participant.id}`;
  requireOnce(place, participant);
  for (const surface of SURFACES) {
    requireDistinctPlaces(
      `${place}, implemented ${surface}`,
      participant.implements.flatMap((api) =>
        Object.keys(api[surface]).map((name) => ({ name, owner: `${api.id} ${name}` })),
      ),
    );
    requireDistinctPlaces(
      `${place}, used ${surface}`,
      participant.uses.flatMap(({ api, as, [surface]: actions }) =>
        Object.entries(actions).map(([name, action]) => ({
          name,
          owner: `${api.id} ${action.name}${as === undefined ? "" : ` as ${as}`}`,
        })),
      ),
      'Give one use another name: use(api, { as: "Billing" })',
    );
  }
  for (const kind of ["kv", "store", "jobs", "consumers", "state"] as const) {
    for (const alias of Object.keys(participant[kind])) {
      if (isAlias(alias)) continue;
      throw new DefinitionError({
        place: `${place}, ${kind} ${JSON.stringify(alias)}`,
        problem: "this is not an alias",
        hint: "Write an identifier in lower camel case, like carts",
      });
    }
  }
  requireReferences(place, participant);
}

function requireOnce(place: string, participant: Participant): void {
  const owned = new Set<string>();
  for (const { id } of participant.implements) {
    if (owned.has(id)) throw new DefinitionError({ place, problem: `it implements ${id} twice` });
    owned.add(id);
  }
  const used = new Set<string>();
  for (const { api } of participant.uses) {
    if (used.has(api.id)) {
      throw new DefinitionError({
        place,
        problem: `it uses ${api.id} twice`,
        hint: "Put both selections into one use",
      });
    }
    used.add(api.id);
  }
}
