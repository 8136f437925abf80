import { DefinitionError } from "../errors/definition-error.ts";
import type { Api, EventRecord, FeedRecord, None, OperationRecord, RpcRecord, Surface } from "./api.ts";
import { SURFACES } from "./api.ts";

/** Which actions of an API a participant uses, and how. Without a selection: all of them. */
export interface UseOptions<A extends Api = Api> {
  readonly rpc?: readonly (keyof A["rpc"] & string)[];
  readonly events?: readonly (keyof A["events"] & string)[];
  readonly operations?: readonly (keyof A["operations"] & string)[];
  readonly feeds?: readonly (keyof A["feeds"] & string)[];
  /**
   * Lets the actions appear as if their names began with this word: with `as: "billing"` the RPC `Invoices.Create`
   * is `client.rpc.billing.invoicesCreate`. For two used APIs with actions of one name.
   */
  readonly as?: string;
  /** The participant also runs where nobody provides the API; calls then give an UnavailableError. */
  readonly optional?: boolean;
}

/** A use of an API. Its records hold the selected actions by the name from which the facade is made. */
export interface Use<R = RpcRecord, Ev = EventRecord, Op = OperationRecord, Fe = FeedRecord> {
  readonly kind: "use";
  readonly api: Api;
  readonly as: string | undefined;
  readonly optional: boolean;
  readonly rpc: R;
  readonly events: Ev;
  readonly operations: Op;
  readonly feeds: Fe;
}

type Selected<A, S, K extends Surface> = K extends keyof A
  ? [Extract<keyof S, Surface>] extends [never]
    ? A[K]
    : S extends { readonly [P in K]: readonly (infer N)[] }
      ? { readonly [P in N & keyof A[K]]: A[K][P] }
      : None
  : None;

type Renamed<R, S> = S extends { readonly as: infer As extends string }
  ? { readonly [N in keyof R & string as `${Capitalize<As>}.${N}`]: R[N] }
  : R;

type Unknown<S> = { readonly [K in Exclude<keyof S, keyof UseOptions>]: never };

/** Uses an API, or a selection of its actions. A selection narrows types and grants alike. */
export function use<A extends Api, const S extends UseOptions<A> = None>(
  api: A,
  options?: S & Unknown<S>,
): Use<
  Renamed<Selected<A, S, "rpc">, S>,
  Renamed<Selected<A, S, "events">, S>,
  Renamed<Selected<A, S, "operations">, S>,
  Renamed<Selected<A, S, "feeds">, S>
>;
export function use(api: Api, options: UseOptions = {}): Use {
  const place = `use(${api.id})`;
  requireKnownOptions(place, options);
  const { as } = options;
  if (as !== undefined && !/^[A-Za-z][A-Za-z0-9]*$/.test(as)) {
    throw new DefinitionError({
      place,
      problem: `as: ${JSON.stringify(as)} is not a name`,
      hint: "Write letters and digits, beginning with a letter",
    });
  }
  const everything = SURFACES.every((surface) => options[surface] === undefined);
  const pick = <T>(surface: Surface, actions: Readonly<Record<string, T>>): Record<string, T> =>
    select({
      place: `${place}, ${surface}`,
      actions,
      names: everything ? Object.keys(actions) : options[surface],
      as,
    });
  return Object.freeze({
    kind: "use",
    api,
    as,
    optional: options.optional ?? false,
    rpc: pick("rpc", api.rpc),
    events: pick("events", api.events),
    operations: pick("operations", api.operations),
    feeds: pick("feeds", api.feeds),
  } satisfies Use);
}

interface Selection<T> {
  readonly place: string;
  readonly actions: Readonly<Record<string, T>>;
  readonly names: readonly string[] | undefined;
  readonly as: string | undefined;
}

function select<T>({ place, actions, names = [], as }: Selection<T>): Record<string, T> {
  const selected: Record<string, T> = {};
  for (const name of names) {
    const action = Object.hasOwn(actions, name) ? actions[name] : undefined;
    if (action === undefined) {
      throw new DefinitionError({
        place,
        problem: `there is no ${JSON.stringify(name)}`,
        hint: `There is: ${Object.keys(actions).join(", ") || "nothing"}`,
      });
    }
    selected[as === undefined ? name : `${as.charAt(0).toUpperCase()}${as.slice(1)}.${name}`] = action;
  }
  return selected;
}

const OPTIONS: ReadonlySet<string> = new Set([...SURFACES, "as", "optional"]);

function requireKnownOptions(place: string, options: UseOptions): void {
  const unknown = Object.keys(options).find((key) => !OPTIONS.has(key));
  if (unknown === undefined) return;
  throw new DefinitionError({
    place,
    problem: `${JSON.stringify(unknown)} is not an option`,
    hint: `Options are ${[...OPTIONS].join(", ")}`,
  });
}
