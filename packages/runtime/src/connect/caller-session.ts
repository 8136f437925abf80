import {
  type Authorization,
  deriveRpcKeys,
  feedSubject,
  fromBase64Url,
  type Grants,
  operationSubject,
  type Port,
  ReplayWindow,
  type RpcKeys,
  rpcSubject,
} from "@trellis/protocol";

/** The keys of one caller under one route epoch, and what has been seen of its frames. */
export interface CallerEpoch {
  readonly number: number;
  readonly keys: RpcKeys;
  readonly window: ReplayWindow;
}

/**
 * One caller's verified authorization at a provider. Everything that a frame needs is derived once and kept:
 * keys for each epoch, the subjects that it may call.
 */
export class CallerSession {
  readonly authorization: Authorization;
  readonly digest: Uint8Array;
  readonly digestText: string;
  readonly capabilities: readonly string[];
  /** Monotonic ms of the last frame; idle sessions are forgotten first. */
  usedAt = 0;
  revoked = false;
  readonly #allowed: ReadonlySet<string>;
  readonly #epochs = new Map<number, CallerEpoch>();
  readonly #port: Port;

  constructor(port: Port, input: { authorization: Authorization; digestText: string; grants: Grants }) {
    this.#port = port;
    this.authorization = input.authorization;
    this.digestText = input.digestText;
    this.digest = fromBase64Url(input.digestText) ?? new Uint8Array(32);
    this.capabilities = input.grants.capabilities;
    this.#allowed = new Set(
      input.grants.calls.flatMap(({ api, deployment, rpc, feeds, operations }) => [
        ...rpc.map((action) => rpcSubject({ api, deployment, action })),
        ...feeds.map((action) => feedSubject({ api, deployment, action })),
        ...operations.map((action) => operationSubject({ api, deployment, action })),
      ]),
    );
  }

  /** True when the grants include a call on this very subject. */
  allows(subject: string): boolean {
    return this.#allowed.has(subject);
  }

  /** Keys and replay window under an epoch; `undefined` when the caller's exchange key is unusable. */
  epoch(number: number, routeKey: { shared(peer: Uint8Array): Uint8Array }): CallerEpoch | undefined {
    const known = this.#epochs.get(number);
    if (known !== undefined) return known;
    const peer = fromBase64Url(this.authorization.exchangeKey);
    if (peer === undefined) return undefined;
    let shared: Uint8Array;
    try {
      shared = routeKey.shared(peer);
    } catch {
      return undefined; // a point of small order
    }
    const made = {
      number,
      keys: deriveRpcKeys(this.#port, { shared, digest: this.digest, epoch: number }),
      window: new ReplayWindow(),
    };
    // An epoch and its predecessor overlap; older ones are history.
    for (const old of this.#epochs.keys()) if (old < number - 1) this.#epochs.delete(old);
    this.#epochs.set(number, made);
    return made;
  }
}
