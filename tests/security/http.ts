import { request as httpRequest, type OutgoingHttpHeaders } from "node:http";
import { connect as connectTcp } from "node:net";
import type { AnyParticipant } from "@trellis/contract";
import {
  BOOTSTRAP_PATHS,
  type BootstrapAnswer,
  type ExchangeKey,
  httpProof,
  IDENTITY_PROOF_HEADER,
  type ProofPurpose,
  SESSION_PROOF_HEADER,
  type SigningKey,
  TransportError,
  toBase64Url,
} from "@trellis/protocol";
import { type BootstrapExchange, type BootstrapSource, nodePort as port } from "@trellis/runtime/node";
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

/** Bytes to the control plane as they are, and what it says. */
export function sendRaw(url: string, text: string): Promise<string> {
  const { hostname, port: at } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connectTcp(Number(at), hostname, () => socket.write(text));
    let heard = "";
    socket.on("data", (data) => {
      heard += data.toString();
    });
    socket.on("close", () => resolve(heard));
    socket.on("error", reject);
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
