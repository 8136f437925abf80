import { canonicalJson, digestOf } from "@trellis/contract";
import {
  controlSubject,
  EVENT_STREAM,
  eventFilter,
  feedSubject,
  healthSubject,
  inboxPrefix,
  listenerName,
  NOTICE_FILTER,
  NOTICES_GET_SUBJECT,
  noticeGetSubject,
  rpcSubject,
} from "@trellis/protocol";
import { JobsBindingSchema } from "@trellis/protocol/jobs";
import { MAX_LISTENERS } from "@trellis/runtime/node";
import { type Static, Type } from "typebox";
import { Compile } from "typebox/compile";
import type { BoundResources } from "../resources/resources.ts";
import type { AuthorityArtifact } from "./artifact.ts";
import type { ResolvedBindings } from "./binding.ts";
import { listensTo } from "./platform-access.ts";
import { resourcePermissions } from "./resource-permissions.ts";

const Names = Type.Array(Type.String());

const Policy = Type.Object({
  version: Type.Literal(1),
  kind: Type.Union([Type.Literal("service"), Type.Literal("app")]),
  deployment: Type.String(),
  owned: Type.Array(
    Type.Object({
      api: Type.String(),
      rpc: Names,
      feeds: Names,
      /** Events that may be published, with the number of their parameters. */
      events: Type.Array(Type.Object({ name: Type.String(), params: Type.Integer() })),
    }),
  ),
  used: Type.Array(Type.Object({ api: Type.String(), deployment: Type.String(), rpc: Names, feeds: Names })),
  /** Buckets, by physical name. */
  kv: Names,
  /** Object stores, by physical name. */
  store: Names,
  consumers: Type.Array(
    Type.Object({ stream: Type.String(), name: Type.String(), deadLetters: Type.String() }),
  ),
  jobs: Type.Union([JobsBindingSchema, Type.Null()]),
  /** Its connections may have ephemeral listeners. */
  listens: Type.Optional(Type.Boolean()),
});

const compiled = Compile(Policy);

/**
 * What the connections of one deployment may do on the broker, apart from what depends on the connection.
 * Content-addressed and shared by all connections that may do the same; what it compiles to depends on
 * nothing else but the connection's id.
 */
export type TransportPolicy = Static<typeof Policy>;

/** Exact allow lists of one connection. Neither is ever empty: to the broker an empty list allows everything. */
export interface Permissions {
  readonly pub: readonly string[];
  readonly sub: readonly string[];
}

/** The transport policy of a deployment: its own actions, and those that it uses of bound providers. */
export function policyOf(input: {
  deployment: string;
  artifact: AuthorityArtifact;
  bindings: ResolvedBindings;
  resources: BoundResources;
}): TransportPolicy {
  const { deployment, artifact, bindings, resources } = input;
  return {
    version: 1,
    kind: artifact.kind,
    deployment,
    owned: artifact.implements.map(ownedPolicy).sort(byApi),
    used: bindings.bound
      .map(({ use, provider }) => ({
        api: use.api,
        deployment: provider,
        rpc: sortedNames(use.rpc),
        feeds: sortedNames(use.feeds),
      }))
      .sort(byApi),
    kv: Object.values(resources.kv)
      .map(({ bucket }) => bucket)
      .sort(),
    store: Object.values(resources.store)
      .map(({ name }) => name)
      .sort(),
    consumers: Object.values(resources.consumers)
      .map(({ stream, consumer: name, deadLetters }) => ({ stream, name, deadLetters }))
      .sort((left, right) => (left.name < right.name ? -1 : 1)),
    jobs: resources.jobs,
    ...(listensTo(artifact) ? { listens: true } : {}),
  };
}

function ownedPolicy({ id, rpc, feeds, events }: AuthorityArtifact["implements"][number]) {
  return {
    api: id,
    rpc: sortedNames(rpc),
    feeds: sortedNames(feeds),
    events: sortedNames(events).map((name) => ({ name, params: events[name]?.params.length ?? 0 })),
  };
}

/** The text and the digest under which a policy is kept. */
export function sealPolicy(policy: TransportPolicy): { digest: string; body: string } {
  return { digest: digestOf(policy), body: canonicalJson(policy) };
}

/** Reads a policy that we stored ourselves; throws when it is damaged. */
export function storedPolicy(body: string): TransportPolicy {
  const value: unknown = JSON.parse(body);
  if (!compiled.Check(value)) throw new Error("A stored transport policy is damaged.");
  return value;
}

/** What is the same for every connection under one policy. */
export function sharedPermissions(policy: TransportPolicy): Permissions {
  const pub = new Set<string>();
  const sub = new Set<string>([NOTICE_FILTER]);
  pub.add(NOTICES_GET_SUBJECT);
  for (const { api, deployment, rpc, feeds } of policy.used) {
    for (const action of rpc) pub.add(rpcSubject({ api, deployment, action }));
    for (const action of feeds) pub.add(feedSubject({ api, deployment, action }));
    pub.add(`${controlPrefix(deployment)}.*`);
    pub.add(noticeGetSubject("route", deployment));
  }
  // To verify the events of others.
  if (policy.listens === true) pub.add("ctl.get.authorization.*").add("ctl.get.grants.*");
  if (policy.kind === "service") {
    pub.add("_INBOX.*.r.>").add("ctl.get.authorization.*").add("ctl.get.grants.*");
    pub.add(noticeGetSubject("route", policy.deployment));
    sub.add(controlSubject(policy.deployment, "all"));
    for (const { api, rpc, feeds, events } of policy.owned) {
      const { deployment } = policy;
      for (const action of rpc) sub.add(queueScoped(rpcSubject({ api, deployment, action })));
      for (const action of feeds) sub.add(queueScoped(feedSubject({ api, deployment, action })));
      for (const { name, params } of events)
        pub.add(eventFilter({ api, action: name, params: Array.from({ length: params }, () => undefined) }));
    }
  }
  for (const subject of resourcePermissions(policy).pub) pub.add(subject);
  for (const subject of resourcePermissions(policy).sub) sub.add(subject);
  return { pub: [...pub], sub: [...sub] };
}

/** The allow lists of one connection: what its policy shares, and its own inbox, control and health subjects. */
export function compilePermissions(policy: TransportPolicy, connection: string): Permissions {
  return addConnection(sharedPermissions(policy), policy, connection);
}

/** Completes shared permissions, which the callout keeps, for one connection. */
export function addConnection(shared: Permissions, policy: TransportPolicy, connection: string): Permissions {
  const { deployment, kind } = policy;
  const inbox = `${inboxPrefix(connection)}.>`;
  const pulls = policy.listens === true ? listenerPulls(connection) : [];
  if (kind !== "service") return { pub: [...shared.pub, ...pulls], sub: [inbox, ...shared.sub] };
  return {
    pub: [...shared.pub, healthSubject({ kind, deployment, connection }), ...pulls],
    sub: [inbox, ...shared.sub, controlSubject(deployment, connection)],
  };
}

/** Pulling from the connection's own ephemeral consumers, which the control plane makes: nothing can be said to them. */
function listenerPulls(connection: string): string[] {
  return Array.from(
    { length: MAX_LISTENERS },
    (_, slot) => `$JS.API.CONSUMER.MSG.NEXT.${EVENT_STREAM}.${listenerName(connection, slot)}`,
  );
}

export type PolicyChange = "equal" | "wider" | "narrower";

/** How a connection's permissions change; anything that takes something away counts as narrower. */
export function comparePolicies(before: TransportPolicy, after: TransportPolicy): PolicyChange {
  const [old, next] = [sharedPermissions(before), sharedPermissions(after)];
  if (!covers(next.pub, old.pub) || !covers(next.sub, old.sub)) return "narrower";
  return covers(old.pub, next.pub) && covers(old.sub, next.sub) ? "equal" : "wider";
}

function covers(larger: readonly string[], smaller: readonly string[]): boolean {
  const known = new Set(larger);
  return smaller.every((subject) => known.has(subject));
}

/** NATS reads "subject queue" as: only as a member of that queue group. */
function queueScoped(subject: string): string {
  return `${subject} ${subject}`;
}

function controlPrefix(deployment: string): string {
  return controlSubject(deployment, "all").slice(0, -".all".length);
}

function sortedNames(actions: Readonly<Record<string, unknown>>): string[] {
  return Object.keys(actions).sort();
}

function byApi(left: { api: string }, right: { api: string }): number {
  return left.api < right.api ? -1 : left.api > right.api ? 1 : 0;
}
