import { parseStrictJson } from "@trellis/contract";
import {
  type BootstrapRequest,
  BootstrapRequestSchema,
  fromBase64Url,
  IDENTITY_PROOF_HEADER,
  type Port,
  type ProofPurpose,
  SESSION_PROOF_HEADER,
  verifyHttpProof,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import { Compile } from "typebox/compile";
import { foreignSurroundings, holdsDevToken } from "./dev-gate.ts";
import { candidateOrigins } from "./origins.ts";
import { type Refusal, refusal } from "./refusal.ts";
import type { RequestIds } from "./request-ids.ts";
import { isExchangeKey, isSigningKey } from "./weak-keys.ts";

const windowMs = 30_000;
const compiled = Compile(BootstrapRequestSchema);

/** One HTTP request as the stages see it. */
export interface BootstrapCall {
  path: string;
  purpose: ProofPurpose;
  /** The raw body: proofs cover its exact bytes. */
  body: Uint8Array;
  /** Value of a header, by its lower-case name. */
  header(name: string): string | undefined;
  headerNames(): readonly string[];
}

export interface AuthenticateDeps {
  port: Port;
  requestIds: RequestIds;
  /** The origins under which clients reach us. */
  origins(): readonly string[];
  /** Requests from before this process started are refused: their ids are not known to be unused. */
  startedAt: number;
  /** Set in dev mode only. */
  devToken: string | undefined;
}

/** A request whose sender holds the identity and the session key, sent once, now, to us. */
export interface AuthenticatedCall {
  request: BootstrapRequest;
  /** Whether it carried the dev token. Never true outside of dev mode. */
  dev: boolean;
}

/** Surroundings, form, time, proofs, single use: in this order, each a stage that can refuse. */
export function authenticate(
  deps: AuthenticateDeps,
  call: BootstrapCall,
  now: number,
): Result<AuthenticatedCall, Refusal> {
  const dev = checkSurroundings(deps, call);
  if (dev.isErr()) return err(dev.error);
  const request = readRequest(call.body);
  if (request === undefined || !isFor(call.purpose, request) || !hasKeys(request))
    return err(refusal("trellis.bootstrap.invalid_request"));
  if (Math.abs(now - request.issuedAt) > windowMs || request.issuedAt < deps.startedAt) {
    return err(refusal("trellis.bootstrap.clock_skew"));
  }
  if (!provesBoth(deps, call, request)) return err(refusal("trellis.bootstrap.proof_invalid"));
  if (!isExchangeKey(deps.port, request.exchangeKey))
    return err(refusal("trellis.bootstrap.invalid_request"));
  const verdict = deps.requestIds.use(request.requestId, now);
  if (verdict === "replayed") return err(refusal("trellis.bootstrap.request_replayed"));
  if (verdict === "full") return err(refusal("trellis.bootstrap.rate_limited", { retryAfterMs: 1000 }));
  return ok({ request, dev: dev.value });
}

function checkSurroundings(deps: AuthenticateDeps, call: BootstrapCall): Result<boolean, Refusal> {
  if (deps.devToken === undefined) return ok(false);
  const surroundings = {
    host: call.header("host"),
    origin: call.header("origin"),
    names: call.headerNames(),
  };
  const foreign = foreignSurroundings(surroundings, deps.origins());
  if (foreign !== undefined) {
    return err(refusal("trellis.bootstrap.origin_refused", { hint: foreign }));
  }
  const header = call.header("authorization");
  if (header === undefined) return ok(false);
  if (holdsDevToken(header, deps.devToken)) return ok(true);
  return err(
    refusal("trellis.bootstrap.dev_token_required", { hint: "The token is not that of this dev platform." }),
  );
}

/** Strict: duplicate members, unknown members and anything but the schema are refused. */
function readRequest(body: Uint8Array): BootstrapRequest | undefined {
  try {
    const value: unknown = parseStrictJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return compiled.Check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A proof by a key under which anything is signed would be none. */
function hasKeys({ identityKey, sessionKey }: BootstrapRequest): boolean {
  return isSigningKey(identityKey) && isSigningKey(sessionKey);
}

/** Each path takes its kind of request; a refresh names the connection that it is for. */
function isFor(purpose: ProofPurpose, request: BootstrapRequest): boolean {
  if (purpose === "context.refresh") return request.connection !== undefined;
  return purpose === (request.kind === "service" ? "bootstrap.service" : "bootstrap.client");
}

/** Both keys signed these very bytes, for this path and one of our origins. */
function provesBoth(deps: AuthenticateDeps, call: BootstrapCall, request: BootstrapRequest): boolean {
  const identityProof = call.header(IDENTITY_PROOF_HEADER);
  const sessionProof = call.header(SESSION_PROOF_HEADER);
  const identityKey = fromBase64Url(request.identityKey);
  const sessionKey = fromBase64Url(request.sessionKey);
  if (identityProof === undefined || sessionProof === undefined) return false;
  if (identityKey === undefined || sessionKey === undefined) return false;
  const { requestId, issuedAt } = request;
  const { body, path, purpose } = call;
  return candidateOrigins(deps.origins(), call.header("host")).some((origin) => {
    const proved = {
      purpose,
      method: "POST",
      path,
      origin,
      requestId,
      issuedAt,
      body,
      sessionKey: request.sessionKey,
    };
    return (
      verifyHttpProof(deps.port, { ...proved, publicKey: identityKey, proof: identityProof }) &&
      verifyHttpProof(deps.port, { ...proved, publicKey: sessionKey, proof: sessionProof })
    );
  });
}
