import type { GroupOf, LeafOf } from "../facade-name.ts";

/**
 * A function from an action type to what stands for it on a facade. TypeScript has no type parameters that take
 * parameters, so the runtime declares an interface that reads `this["action"]`:
 *
 * ```ts
 * interface RpcCallers extends FacadeKind {
 *   readonly entry: this["action"] extends RpcAction<infer I, infer O, infer E> ? RpcCaller<InputOf<I>, OutputOf<O>, InstanceType<E>> : never;
 * }
 * type Client = Facade<UsedRpc<P>, RpcCallers>;
 * ```
 */
export interface FacadeKind {
  readonly action: unknown;
  readonly entry: unknown;
}

type Entry<Kind extends FacadeKind, Action> = (Kind & { readonly action: Action })["entry"];

/** Names by group, in one pass over the actions: members that meet under one key unite. */
type NamesByGroup<Actions> = { [Name in keyof Actions & string as GroupOf<Name>]: Name };

// Both facades are written so that an editor shows what is on them (`{ greeter: { hello: ... } }`) and not the names of
// these types with the whole contract as their argument: the outcome of a condition, and of `& {}`, has no name.

/** `{ [group]: { [leaf]: entry } }` for a record of actions by dotted name. */
export type Facade<Actions, Kind extends FacadeKind> =
  NamesByGroup<Actions> extends infer Groups
    ? { readonly [Group in keyof Groups]: FacadeGroup<Actions, Groups[Group], Kind> }
    : never;

/** One group of a facade. */
export type FacadeGroup<Actions, Names, Kind extends FacadeKind> = {
  readonly [Name in Names & keyof Actions & string as LeafOf<Name>]: Entry<Kind, Actions[Name]>;
} & {};
