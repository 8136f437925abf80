import type { InputOf, OutputOf, RpcAction, StateResource } from "@trellis/contract";
import { type CallErrors, KVError, type Port, toBase64Url, ValidationError } from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import { KvValues } from "../kv/kv-values.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { CallOptions, RpcCaller } from "../rpc/rpc-caller.ts";
import type { MakeCall } from "../rpc/rpc-facade.ts";
import type {
  State,
  StateDeleteOptions,
  StateEntry,
  StateFailure,
  StateReplaceOptions,
  StateResult,
  StateRevision,
} from "./state.ts";
import {
  MAX_STATE_BYTES,
  type StateConflict,
  type StateNotDeclared,
  type StateRefused,
  stateApi,
} from "./state-api.ts";

export interface StateHandleInput {
  readonly alias: string;
  readonly resource: StateResource;
  readonly port: Port;
  readonly call: MakeCall;
  readonly origin: CallOrigin | undefined;
}

type CallerOf<A> =
  A extends RpcAction<infer I, infer O, infer E>
    ? RpcCaller<InputOf<I>, OutputOf<O>, InstanceType<E>>
    : never;

type Actions = (typeof stateApi)["rpc"];
type GetAnswer = OutputOf<Actions["State.Get"]["schemas"]["output"]>;
type PutInput = InputOf<Actions["State.Put"]["schemas"]["input"]>;

/** State of one alias. It holds nothing: every operation is one call to the platform. */
export class StateHandle implements State<unknown, unknown> {
  readonly #input: StateHandleInput;
  readonly #values: KvValues;
  readonly #get: CallerOf<Actions["State.Get"]>;
  readonly #put: CallerOf<Actions["State.Put"]>;
  readonly #delete: CallerOf<Actions["State.Delete"]>;

  constructor(input: StateHandleInput) {
    const { resource, port } = input;
    const { value, version, migrate } = resource;
    this.#input = input;
    this.#values = new KvValues(port, {
      value,
      version,
      migrate,
      maxValueBytes: MAX_STATE_BYTES,
      ttlMs: resource.ttlMs,
      holder: "state",
    });
    this.#get = this.#caller(stateApi.rpc["State.Get"]);
    this.#put = this.#caller(stateApi.rpc["State.Put"]);
    this.#delete = this.#caller(stateApi.rpc["State.Delete"]);
  }

  get(options: CallOptions = {}): StateResult<StateEntry<unknown> | undefined> {
    return this.#get({ alias: this.#input.alias }, options)
      .mapErr((error) => this.#failure(error))
      .andThen(({ entry }) => this.#entry(entry));
  }

  create(value: unknown, options: CallOptions = {}): StateResult<StateRevision> {
    return this.#write(value, 0, options);
  }

  put(value: unknown, options: CallOptions = {}): StateResult<StateRevision> {
    return this.#write(value, undefined, options);
  }

  replace(value: unknown, options: StateReplaceOptions): StateResult<StateRevision> {
    const { revision } = options;
    return isRevision(revision) ? this.#write(value, revision, options) : AsyncResult.err(invalidRevision());
  }

  delete(options: StateDeleteOptions = {}): StateResult<StateRevision> {
    const { revision } = options;
    if (revision !== undefined && !isRevision(revision)) return AsyncResult.err(invalidRevision());
    const expected = revision === undefined ? {} : { expected: revision };
    const input = { alias: this.#input.alias, write: this.#newWrite(), ...expected };
    return this.#delete(input, options).mapErr((error) => this.#failure(error, revision));
  }

  #write(value: unknown, expected: number | undefined, options: CallOptions): StateResult<StateRevision> {
    const data = this.#values.encode(value);
    if (data.isErr()) return AsyncResult.err(data.error);
    const input: PutInput = {
      alias: this.#input.alias,
      value: this.#input.port.utf8.read(data.value, 0, data.value.length),
      version: this.#values.version,
      write: this.#newWrite(),
      ...(expected === undefined ? {} : { expected }),
    };
    return this.#put(input, options).mapErr((error) => this.#failure(error, expected));
  }

  #entry(entry: GetAnswer["entry"]): Result<StateEntry<unknown> | undefined, StateFailure> {
    if (entry === undefined) return ok(undefined);
    const { value, version, revision, updatedAt, expiresAt } = entry;
    const read = this.#values.read(new TextEncoder().encode(value), version);
    if (!read.ok) {
      const { message, reason, details, cause } = read.error;
      const about = { key: this.#input.alias, revision, ...(details !== undefined && { details }) };
      return err(new KVError({ message, reason, cause, ...about }));
    }
    return ok({
      value: read.value,
      revision,
      updatedAt: new Date(updatedAt),
      expiresAt: expiresAt === undefined ? undefined : new Date(expiresAt),
    });
  }

  /** The error of the caller for what the platform answered. */
  #failure(error: StateAnswerError, expected?: number): StateFailure {
    if (error.kind === "call") return error;
    const { alias } = this.#input;
    switch (error.type) {
      case "StateConflict": {
        const { revision } = error.data;
        const reason = expected === 0 ? "exists" : "revision_mismatch";
        const message = `State "${alias}" is at revision ${revision}`;
        return new KVError({ reason, message, key: alias, revision });
      }
      case "StateRefused":
        return new ValidationError({ errors: [{ path: "", message: error.data.problem }] });
      case "StateNotDeclared":
        return new KVError({
          reason: "refused",
          message: error.message,
          key: alias,
          hint: "Install the contract that declares it, and connect again.",
        });
    }
  }

  /** The API is the platform's own, whatever the participant uses. */
  #caller<A extends RpcAction>(action: A): CallerOf<A> {
    const { call, origin } = this.#input;
    const caller = (input: unknown, options?: CallOptions) => call({ action, input, options, origin });
    return caller as CallerOf<A>;
  }

  #newWrite(): string {
    return toBase64Url(this.#input.port.random(12));
  }
}

type StateAnswerError =
  | CallErrors
  | InstanceType<typeof StateNotDeclared | typeof StateConflict | typeof StateRefused>;

function isRevision(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}

function invalidRevision(): ValidationError {
  return new ValidationError({
    errors: [{ path: "/revision", message: "must be a revision that get or a write gave" }],
  });
}
