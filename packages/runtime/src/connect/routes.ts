import {
  type ApiBinding,
  deriveRpcKeys,
  type ExchangeKey,
  fromBase64Url,
  type Port,
  type RouteNotice,
  type RpcKeys,
} from "@trellis/protocol";
import { newReplyScope } from "./inbox.ts";
import type { Session } from "./session.ts";

/**
 * The caller's side of one provider deployment under one epoch and one authorization: MAC keys and the frame
 * counter. A request in flight keeps the route that it was sent under; a refresh or a rolled epoch makes a
 * new one.
 */
export class ProviderRoute {
  readonly deployment: string;
  readonly epoch: number;
  readonly digest: Uint8Array;
  readonly keys: RpcKeys;
  /** Of the reply subjects that this provider learns, and no other. */
  readonly replyScope: string;
  #counter = 0;

  constructor(port: Port, input: { deployment: string; epoch: number; digest: Uint8Array; keys: RpcKeys }) {
    this.replyScope = newReplyScope(port);
    this.deployment = input.deployment;
    this.epoch = input.epoch;
    this.digest = input.digest;
    this.keys = input.keys;
  }

  /** Number of the next frame; each is used once. */
  nextCounter(): number {
    this.#counter += 1;
    return this.#counter;
  }
}

interface Target {
  readonly epoch: number;
  readonly routeKey: string;
}

/** Which deployment provides which used API, and the keys to talk to it. */
export class Routes {
  readonly #port: Port;
  readonly #exchange: ExchangeKey;
  #session: Session;
  /**
   * By deployment: one that provides several APIs is one route, since its replay window is one for the whole
   * authorization.
   */
  readonly #made = new Map<string, ProviderRoute>();
  /** Newer epochs than the bindings know, by deployment. */
  readonly #rolled = new Map<string, Target>();

  constructor(port: Port, exchange: ExchangeKey, session: Session) {
    this.#port = port;
    this.#exchange = exchange;
    this.#session = session;
  }

  /** Goes over to a refreshed session; routes are made anew when they are next used. */
  install(session: Session): void {
    this.#session = session;
    this.#made.clear();
    for (const binding of session.bindings.values()) {
      const rolled = this.#rolled.get(binding.deployment);
      if (rolled !== undefined && rolled.epoch <= binding.epoch) this.#rolled.delete(binding.deployment);
    }
  }

  binding(api: string): ApiBinding | undefined {
    return this.#session.bindings.get(api);
  }

  /** The present route to the provider of an API; `undefined` while the API is not bound. */
  route(api: string): ProviderRoute | undefined {
    const binding = this.#session.bindings.get(api);
    if (binding === undefined) return undefined;
    const made = this.#made.get(binding.deployment);
    if (made !== undefined) return made;
    const route = this.#make(binding);
    if (route !== undefined) this.#made.set(binding.deployment, route);
    return route;
  }

  /** The present route to a deployment; `undefined` when it provides no API that is used. */
  routeTo(deployment: string): ProviderRoute | undefined {
    const made = this.#made.get(deployment);
    if (made !== undefined) return made;
    for (const binding of this.#session.bindings.values()) {
      if (binding.deployment === deployment) return this.route(binding.api);
    }
    return undefined;
  }

  /** Takes up a rolled epoch; true when it is newer than what we had. */
  onRoute(notice: RouteNotice): boolean {
    let newer = false;
    for (const binding of this.#session.bindings.values()) {
      if (binding.deployment !== notice.deployment) continue;
      const known = this.#rolled.get(notice.deployment)?.epoch ?? binding.epoch;
      if (notice.epoch <= known) continue;
      newer = true;
    }
    if (!newer) return false;
    this.#made.delete(notice.deployment);
    this.#rolled.set(notice.deployment, { epoch: notice.epoch, routeKey: notice.routeKey });
    return true;
  }

  #make(binding: ApiBinding): ProviderRoute | undefined {
    const target: Target = this.#rolled.get(binding.deployment) ?? binding;
    const peer = fromBase64Url(target.routeKey);
    if (peer === undefined) return undefined;
    const shared = this.#exchange.shared(peer);
    const { digest } = this.#session;
    return new ProviderRoute(this.#port, {
      deployment: binding.deployment,
      epoch: target.epoch,
      digest,
      keys: deriveRpcKeys(this.#port, { shared, digest, epoch: target.epoch }),
    });
  }
}
