import type { EventAction } from "../actions/event.ts";
import type { FeedAction } from "../actions/feed.ts";
import type { OperationAction } from "../actions/operation.ts";
import type { RpcAction } from "../actions/rpc.ts";
import { DefinitionError } from "../errors/definition-error.ts";
import { within } from "../errors/within.ts";
import { isActionName, type Reserved, requireApiId } from "../ids.ts";
import { digestOf } from "../json/digest.ts";
import type { Api, EventRecord, FeedRecord, None, OperationRecord, RpcRecord } from "./api.ts";
import {
  type ApiArtifact,
  eventArtifact,
  feedArtifact,
  mapRecord,
  operationArtifact,
  rpcArtifact,
} from "./api-artifact.ts";
import { requireDistinctPlaces } from "./facade-places.ts";

/** What an API consists of: actions by dotted name. */
export interface ApiDefinition<
  R extends RpcRecord,
  Ev extends EventRecord,
  Op extends OperationRecord,
  Fe extends FeedRecord,
> {
  readonly title?: string;
  readonly rpc?: R;
  readonly events?: Ev;
  readonly operations?: Op;
  readonly feeds?: Fe;
}

/** Defines an API. Throws a {@link DefinitionError} that names the place when it cannot be. */
export function defineApi<
  const Id extends string,
  R extends RpcRecord = None,
  Ev extends EventRecord = None,
  Op extends OperationRecord = None,
  Fe extends FeedRecord = None,
>(id: Id, definition: ApiDefinition<R, Ev, Op, Fe>, permit?: Reserved): Api<Id, R, Ev, Op, Fe> {
  requireApiId(id, permit);
  return new DefinedApi(id, definition);
}

class DefinedApi<
  Id extends string,
  R extends RpcRecord,
  Ev extends EventRecord,
  Op extends OperationRecord,
  Fe extends FeedRecord,
> implements Api<Id, R, Ev, Op, Fe>
{
  readonly kind = "api";
  readonly id: Id;
  readonly title: string | undefined;
  readonly rpc: R;
  readonly events: Ev;
  readonly operations: Op;
  readonly feeds: Fe;
  readonly artifact: ApiArtifact;
  #digest: string | undefined;

  constructor(id: Id, definition: ApiDefinition<R, Ev, Op, Fe>) {
    this.id = id;
    this.title = definition.title;
    this.rpc = bind(id, "rpc", definition.rpc);
    this.events = bind(id, "event", definition.events);
    this.operations = bind(id, "operation", definition.operations);
    this.feeds = bind(id, "feed", definition.feeds);
    // Built at once: a schema that cannot be JSON is refused here, not at the first connect.
    this.artifact = {
      format: "trellis.api/v1",
      id,
      rpc: written<RpcAction, ApiArtifact["rpc"][string]>(id, this.rpc, rpcArtifact),
      events: written<EventAction, ApiArtifact["events"][string]>(id, this.events, eventArtifact),
      operations: written<OperationAction, ApiArtifact["operations"][string]>(
        id,
        this.operations,
        operationArtifact,
      ),
      feeds: written<FeedAction, ApiArtifact["feeds"][string]>(id, this.feeds, feedArtifact),
    };
  }

  get digest(): string {
    this.#digest ??= digestOf(this.artifact);
    return this.#digest;
  }
}

interface Bindable {
  readonly kind: string;
  readonly name: string;
  readonly api: string;
}

/** Copies of the actions that know their name and API; one action may stand in several APIs. */
function bind<A extends Readonly<Record<string, Bindable>>>(
  api: string,
  kind: string,
  actions: A | undefined,
): A {
  const given: Readonly<Record<string, Bindable>> = actions ?? {};
  const names = Object.keys(given);
  for (const name of names) {
    if (isActionName(name)) continue;
    throw new DefinitionError({
      place: `API ${api}, ${kind} ${JSON.stringify(name)}`,
      problem: "this is not an action name",
      hint: "Write segments of letters and digits joined by dots, like Orders.Create",
    });
  }
  requireDistinctPlaces(
    `API ${api}, ${kind}`,
    names.map((name) => ({ name, owner: name })),
  );
  return Object.freeze(mapRecord(given, (action, name) => Object.freeze({ ...action, name, api }))) as A;
}

function written<A extends Bindable, J>(
  api: string,
  actions: Readonly<Record<string, A>>,
  write: (action: A) => J,
) {
  return mapRecord(
    actions,
    (action, name): J => within(`API ${api}, ${action.kind} ${JSON.stringify(name)}`, () => write(action)),
  );
}
