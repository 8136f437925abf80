import { request as httpRequest } from "node:http";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { Participant } from "@trellis/contract";
import {
  authorizationDigest,
  type BootstrapAnswer,
  type Denial,
  type HttpProofClaims,
  httpProof,
  inboxPrefix,
  toBase64Url,
} from "@trellis/protocol";
import { nodePort as port } from "@trellis/runtime/node";
import { expect, onTestFinished } from "vitest";
import type { ControlPlane } from "./control-plane.ts";
import { encodePublicNkey } from "./nats/nkeys.ts";

/** A process that connects: its identity, session and exchange keys. */
export function makeProcess(seed?: Uint8Array) {
  return {
    identity: port.ed25519.keyPair(seed),
    session: port.ed25519.keyPair(),
    exchange: port.x25519.keyPair(),
  };
}
export type Process = ReturnType<typeof makeProcess>;

export interface Changes {
  token?: string | null;
  connection?: string;
  issuedAt?: number;
  requestId?: string;
  path?: string;
  origin?: string;
  headers?: Record<string, string>;
  artifact?: boolean;
  proofKey?: Process["identity"];
}

export interface Presented {
  token?: string | undefined;
  sign?: (nonce: string) => Uint8Array;
}

/** The digest that the answer's authorization is known by. */
export function digestOfAnswer(answer: BootstrapAnswer): string {
  return authorizationDigest(port, answer.authorization.payload);
}

/** Opens the broker connection that an answer allows, or one that is wrong in one way. */
export function dial(
  who: Process,
  answer: BootstrapAnswer,
  presented: Presented = {},
): Promise<NatsConnection> {
  const token = "token" in presented ? presented.token : digestOfAnswer(answer);
  const sign = presented.sign ?? ((nonce: string) => who.session.sign(Buffer.from(nonce)));
  return connect({
    servers: answer.transports.tcp,
    inboxPrefix: inboxPrefix(answer.connection),
    reconnect: false,
    authenticator: (nonce) => ({
      nkey: encodePublicNkey("user", who.session.publicKey),
      sig: Buffer.from(sign(nonce ?? "")).toString("base64url"),
      ...(token === undefined ? {} : { auth_token: token }),
    }),
  });
}

/** Whether the broker lets the connection publish there. */
export async function allowed(nats: NatsConnection, subject: string): Promise<boolean> {
  const outcome = await nats.request(subject, "", { timeout: 1000 }).catch((error: unknown) => error);
  return !/permissions violation/i.test(
    outcome instanceof Error ? `${outcome.message} ${String(outcome.cause)}` : "",
  );
}

/** Whether the broker lets the connection subscribe there. */
export async function maySubscribe(nats: NatsConnection, subject: string, queue?: string): Promise<boolean> {
  let refused = false;
  const subscription = nats.subscribe(subject, {
    ...(queue === undefined ? {} : { queue }),
    callback: (failure) => {
      refused ||= failure !== null;
    },
  });
  await nats.flush();
  subscription.unsubscribe();
  return !refused;
}

/** Speaks to one control plane as processes do. */
export class Caller {
  readonly #plane: () => ControlPlane;

  constructor(plane: () => ControlPlane) {
    this.#plane = plane;
  }

  async post(
    who: Process,
    participant: Participant,
    changes: Changes = {},
  ): Promise<{ status: number; body: unknown }> {
    const kind = participant.kind === "service" ? "service" : "client";
    const path = changes.path ?? (kind === "service" ? "/bootstrap/service" : "/bootstrap/client");
    const purpose = path === "/auth/context/refresh" ? "context.refresh" : (`bootstrap.${kind}` as const);
    const requestId = changes.requestId ?? toBase64Url(port.random(16));
    const issuedAt = changes.issuedAt ?? Date.now();
    const sessionKey = toBase64Url(who.session.publicKey);
    const body = Buffer.from(
      JSON.stringify({
        version: 1,
        kind,
        identityKey: toBase64Url(who.identity.publicKey),
        participant: {
          id: participant.id,
          digest: participant.digest,
          ...(changes.artifact === false ? {} : { artifact: participant.artifact }),
        },
        sessionKey,
        exchangeKey: toBase64Url(who.exchange.publicKey),
        ...(changes.connection === undefined ? {} : { connection: changes.connection }),
        requestId,
        issuedAt,
      }),
    );
    const claims: HttpProofClaims = {
      purpose,
      method: "POST",
      path,
      origin: changes.origin ?? this.#plane().url,
      requestId,
      issuedAt,
      body,
      sessionKey,
    };
    const token = changes.token === undefined ? this.#plane().devToken : changes.token;
    const headers = {
      "content-type": "application/json",
      "trellis-identity-proof": httpProof(port, { ...claims, key: changes.proofKey ?? who.identity }),
      "trellis-session-proof": httpProof(port, { ...claims, key: who.session }),
      ...(token === null || token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...changes.headers,
    };
    return this.send(path, headers, body);
  }

  /** Raw, since fetch does not let us choose the Host header. */
  send(
    path: string,
    headers: Record<string, string>,
    body: Uint8Array,
  ): Promise<{ status: number; body: unknown }> {
    return new Promise((resolve, reject) => {
      const sent = httpRequest(new URL(path, this.#plane().url), { method: "POST", headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () => {
          const parsed: unknown = JSON.parse(Buffer.concat(chunks).toString());
          resolve({ status: answer.statusCode ?? 0, body: parsed });
        });
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }

  async admitted(who: Process, participant: Participant, changes: Changes = {}): Promise<BootstrapAnswer> {
    const { status, body } = await this.post(who, participant, changes);
    expect(body).toHaveProperty("authorization");
    expect(status).toBe(200);
    return body as BootstrapAnswer;
  }

  async denied(
    who: Process,
    participant: Participant,
    changes: Changes = {},
  ): Promise<{ status: number; code: string }> {
    const { status, body } = await this.post(who, participant, changes);
    return { status, code: (body as Denial).code };
  }

  async linked(
    who: Process,
    participant: Participant,
  ): Promise<{ answer: BootstrapAnswer; nats: NatsConnection }> {
    const answer = await this.admitted(who, participant);
    const nats = await dial(who, answer);
    onTestFinished(() => nats.close());
    await this.#plane().plane.tracker.reconcile();
    return { answer, nats };
  }
}
