import type { AnyParticipant, InputOf, OutputOf, StateResource } from "@trellis/contract";
import type { CallErrors, KVError } from "@trellis/protocol";
import type { AsyncResult } from "@trellis/result";
import type { CallOptions } from "../rpc/rpc-caller.ts";

/** A value, and which revision it is. */
export interface StateEntry<V> {
  readonly value: V;
  /** Grows with every write; what `replace` and a checked `delete` ask for. */
  readonly revision: number;
  readonly updatedAt: Date;
  /** When it goes away by itself; `undefined` where it stays. */
  readonly expiresAt: Date | undefined;
}

export interface StateRevision {
  readonly revision: number;
}

export interface StateReplaceOptions extends CallOptions {
  /** The revision that is replaced; any other one is a `KVError` `revision_mismatch`. */
  readonly revision: number;
}

export interface StateDeleteOptions extends CallOptions {
  /** Deletes only if it is at this revision. */
  readonly revision?: number;
}

/** Every error that an operation on state can end with; `type` tells them apart. */
export type StateFailure = KVError | CallErrors;

export type StateResult<T> = AsyncResult<T, StateFailure>;

/**
 * One typed value of whoever is connected: of the user, or of the participant itself where no user is logged in. It is
 * kept by the platform, and is the same wherever the same principal connects. `In` is what is written, `Out` what is
 * read; JSON of at most 64 KiB.
 */
export interface State<In, Out> {
  /** The value, or `undefined`. One that cannot be read is a `KVError`, not absent. */
  get(options?: CallOptions): StateResult<StateEntry<Out> | undefined>;
  /** Writes the value if there is none; else a `KVError` with reason `exists`. */
  create(value: In, options?: CallOptions): StateResult<StateRevision>;
  /** Writes the value, whatever was there. */
  put(value: In, options?: CallOptions): StateResult<StateRevision>;
  /** Writes the value if it is at `options.revision`; else a `KVError` with reason `revision_mismatch`. */
  replace(value: In, options: StateReplaceOptions): StateResult<StateRevision>;
  /** Deletes the value, readable or not. */
  delete(options?: StateDeleteOptions): StateResult<StateRevision>;
}

/** `client.state`: what a participant declares as state, by alias. */
export type StateFacade<P extends AnyParticipant> = P["state"] extends infer All
  ? {
      readonly [Alias in keyof All]: All[Alias] extends StateResource<infer V>
        ? State<InputOf<V>, OutputOf<V>>
        : never;
    }
  : never;
