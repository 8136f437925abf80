import {
  type AnyParticipant,
  type Facade,
  type FacadeKind,
  facadeName,
  type InputOf,
  type OutputOf,
  type OwnedRpc,
  type RpcAction,
  type UsedRpc,
} from "@trellis/contract";
import type { TrellisError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import type { CallOrigin } from "./call-origin.ts";
import type { CallOptions, RpcCaller } from "./rpc-caller.ts";
import type { CallRequest } from "./rpc-client.ts";
import type { RpcHandle } from "./rpc-handler.ts";

/** How an action looks to its callers. */
interface Callers extends FacadeKind {
  readonly entry: this["action"] extends RpcAction<infer I, infer O, infer E>
    ? RpcCaller<InputOf<I>, OutputOf<O>, InstanceType<E>>
    : never;
}

/** How an action looks to its provider. The handler gets the input decoded and gives the output to encode. */
interface Handles<Client> extends FacadeKind {
  readonly entry: this["action"] extends RpcAction<infer I, infer O, infer E>
    ? RpcHandle<OutputOf<I>, InputOf<O>, InstanceType<E>, Client>
    : never;
}

/** `client.rpc`: the RPCs that a participant uses, by group and leaf. */
export type RpcCallFacade<P extends AnyParticipant> = Facade<UsedRpc<P>, Callers>;

/** `service.handle.rpc`: the RPCs that a participant owns, by group and leaf. */
export type RpcHandleFacade<P extends AnyParticipant, Client> = Facade<OwnedRpc<P>, Handles<Client>>;

/** What was asked for on a facade. */
export interface FacadeCall<Action> {
  readonly action: Action;
  readonly input: unknown;
  readonly options: CallOptions | undefined;
  /** The request that it is asked for, inside a handler. */
  readonly origin: CallOrigin | undefined;
}

/** Makes one call; bound to a request inside its handler, to nothing outside. */
export type MakeCall = (request: CallRequest) => AsyncResult<unknown, TrellisError>;

/** The facade over a record of actions, for one origin. Leaves are made when they are touched. */
export type FacadeFactory = (origin: CallOrigin | undefined) => object;

/**
 * Prepares a facade once, so that a handler's client costs one small object: groups and leaves are getters on
 * shared prototypes.
 */
export function callFacade<Action>(
  actions: Readonly<Record<string, Action>>,
  makeCall: (call: FacadeCall<Action>) => unknown,
): FacadeFactory {
  const groups = new Map<string, Record<string, Action>>();
  for (const [name, action] of Object.entries(actions)) {
    const { group, leaf } = facadeName(name);
    groups.set(group, { ...groups.get(group), [leaf]: action });
  }
  class Root {
    readonly origin: CallOrigin | undefined;
    constructor(origin: CallOrigin | undefined) {
      this.origin = origin;
    }
  }
  for (const [group, leaves] of groups) {
    const Group = groupClass(leaves, makeCall);
    Object.defineProperty(Root.prototype, group, {
      enumerable: true,
      get(this: Root) {
        return new Group(this.origin);
      },
    });
  }
  return (origin) => new Root(origin);
}

function groupClass<Action>(
  leaves: Record<string, Action>,
  makeCall: (call: FacadeCall<Action>) => unknown,
): new (
  origin: CallOrigin | undefined,
) => object {
  class Group {
    readonly origin: CallOrigin | undefined;
    constructor(origin: CallOrigin | undefined) {
      this.origin = origin;
    }
  }
  for (const [leaf, action] of Object.entries(leaves)) {
    Object.defineProperty(Group.prototype, leaf, {
      enumerable: true,
      get(this: Group) {
        const { origin } = this;
        return (input?: unknown, options?: CallOptions) => makeCall({ action, input, options, origin });
      },
    });
  }
  return Group;
}

/** The facade on which handlers are registered: `{ [group]: { [leaf]: (handler) => void } }`. */
export function handleFacade<Action>(
  actions: Readonly<Record<string, Action>>,
  register: (action: Action, handler: unknown) => void,
): object {
  const facade: Record<string, Record<string, (handler: unknown) => void>> = {};
  for (const [name, action] of Object.entries(actions)) {
    const { group, leaf } = facadeName(name);
    facade[group] = { ...facade[group], [leaf]: (handler) => register(action, handler) };
  }
  return facade;
}
