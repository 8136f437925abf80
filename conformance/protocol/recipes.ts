// How the outputs of the vectors follow from their inputs. Bytes are hexadecimal, unless a field is base64url text
// on the wire too.

import {
  actionToken,
  apiToken,
  authorizationGetSubject,
  type CallItem,
  CONTROL_KINDS,
  controlSubject,
  decodeControlFrame,
  decodeJson,
  decodeReplyFrame,
  decodeRequestFrame,
  decodeToken,
  deriveRpcKeys,
  encodeControlFrame,
  encodeJson,
  encodeRefusal,
  encodeReplyFrame,
  encodeRequestFrame,
  encodeToken,
  eventFilter,
  eventSubject,
  feedSubject,
  grantsGetSubject,
  type HttpProofClaims,
  healthSubject,
  httpProof,
  inboxPrefix,
  jetStreamReplySubject,
  noticeGetSubject,
  noticeSubject,
  operationSubject,
  type Port,
  type RefusalCode,
  type ResultItem,
  replySubject,
  revocationNoticeId,
  rpcSubject,
  storedNoticeSubject,
  toBase64Url,
  toHex,
  transcript,
  utf8Bytes,
} from "@trellis/protocol";
import { eventRecipes } from "../events/recipes.ts";
import { feedRecipes } from "../feeds/recipes.ts";
import { jobRecipes } from "../jobs/recipes.ts";
import { kvRecipes } from "../kv/recipes.ts";
import { storeRecipes } from "../store/recipes.ts";
import { bytes, type Recipes, recipe } from "./recipe.ts";
import { errorRecipes } from "./recipes-errors.ts";
import { statementRecipes } from "./recipes-statements.ts";

const hexOf = (value: Uint8Array | undefined): string | null => (value === undefined ? null : toHex(value));

const primitives: Recipes = {
  sha256: recipe((port, input: { data: string }) => toHex(port.sha256(bytes(input.data)))),
  mac: recipe((port, input: { key: string; first: string; second: string }) =>
    toHex(port.mac(port.macKey(bytes(input.key)), bytes(input.first), bytes(input.second))),
  ),
  hkdf: recipe((port, input: { secret: string; salt: string; info: string; length: number }) =>
    toHex(port.hkdf({ ...input, secret: bytes(input.secret), salt: bytes(input.salt) })),
  ),
  "ed25519.sign": recipe((port, input: { seed: string; data: string }) => {
    const key = port.ed25519.keyPair(bytes(input.seed));
    return { publicKey: toHex(key.publicKey), signature: toHex(key.sign(bytes(input.data))) };
  }),
  "ed25519.verify": recipe((port, input: { publicKey: string; data: string; signature: string }) =>
    port.ed25519.verify(bytes(input.publicKey), bytes(input.data), bytes(input.signature)),
  ),
  x25519: recipe((port, input: { secret: string; peer: string }) => {
    const key = port.x25519.keyPair(bytes(input.secret));
    try {
      return { publicKey: toHex(key.publicKey), shared: toHex(key.shared(bytes(input.peer))) };
    } catch {
      return { publicKey: toHex(key.publicKey), shared: null };
    }
  }),
  "aes.seal": recipe((port, input: { key: string; nonce: string; data: string; associated: string }) =>
    toHex(port.aesGcm.seal(sealInput(input))),
  ),
  "aes.open": recipe((port, input: { key: string; nonce: string; data: string; associated: string }) =>
    hexOf(port.aesGcm.open(sealInput(input))),
  ),
};

function sealInput(input: { key: string; nonce: string; data: string; associated: string }) {
  return {
    key: bytes(input.key),
    nonce: bytes(input.nonce),
    data: bytes(input.data),
    associated: bytes(input.associated),
  };
}

const subjects: Recipes = {
  encodeToken: recipe((_port, input: { text: string }) => encodeToken(input.text)),
  decodeToken: recipe((_port, input: { token: string }) => decodeToken(input.token) ?? null),
  apiToken: recipe((_port, input: { id: string }) => apiToken(input.id)),
  actionToken: recipe((_port, input: { name: string }) => actionToken(input.name)),
  rpc: recipe((_port, input: Parameters<typeof rpcSubject>[0]) => rpcSubject(input)),
  feed: recipe((_port, input: Parameters<typeof feedSubject>[0]) => feedSubject(input)),
  operation: recipe((_port, input: Parameters<typeof operationSubject>[0]) => operationSubject(input)),
  event: recipe((_port, input: Parameters<typeof eventSubject>[0]) => eventSubject(input)),
  eventFilter: recipe((_port, input: { api: string; action: string; params: (string | null)[] }) =>
    eventFilter({ ...input, params: input.params.map((param) => param ?? undefined) }),
  ),
  connection: recipe((_port, input: { kind: string; deployment: string; connection: string; n: string }) => ({
    control: controlSubject(input.deployment, input.connection),
    inbox: inboxPrefix(input.connection),
    reply: replySubject(input.connection, input.n),
    jetStreamReply: jetStreamReplySubject(input.connection, input.n),
    health: healthSubject(input),
  })),
  revocation: recipe((_port, input: { kind: string; id: string }) => {
    const id = revocationNoticeId(input);
    return {
      live: noticeSubject("revocation", id),
      stored: storedNoticeSubject("revocation", id),
      get: noticeGetSubject("revocation", id),
    };
  }),
  byDigest: recipe((_port, input: { digest: string }) => ({
    authorization: authorizationGetSubject(input.digest),
    grants: grantsGetSubject(input.digest),
  })),
};

const transcripts: Recipes = {
  transcript: recipe((_port, input: { label: string; fields: ({ text: string } | { hex: string })[] }) =>
    toHex(
      transcript(
        input.label,
        ...input.fields.map((field) => ("text" in field ? field.text : bytes(field.hex))),
      ),
    ),
  ),
  rpcKeys: recipe(
    (port, input: { caller: string; route: string; digest: string; epoch: number; data: string }) => {
      const route = port.x25519.keyPair(bytes(input.route));
      const shared = port.x25519.keyPair(bytes(input.caller)).shared(route.publicKey);
      const keys = deriveRpcKeys(port, { shared, digest: bytes(input.digest), epoch: input.epoch });
      const tag = (key: typeof keys.request): string =>
        toHex(port.mac(key, bytes(input.data), new Uint8Array(0)));
      return { shared: toHex(shared), requestTag: tag(keys.request), replyTag: tag(keys.reply) };
    },
  ),
  httpProof: recipe(
    (port, input: Omit<HttpProofClaims, "body" | "sessionKey"> & { seed: string; body: string }) => {
      const key = port.ed25519.keyPair(bytes(input.seed));
      const sessionKey = toBase64Url(key.publicKey);
      return {
        sessionKey,
        proof: httpProof(port, { ...input, body: utf8Bytes(input.body), sessionKey, key }),
      };
    },
  ),
};

interface HeaderInput {
  readonly epoch: number;
  readonly digest: string;
  readonly counter: number;
  readonly issuedAt: number;
}

interface FrameInput {
  readonly header: HeaderInput;
  readonly subject: string;
  readonly reply: string;
  readonly key: string;
}

type CallInput = Omit<CallItem, "requestId" | "trace" | "origin"> & {
  requestId: string;
  trace?: string;
  origin?: string;
};

const frames: Recipes = {
  request: recipe((port, input: FrameInput & { calls: CallInput[] }) =>
    toHex(
      encodeRequestFrame(port, {
        ...placed(port, input),
        calls: input.calls.map(({ requestId, trace, origin, ...call }) => ({
          ...call,
          requestId: bytes(requestId),
          ...(trace !== undefined && { trace: bytes(trace) }),
          ...(origin !== undefined && { origin: bytes(origin) }),
        })),
      }),
    ),
  ),
  control: recipe(
    (port, input: FrameInput & { kind: (typeof CONTROL_KINDS)[number]; requestIds: string[] }) =>
      toHex(
        encodeControlFrame(port, {
          ...placed(port, input),
          kind: input.kind,
          requestIds: input.requestIds.map(bytes),
        }),
      ),
  ),
  reply: recipe(
    (
      port,
      input: {
        epoch: number;
        reply: string;
        key: string;
        results: (Omit<ResultItem, "requestId"> & { requestId: string })[];
      },
    ) =>
      toHex(
        encodeReplyFrame(port, {
          epoch: input.epoch,
          reply: input.reply,
          key: port.macKey(bytes(input.key)),
          results: input.results.map((result) => ({ ...result, requestId: bytes(result.requestId) })),
        }),
      ),
  ),
  refusal: recipe((_port, input: { code: RefusalCode }) => toHex(encodeRefusal(input.code))),
  decode: recipe((port, input: { as: "request" | "reply" | "control"; frame: string }) => {
    const decoders = { request: decodeRequestFrame, reply: decodeReplyFrame, control: decodeControlFrame };
    return decoders[input.as](port, bytes(input.frame)) === undefined ? "refused" : "decoded";
  }),
};

function placed(port: Port, input: FrameInput) {
  const { header, subject, reply, key } = input;
  return {
    header: { ...header, digest: bytes(header.digest) },
    subject,
    reply,
    key: port.macKey(bytes(key)),
  };
}

const json: Recipes = {
  encodeJson: recipe((_port, input: { value: unknown }) => encodeJson(input.value)),
  decodeJson: recipe((_port, input: { text: string }) => decodeJson(input.text)),
};

/** The vector files, each with its recipes. */
export const VECTOR_FILES: Readonly<Record<string, Recipes>> = {
  primitives,
  subjects,
  transcripts,
  frames,
  json,
  statements: statementRecipes,
  errors: errorRecipes,
  "../events/events": eventRecipes,
  "../feeds/feeds": feedRecipes,
  "../jobs/jobs": jobRecipes,
  "../kv/kv": kvRecipes,
  "../store/store": storeRecipes,
};
