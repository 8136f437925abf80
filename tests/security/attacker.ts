import { connect, type Msg, type NatsConnection } from "@nats-io/transport-node";
import type { AnyParticipant } from "@trellis/contract";
import {
  type ApiBinding,
  authorizationDigest,
  type BootstrapAnswer,
  type CallItem,
  decodeReplyFrame,
  deriveRpcKeys,
  type ExchangeKey,
  encodeRequestFrame,
  type FrameHeader,
  fromBase64Url,
  inboxPrefix,
  openRouteKey,
  type RpcKeys,
  replySubject,
  rpcSubject,
  toBase64Url,
  verifyReplyFrame,
} from "@trellis/protocol";
import { nodePort as port, userNkey } from "@trellis/runtime/node";
import { type BootstrapChanges, bootstrap, type Keys, makeKeys } from "./http.ts";

/** What a raw client shows the broker; everything can be wrong. */
export interface Presented {
  readonly nkey?: string;
  readonly token?: string | undefined;
  sign?(nonce: Uint8Array): Uint8Array;
}

/** Dials the broker without the runtime. Rejects when the broker refuses. */
export function dialRaw(
  keys: Keys,
  answer: BootstrapAnswer,
  presented: Presented = {},
): Promise<NatsConnection> {
  const token = "token" in presented ? presented.token : digestOf(answer);
  const sign = presented.sign ?? ((nonce: Uint8Array) => keys.session.sign(nonce));
  return connect({
    servers: [...answer.transports.tcp],
    inboxPrefix: `${inboxPrefix(answer.connection)}.j`,
    reconnect: false,
    timeout: 5_000,
    authenticator: (nonce) => ({
      nkey: presented.nkey ?? userNkey(keys.session.publicKey),
      sig: toBase64Url(sign(Buffer.from(nonce ?? ""))),
      ...(token === undefined ? {} : { auth_token: token }),
    }),
  });
}

export function digestOf(answer: BootstrapAnswer): string {
  return authorizationDigest(port, answer.authorization.payload);
}

/** A request frame and where it goes. */
export interface Shot {
  readonly subject: string;
  readonly reply: string;
  readonly bytes: Uint8Array;
}

/** Ways in which a frame can differ from an honest one; all of it is what the MAC is made over. */
export interface ShotChanges {
  readonly header?: Partial<FrameHeader>;
  readonly keys?: RpcKeys;
  readonly subject?: string;
  readonly reply?: string;
  readonly calls?: readonly CallItem[];
  readonly remainingMs?: number;
}

/** What came back for a shot. */
export type Echo =
  | { readonly kind: "refusal"; readonly code: string }
  | { readonly kind: "results"; readonly authentic: boolean; readonly results: readonly EchoResult[] }
  | { readonly kind: "other"; readonly status: number | undefined };

export interface EchoResult {
  readonly requestId: Uint8Array;
  readonly status: number;
  readonly payload: unknown;
}

/**
 * Somebody on the broker with a participant's honest permissions and no runtime of ours in between: says and
 * hears whatever the broker lets through.
 */
export class Attacker implements AsyncDisposable {
  readonly keys: Keys;
  readonly answer: BootstrapAnswer;
  readonly nats: NatsConnection;
  readonly digest: Uint8Array;
  readonly digestText: string;
  readonly #heard = new Map<string, ((echo: Echo) => void)[]>();
  #counter = 0;
  #next = 0;

  private constructor(keys: Keys, answer: BootstrapAnswer, nats: NatsConnection) {
    this.keys = keys;
    this.answer = answer;
    this.nats = nats;
    this.digestText = digestOf(answer);
    this.digest = fromBase64Url(this.digestText) ?? new Uint8Array(32);
    nats.subscribe(`${this.inbox}.r.>`, {
      callback: (_, message) => {
        for (const listener of this.#heard.get(message.subject) ?? []) listener(this.#read(message));
      },
    });
  }

  /** Bootstraps as a participant and connects. */
  static async join(
    trellis: { readonly url: string; readonly devToken: string },
    participant: AnyParticipant,
    keys: Keys = makeKeys(),
    changes: BootstrapChanges = {},
  ): Promise<Attacker> {
    const { status, text } = await bootstrap(trellis, { keys, participant }, changes);
    if (status !== 200) throw new Error(`The bootstrap was refused: ${text}`);
    const answer = JSON.parse(text) as BootstrapAnswer;
    return new Attacker(keys, answer, await dialRaw(keys, answer));
  }

  get inbox(): string {
    return inboxPrefix(this.answer.connection);
  }

  get deployment(): string {
    return this.answer.assignment.deployment;
  }

  binding(api: string): ApiBinding {
    const found = this.answer.bindings
      .map(({ payload }) => JSON.parse(payload) as ApiBinding)
      .find((binding) => binding.api === api);
    if (found === undefined) throw new Error(`${api} is not bound.`);
    return found;
  }

  /** MAC keys of this connection with the provider of an API; `digest` may be another's. */
  keysFor(api: string, digest = this.digest): RpcKeys {
    const { routeKey, epoch } = this.binding(api);
    const shared = this.keys.exchange.shared(fromBase64Url(routeKey) ?? new Uint8Array());
    return deriveRpcKeys(port, { shared, digest, epoch });
  }

  /** The route secrets that the platform sealed to this service. */
  routeKeys(): ReadonlyMap<number, ExchangeKey> {
    const opened = this.answer.route.map((sealed): [number, ExchangeKey] => [
      sealed.epoch,
      port.x25519.keyPair(
        openRouteKey(port, {
          sealed,
          deployment: this.deployment,
          authorization: this.digestText,
          exchange: this.keys.exchange,
        }),
      ),
    ]);
    return new Map(opened);
  }

  reply(): string {
    this.#next += 1;
    return replySubject(this.answer.connection, `n${this.#next}`);
  }

  /** Number of the next frame of this authorization. */
  nextCounter(): number {
    this.#counter += 1;
    return this.#counter;
  }

  /** A request frame for an action of a used API, honest but for the changes. */
  shot(api: string, action: string, input: unknown, changes: ShotChanges = {}): Shot {
    const binding = this.binding(api);
    const counter = this.nextCounter();
    const subject = changes.subject ?? rpcSubject({ api, deployment: binding.deployment, action });
    const reply = changes.reply ?? this.reply();
    const bytes = encodeRequestFrame(port, {
      header: {
        epoch: binding.epoch,
        digest: this.digest,
        counter,
        issuedAt: Date.now(),
        ...changes.header,
      },
      calls: changes.calls ?? [
        {
          requestId: port.random(16),
          remainingMs: changes.remainingMs ?? 10_000,
          payload: JSON.stringify(input),
        },
      ],
      subject,
      reply,
      key: (changes.keys ?? this.keysFor(api)).request,
    });
    return { subject, reply, bytes };
  }

  fire(shot: Shot): void {
    this.nats.publish(shot.subject, shot.bytes, { reply: shot.reply });
  }

  /** Fires and waits for the first thing that comes back and is not a receipt; `undefined`: nothing did. */
  ask(shot: Shot, timeoutMs = 3_000): Promise<Echo | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), timeoutMs);
      this.hear(shot.reply, (echo) => {
        if (echo.kind === "results" && echo.results.every(({ status }) => status === 2)) return;
        clearTimeout(timer);
        resolve(echo);
      });
      this.fire(shot);
    });
  }

  hear(reply: string, listener: (echo: Echo) => void): void {
    this.#heard.set(reply, [...(this.#heard.get(reply) ?? []), listener]);
  }

  close(): Promise<void> {
    return this.nats.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #read(message: Msg): Echo {
    const decoded = decodeReplyFrame(port, message.data);
    if (decoded === undefined) return { kind: "other", status: message.headers?.code };
    if (decoded.kind === "refusal") return decoded;
    const authentic = this.answer.bindings.some(({ payload }) =>
      verifyReplyFrame(port, {
        frame: decoded,
        reply: message.subject,
        key: this.keysFor((JSON.parse(payload) as ApiBinding).api).reply,
      }),
    );
    const results = decoded.results.map(({ requestId, status, payload }) => ({
      requestId: Uint8Array.from(requestId),
      status,
      payload: JSON.parse(Buffer.from(payload).toString()) as unknown,
    }));
    return { kind: "results", authentic, results };
  }
}
