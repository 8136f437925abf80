import type { AnyParticipant } from "@trellis/contract";
import type { Calling } from "../client/calling.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import type { ServiceClient } from "./connected-service.ts";
import type { ServiceSurfaces } from "./service-surfaces.ts";

/** What a handler is given to work with: getters, and the request that they are bound to. */
export class BoundClient<P extends AnyParticipant> implements ServiceClient<P> {
  readonly #calling: Calling;
  readonly #surfaces: ServiceSurfaces<P, ServiceClient<P>>;
  readonly #origin: CallOrigin | undefined;

  constructor(
    calling: Calling,
    surfaces: ServiceSurfaces<P, ServiceClient<P>>,
    origin: CallOrigin | undefined,
  ) {
    this.#calling = calling;
    this.#surfaces = surfaces;
    this.#origin = origin;
  }

  get rpc(): ServiceClient<P>["rpc"] {
    return this.#calling.facade(this.#origin) as ServiceClient<P>["rpc"];
  }

  get request(): ServiceClient<P>["request"] {
    return this.#calling.request(this.#origin);
  }

  get event(): ServiceClient<P>["event"] {
    return this.#surfaces.publish(this.#origin);
  }

  get prepare(): ServiceClient<P>["prepare"] {
    return this.#surfaces.named(this.#origin).prepare;
  }

  get publish(): ServiceClient<P>["publish"] {
    return this.#surfaces.named(this.#origin).publish;
  }

  get publishPrepared(): ServiceClient<P>["publishPrepared"] {
    return this.#surfaces.publishPrepared(this.#origin);
  }

  get kv(): ServiceClient<P>["kv"] {
    return this.#surfaces.kv;
  }

  get store(): ServiceClient<P>["store"] {
    return this.#surfaces.store;
  }
}
