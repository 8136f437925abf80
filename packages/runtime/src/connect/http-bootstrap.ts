import { compileSchema } from "@trellis/contract";
import {
  BOOTSTRAP_PATHS,
  type BootstrapAnswer,
  BootstrapAnswerSchema,
  type Denial,
  DenialSchema,
  httpProof,
  IDENTITY_PROOF_HEADER,
  isFinalDenial,
  newId,
  type ProofPurpose,
  SESSION_PROOF_HEADER,
  TransportError,
  toBase64Url,
} from "@trellis/protocol";
import type { HttpAnswer, HttpPost, Platform } from "../platform/platform.ts";
import type { BootstrapExchange, BootstrapSource } from "./bootstrap-source.ts";
import type { ServerClock } from "./server-clock.ts";

export interface HttpBootstrapOptions {
  readonly platform: Pick<Platform, "port" | "post">;
  readonly clock: ServerClock;
  readonly trellisUrl: string;
  readonly devToken?: string | undefined;
  /** What the participant is; decides the path of the first exchange. */
  readonly kind: "service" | "client";
}

const maxAnswerBytes = 8 * 1024 * 1024;

/** Errors of a bootstrap that no retry can mend carry this mark. */
const finalRefusals = new WeakSet<TransportError>();

/** True when the control plane's answer is final: revoked, disabled, removed, another participant. */
export function isFinalRefusal(error: TransportError): boolean {
  return finalRefusals.has(error);
}

/** Marks an error as final; for bootstrap sources other than HTTP. */
export function markFinalRefusal(error: TransportError): TransportError {
  finalRefusals.add(error);
  return error;
}

/**
 * Asks the control plane over HTTP, with proofs by the identity and the session key over the exact body.
 * Every answer corrects the server clock; a clock so wrong that the proof was refused is corrected from the
 * refusal and the exchange repeated once.
 */
export function httpBootstrap(options: HttpBootstrapOptions): BootstrapSource {
  const base = checkedOrigin(options.trellisUrl);
  const exchange = async (
    purpose: ProofPurpose,
    path: string,
    input: BootstrapExchange,
  ): Promise<BootstrapAnswer> => {
    const first = await post(options, { base, purpose, path, input });
    if (first.kind === "answer") return first.answer;
    if (first.denial.code !== "trellis.bootstrap.clock_skew") throw denied(options, first);
    const second = await post(options, { base, purpose, path, input });
    if (second.kind === "answer") return second.answer;
    throw denied(options, second);
  };
  return {
    bootstrap: (input) => exchange(`bootstrap.${options.kind}`, BOOTSTRAP_PATHS[options.kind], input),
    refresh: (input) => exchange("context.refresh", BOOTSTRAP_PATHS.refresh, input),
  };
}

interface Post {
  readonly base: URL;
  readonly purpose: ProofPurpose;
  readonly path: string;
  readonly input: BootstrapExchange;
}

type Outcome =
  | { readonly kind: "answer"; readonly answer: BootstrapAnswer }
  | { readonly kind: "denial"; readonly status: number; readonly denial: Denial };

async function post(options: HttpBootstrapOptions, { base, purpose, path, input }: Post): Promise<Outcome> {
  const { platform, clock } = options;
  const { port } = platform;
  const requestId = newId(port, clock.now());
  const issuedAt = clock.now();
  const body = new TextEncoder().encode(JSON.stringify({ ...input.request, requestId, issuedAt }));
  const sessionKey = toBase64Url(input.keys.session.publicKey);
  const proof = (key: typeof input.keys.session) =>
    httpProof(port, {
      purpose,
      method: "POST",
      path,
      origin: base.origin,
      requestId,
      issuedAt,
      body,
      sessionKey,
      key,
    });
  const sentAt = clock.monotonic();
  const { status, text } = await send(platform, new URL(path, base), {
    body,
    signal: input.signal,
    maxBytes: maxAnswerBytes,
    headers: {
      "content-type": "application/json",
      [IDENTITY_PROOF_HEADER]: proof(input.keys.identity),
      [SESSION_PROOF_HEADER]: proof(input.keys.session),
      ...(options.devToken === undefined ? {} : { authorization: `Bearer ${options.devToken}` }),
    },
  });
  const receivedAt = clock.monotonic();
  const content = readJson(text);
  const isOk = status >= 200 && status < 300;
  if (isOk && isAnswer(content)) {
    clock.adjust(content.serverTime, sentAt, receivedAt);
    return { kind: "answer", answer: content };
  }
  if (!isOk && isDenial(content)) {
    clock.adjust(content.serverTime, sentAt, receivedAt);
    return { kind: "denial", status, denial: content };
  }
  throw new TransportError({
    code: "trellis.bootstrap.unreachable",
    message: `${base.origin} answered ${status} with something that is not Trellis.`,
    hint: "Check that TRELLIS_URL is the address of a Trellis control plane of this version.",
    context: { url: base.origin, status },
  });
}

function isAnswer(content: unknown): content is BootstrapAnswer {
  return compileSchema(BootstrapAnswerSchema).issues(content) === undefined;
}

function isDenial(content: unknown): content is Denial {
  return compileSchema(DenialSchema).issues(content) === undefined;
}

async function send(platform: Pick<Platform, "post">, url: URL, request: HttpPost): Promise<HttpAnswer> {
  try {
    return await platform.post(url, request);
  } catch (cause) {
    request.signal.throwIfAborted();
    throw new TransportError({
      code: "trellis.bootstrap.unreachable",
      message: `The control plane at ${url.origin} does not answer.`,
      hint: "Start it with `trellis dev` (or `trellis server`), or correct TRELLIS_URL.",
      context: { url: url.origin },
      cause,
    });
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function denied(
  options: HttpBootstrapOptions,
  { status, denial }: { status: number; denial: Denial },
): TransportError {
  const final = isFinalDenial(status, denial.code);
  const error = new TransportError({
    code: denial.code,
    message: denial.message,
    hint: denial.hint ?? "Ask the operator of this platform; `trellis doctor` shows what it sees.",
    context: { url: checkedOrigin(options.trellisUrl).origin, status },
  });
  return final ? markFinalRefusal(error) : error;
}

/** Parses the platform's address; https unless the host is loopback, so that no proof crosses a network bare. */
export function checkedOrigin(trellisUrl: string): URL {
  let url: URL;
  try {
    url = new URL(trellisUrl);
  } catch (cause) {
    throw invalidUrl(`"${trellisUrl}" is not a URL.`, cause);
  }
  const loopback = ["localhost", "127.0.0.1", "[::1]"].includes(url.hostname);
  if (url.protocol === "https:" || (url.protocol === "http:" && loopback)) return url;
  throw invalidUrl(`${url.origin} is neither https nor on this machine.`);
}

function invalidUrl(message: string, cause?: unknown): TransportError {
  return markFinalRefusal(
    new TransportError({
      code: "trellis.runtime.invalid_url",
      message,
      hint: "Set TRELLIS_URL to an https address, or to http://127.0.0.1:<port> for a platform on this machine.",
      ...(cause === undefined ? {} : { cause }),
    }),
  );
}
