import type { StateResource } from "@trellis/contract";
import type { Port } from "@trellis/protocol";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { MakeCall } from "../rpc/rpc-facade.ts";
import { StateHandle } from "./state-handle.ts";

export interface StateFacadeInput {
  readonly resources: Readonly<Record<string, StateResource>>;
  readonly port: Port;
  /** Calls the platform's state API. */
  readonly call: MakeCall;
}

/** Prepares the facade over the declared state; for one request, or for none. Handles are made when they are touched. */
export function stateFacade(input: StateFacadeInput): (origin: CallOrigin | undefined) => object {
  const { resources, ...rest } = input;
  class Root {
    readonly origin: CallOrigin | undefined;
    constructor(origin: CallOrigin | undefined) {
      this.origin = origin;
    }
  }
  for (const [alias, resource] of Object.entries(resources)) {
    Object.defineProperty(Root.prototype, alias, {
      enumerable: true,
      get(this: Root) {
        return new StateHandle({ ...rest, alias, resource, origin: this.origin });
      },
    });
  }
  return (origin) => new Root(origin);
}
