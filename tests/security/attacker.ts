import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { connect, type Msg, type NatsConnection, PermissionViolationError } from "@nats-io/transport-node";
import type { AnyParticipant } from "@trellis/contract";
import {
  type ApiBinding,
  authorizationDigest,
  BOOTSTRAP_PATHS,
  type BootstrapAnswer,
  type CallItem,
  decodeReplyFrame,
  deriveRpcKeys,
  type ExchangeKey,
  encodeRequestFrame,
  type FrameHeader,
  fromBase64Url,
  httpProof,
  IDENTITY_PROOF_HEADER,
  inboxPrefix,
  openRouteKey,
  type ProofPurpose,
  type RpcKeys,
  replySubject,
  rpcSubject,
  SESSION_PROOF_HEADER,
  type SigningKey,
  TransportError,
  toBase64Url,
  verifyReplyFrame,
} from "@trellis/protocol";
import {
  type BootstrapExchange,
  type BootstrapSource,
  nodePlatform,
  type Platform,
  nodePort as port,
  userNkey,
} from "@trellis/runtime/node";
import type { TestTrellis } from "@trellis/testing";

/** The three key pairs of a process. */
export interface Keys {
  readonly identity: SigningKey;
  readonly session: SigningKey;
  readonly exchange: ExchangeKey;
}

export function makeKeys(): Keys {
  return {
    identity: port.ed25519.keyPair(),
    session: port.ed25519.keyPair(),
    exchange: port.x25519.keyPair(),
  };
}

type Body = Record<string, unknown>;

/** Ways in which a bootstrap request can differ from an honest one. */
export interface BootstrapChanges {
  readonly path?: string;
  readonly purpose?: ProofPurpose;
  /** Origin that the proofs name. */
  readonly origin?: string;
  readonly issuedAt?: number;
  readonly requestId?: string;
  readonly connection?: string;
  /** `null` sends none. */
  readonly token?: string | null;
  readonly headers?: OutgoingHttpHeaders;
  /** Changes the body before the proofs are made. */
  readonly body?: (body: Body) => Body;
  /** Changes the bytes after the proofs were made. */
  readonly tamper?: (body: string) => string | Uint8Array;
  readonly identityProofKey?: SigningKey;
  readonly sessionProofKey?: SigningKey;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
  /** The denial's code, when it is one. */
  readonly code: string | undefined;
}

/** One request to the control plane. Not by fetch, which does not let anybody choose the Host header. */
export function send(
  url: string,
  options: { method?: string; headers?: OutgoingHttpHeaders; body?: string | Uint8Array } = {},
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const { method = "POST", headers = {}, body } = options;
    const sent = httpRequest(url, { method, headers, agent: false }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text, code: codeOf(text) });
      });
    });
    sent.on("error", reject);
    sent.end(body);
  });
}

function codeOf(text: string): string | undefined {
  try {
    const content = JSON.parse(text) as { code?: unknown };
    return typeof content.code === "string" ? content.code : undefined;
  } catch {
    return undefined;
  }
}

/** A bootstrap request that is honest but for the changes: what somebody on its way would hold. */
export function prepared(
  trellis: { readonly url: string; readonly devToken: string },
  who: { readonly keys: Keys; readonly participant: AnyParticipant },
  changes: BootstrapChanges = {},
): { path: string; headers: OutgoingHttpHeaders; body: string | Uint8Array } {
  const { keys, participant } = who;
  const kind = participant.kind === "service" ? "service" : "client";
  const path = changes.path ?? BOOTSTRAP_PATHS[kind];
  const sessionKey = toBase64Url(keys.session.publicKey);
  const honest: Body = {
    version: 1,
    kind,
    identityKey: toBase64Url(keys.identity.publicKey),
    participant: { id: participant.id, digest: participant.digest, artifact: participant.artifact },
    sessionKey,
    exchangeKey: toBase64Url(keys.exchange.publicKey),
    ...(changes.connection === undefined ? {} : { connection: changes.connection }),
    requestId: changes.requestId ?? toBase64Url(port.random(16)),
    issuedAt: changes.issuedAt ?? Date.now(),
  };
  const claimed = changes.body?.(honest) ?? honest;
  const text = JSON.stringify(claimed);
  const claims = {
    purpose: changes.purpose ?? (`bootstrap.${kind}` as const),
    method: "POST",
    path,
    origin: changes.origin ?? trellis.url,
    requestId: String(claimed["requestId"]),
    issuedAt: Number(claimed["issuedAt"]),
    body: Buffer.from(text),
    sessionKey: String(claimed["sessionKey"]),
  };
  const token = changes.token === undefined ? trellis.devToken : changes.token;
  return {
    path,
    headers: {
      "content-type": "application/json",
      [IDENTITY_PROOF_HEADER]: httpProof(port, { ...claims, key: changes.identityProofKey ?? keys.identity }),
      [SESSION_PROOF_HEADER]: httpProof(port, { ...claims, key: changes.sessionProofKey ?? keys.session }),
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...changes.headers,
    },
    body: changes.tamper?.(text) ?? text,
  };
}

/** Sends a bootstrap request that is honest but for the changes. */
export function bootstrap(
  trellis: { readonly url: string; readonly devToken: string },
  who: { readonly keys: Keys; readonly participant: AnyParticipant },
  changes: BootstrapChanges = {},
): Promise<HttpAnswer> {
  const { path, headers, body } = prepared(trellis, who, changes);
  return send(`${trellis.url}${path}`, { headers, body });
}

/**
 * Bootstraps as `participant`, whatever contract the process was built with, and shows the process a changed
 * answer: the way past the checks that an honest runtime makes on its own side.
 */
export function tamperedSource(
  trellis: TestTrellis,
  input: { participant: AnyParticipant; change(answer: BootstrapAnswer): BootstrapAnswer },
): BootstrapSource {
  const ask = async (exchange: BootstrapExchange, changes: BootstrapChanges): Promise<BootstrapAnswer> => {
    const who = { keys: exchange.keys, participant: input.participant };
    const { status, text, code = "" } = await bootstrap(trellis, who, changes);
    if (status === 200) return input.change(JSON.parse(text) as BootstrapAnswer);
    throw new TransportError({ code, message: `refused: ${text}` });
  };
  return {
    bootstrap: (exchange) => ask(exchange, {}),
    refresh: (exchange) =>
      ask(exchange, {
        path: BOOTSTRAP_PATHS.refresh,
        purpose: "context.refresh",
        ...(exchange.request.connection === undefined ? {} : { connection: exchange.request.connection }),
      }),
  };
}

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

const refusals = new WeakMap<NatsConnection, Map<string, number>>();

/** How often the broker has refused what the connection published, by subject. */
function refusalsOf(nats: NatsConnection): ReadonlyMap<string, number> {
  const known = refusals.get(nats);
  if (known !== undefined) return known;
  const counts = new Map<string, number>();
  refusals.set(nats, counts);
  void (async () => {
    for await (const status of nats.status()) {
      if (status.type !== "error" || !(status.error instanceof PermissionViolationError)) continue;
      const { operation, subject } = status.error;
      if (operation === "publish") counts.set(subject, (counts.get(subject) ?? 0) + 1);
    }
  })();
  return counts;
}

/** Whether the broker lets the connection publish there, under a reply subject that may be somebody else's. */
export async function mayPublish(
  nats: NatsConnection,
  subject: string,
  message: { body?: string; reply?: string } = {},
): Promise<boolean> {
  const counts = refusalsOf(nats);
  const before = counts.get(subject) ?? 0;
  nats.publish(subject, message.body ?? "", message.reply === undefined ? {} : { reply: message.reply });
  // The server answers in order: a refusal comes before the pong. Its listener is told a microtask or two later.
  await nats.flush();
  await new Promise(setImmediate);
  return (counts.get(subject) ?? 0) === before;
}

/** Whether the broker lets the connection subscribe there. */
export async function maySubscribe(nats: NatsConnection, subject: string, queue?: string): Promise<boolean> {
  let refused = false;
  const subscription = nats.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (failure) => {
      refused ||= failure instanceof PermissionViolationError;
    },
  });
  await nats.flush();
  subscription.unsubscribe();
  await nats.flush();
  return !refused;
}

export interface Sent {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
}

/** Listens in on an honest process: what it publishes and receives, and its connection. */
export interface Wiretap {
  readonly platform: Partial<Platform>;
  readonly sent: readonly Sent[];
  readonly nats: NatsConnection;
  /** The last message that was sent to a subject beginning so. */
  last(prefix: string): Sent;
  /** Hears everything that arrives, before the process does. */
  received(listener: (message: Msg) => void): void;
  /** Sees everything that leaves; what it takes (by answering true) does not. */
  intercept(take: (message: Sent) => boolean): void;
}

export function wiretap(): Wiretap {
  const sent: Sent[] = [];
  let connection: NatsConnection | undefined;
  let hear: (message: Msg) => void = () => {};
  let take: (message: Sent) => boolean = () => false;
  const tap = (nats: NatsConnection): NatsConnection => {
    const publish = nats.publish.bind(nats);
    const subscribe = nats.subscribe.bind(nats);
    nats.publish = (subject, payload, more) => {
      const data = payload instanceof Uint8Array ? payload.slice() : Buffer.from(payload ?? "");
      const message = { subject, reply: more?.reply ?? "", data };
      sent.push(message);
      if (!take(message)) publish(subject, payload, more);
    };
    nats.subscribe = (subject, options) => {
      const callback = options?.callback;
      if (callback === undefined) return subscribe(subject, options);
      return subscribe(subject, {
        ...options,
        callback: (error, message) => {
          if (error === null) hear(message);
          callback(error, message);
        },
      });
    };
    connection = nats;
    return nats;
  };
  return {
    platform: { dial: async (options) => tap(await nodePlatform.dial(options)) },
    sent,
    get nats() {
      if (connection === undefined) throw new Error("Nobody has dialled.");
      return connection;
    },
    last(prefix) {
      const found = sent.findLast(({ subject }) => subject.startsWith(prefix));
      if (found === undefined) throw new Error(`Nothing was sent to ${prefix}.`);
      return found;
    },
    received(listener) {
      hear = listener;
    },
    intercept(taker) {
      take = taker;
    },
  };
}
