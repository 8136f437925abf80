import type { JsonObject } from "@trellis/result";
import type {
  ArtifactErrors,
  ArtifactSchema,
  EventArtifact,
  FeedArtifact,
  OperationArtifact,
  RpcArtifact,
} from "../api/api-artifact.ts";
import { subsetFindings } from "./schema-subset.ts";

/** The actions of an API artifact, or the selection in a use artifact: what two sides can disagree about. */
export interface ActionArtifacts {
  readonly rpc: Readonly<Record<string, RpcArtifact>>;
  readonly events: Readonly<Record<string, EventArtifact>>;
  readonly operations: Readonly<Record<string, OperationArtifact>>;
  readonly feeds: Readonly<Record<string, FeedArtifact>>;
}

/** A change to be judged. */
export interface CompatibilityQuestion {
  /** What the other side was built against: an API artifact, or the `uses` entry of a consumer. */
  readonly before: ActionArtifacts;
  readonly after: ActionArtifacts;
  /** Which side moves to `after` while the other stays at `before`. Default `"provider"`. */
  readonly moves?: "provider" | "consumer";
}

/** One reason why a change breaks somebody. */
export interface CompatibilityFinding {
  /** Surface, action, part and place: `rpc/Orders.Create/input/qty`. */
  readonly path: string;
  readonly reason: string;
  /** The side that has not moved and meets what it does not know. */
  readonly breaks: "provider" | "consumer";
}

/** The judgement. */
export interface Compatibility {
  readonly compatible: boolean;
  readonly findings: readonly CompatibilityFinding[];
}

/**
 * Judges a change by direction: a provider may accept more and promise more, never less. Additions are no break: an
 * action, an optional member of an input, a member of an output, an error (a caller that does not know it gets a
 * RemoteError). What the schema comparison does not understand counts as breaking.
 */
export function checkCompatibility(question: CompatibilityQuestion): Compatibility {
  const { before, after, moves = "provider" } = question;
  const consumer = moves === "provider" ? before : after;
  const provider = moves === "provider" ? after : before;
  const breaks = moves === "provider" ? "consumer" : "provider";
  const found = [
    ...eachAction(consumer.rpc, provider.rpc, compareRpc).map(under("rpc")),
    ...eachAction(consumer.events, provider.events, compareEvent).map(under("events")),
    ...eachAction(consumer.operations, provider.operations, compareOperation).map(under("operations")),
    ...eachAction(consumer.feeds, provider.feeds, compareFeed).map(under("feeds")),
  ];
  return { compatible: found.length === 0, findings: found.map((finding) => ({ ...finding, breaks })) };
}

type Found = Omit<CompatibilityFinding, "breaks">;

function under(place: string): (found: Found) => Found {
  return ({ path, reason }) => ({ path: `${place}/${path}`, reason });
}

function eachAction<A>(
  consumer: Readonly<Record<string, A>>,
  provider: Readonly<Record<string, A>>,
  judge: (consumer: A, provider: A) => readonly Found[],
): readonly Found[] {
  return Object.entries(consumer).flatMap(([name, action]) => {
    const provided = Object.hasOwn(provider, name) ? provider[name] : undefined;
    if (provided === undefined) return [{ path: name, reason: "it is not provided" }];
    return judge(action, provided).map(under(name));
  });
}

function compareRpc(consumer: RpcArtifact, provider: RpcArtifact): readonly Found[] {
  const found = [
    ...flows("input", consumer.input, provider.input),
    ...flows("output", provider.output, consumer.output),
    ...errors(consumer.errors, provider.errors),
  ];
  if (consumer.idempotent !== false && !keepsIdempotency(consumer.idempotent, provider.idempotent)) {
    found.push({
      path: "idempotent",
      reason: "callers repeat it, and it may no longer be repeated that way",
    });
  }
  if (consumer.download !== provider.download) found.push({ path: "download", reason: "it changed" });
  return found;
}

function keepsIdempotency(expected: RpcArtifact["idempotent"], given: RpcArtifact["idempotent"]): boolean {
  if (expected === true || expected === false || given === false) return given !== false;
  return typeof given === "object" && given.key === expected.key;
}

function compareEvent(consumer: EventArtifact, provider: EventArtifact): readonly Found[] {
  const found = [...flows("payload", provider.payload, consumer.payload)];
  if (consumer.params.join() !== provider.params.join()) {
    found.push({ path: "params", reason: "the subject has other parameters" });
  }
  return found;
}

function compareOperation(consumer: OperationArtifact, provider: OperationArtifact): readonly Found[] {
  const found = [
    ...flows("input", consumer.input, provider.input),
    ...flows("output", provider.output, consumer.output),
    ...flows("progress", provider.progress, consumer.progress),
    ...flows("update", provider.update, consumer.update),
    ...errors(consumer.errors, provider.errors),
  ];
  for (const [name, signal] of Object.entries(consumer.signals)) {
    const taken = provider.signals[name];
    if (taken === undefined) found.push({ path: `signals/${name}`, reason: "it is not provided" });
    else found.push(...flows(`signals/${name}`, signal, taken));
  }
  if (consumer.cancel && !provider.cancel)
    found.push({ path: "cancel", reason: "it can no longer be cancelled" });
  if ((consumer.upload === null) !== (provider.upload === null))
    found.push({ path: "upload", reason: "it changed" });
  const most = consumer.upload?.maxBytes ?? Infinity;
  if (most > (provider.upload?.maxBytes ?? Infinity))
    found.push({ path: "upload", reason: "larger uploads are refused" });
  return found;
}

function compareFeed(consumer: FeedArtifact, provider: FeedArtifact): readonly Found[] {
  return [
    ...flows("input", consumer.input, provider.input),
    ...flows("event", provider.event, consumer.event),
    ...errors(consumer.errors, provider.errors),
  ];
}

function errors(consumer: ArtifactErrors, provider: ArtifactErrors): readonly Found[] {
  return Object.entries(consumer).flatMap(([name, data]) => {
    const given = provider[name];
    return given === undefined ? [] : flows(`errors/${name}`, given, data);
  });
}

/** Nothing on the wire is the JSON value `null`. */
const NOTHING: JsonObject = { type: "null" };

/** Findings when what one side sends does not fit what the other takes. */
function flows(path: string, sent: ArtifactSchema | undefined, taken: ArtifactSchema | undefined): Found[] {
  return subsetFindings(sent ?? NOTHING, taken ?? NOTHING).map((finding) => ({
    path: `${path}${finding.path}`,
    reason: finding.reason,
  }));
}
