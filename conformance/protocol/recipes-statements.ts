import { compileSchema } from "@trellis/contract";
import {
  API_BINDING,
  AUTHORIZATION,
  type AuthError,
  authorizationDigest,
  BootstrapAnswerSchema,
  BootstrapRequestSchema,
  CONNECTION_END,
  DenialSchema,
  GrantsSchema,
  grantsDigest,
  HEARTBEAT_LABEL,
  HeartbeatSchema,
  ISSUERS_LABEL,
  keyId,
  openRouteKey,
  type Port,
  REVOCATION,
  RefreshRequestSchema,
  ROUTE_NOTICE,
  rootFingerprint,
  type Signed,
  type StatementKind,
  sealRouteKey,
  signStatement,
  toBase64Url,
  toHex,
  verifyHeartbeat,
  verifyIssuers,
  verifyStatement,
  WellKnownSchema,
} from "@trellis/protocol";
import type { Result } from "@trellis/result";
import type { TObject } from "typebox";
import { bytes, type Recipes, recipe } from "./recipe.ts";

const KINDS: Readonly<Record<string, StatementKind<TObject>>> = {
  authorization: AUTHORIZATION,
  binding: API_BINDING,
  route: ROUTE_NOTICE,
  revocation: REVOCATION,
  "connection-end": CONNECTION_END,
};

const LABELS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(KINDS).map(([kind, { label }]) => [kind, label])),
  issuers: ISSUERS_LABEL,
  heartbeat: HEARTBEAT_LABEL,
};

const BODIES = {
  bootstrapRequest: BootstrapRequestSchema,
  refreshRequest: RefreshRequestSchema,
  bootstrapAnswer: BootstrapAnswerSchema,
  denial: DenialSchema,
  wellKnown: WellKnownSchema,
  heartbeat: HeartbeatSchema,
  grants: GrantsSchema,
} as const;

/** The value, or why there is none. */
function outcome(result: Result<unknown, AuthError>): unknown {
  return result.ok ? { verified: result.value } : result.error.reason;
}

function fixedKeys(port: Port, input: { seed: string }) {
  return port.ed25519.keyPair(bytes(input.seed));
}

/** A root and one issuer whose list is signed: what a verifier has in hand. */
function issuerSet(port: Port, input: { rootSeed: string; seed: string }) {
  const root = port.ed25519.keyPair(bytes(input.rootSeed));
  const issuer = fixedKeys(port, input);
  const payload = {
    version: 1,
    root: toBase64Url(root.publicKey),
    sequence: 1,
    issuedAt: 0,
    issuers: [
      {
        id: keyId(port, issuer.publicKey),
        publicKey: toBase64Url(issuer.publicKey),
        notBefore: 1_000,
        expiresAt: 1_000_000,
      },
    ],
  };
  return verifyIssuers(port, {
    signed: signStatement(port, { label: ISSUERS_LABEL, payload, key: root }),
  }).orThrow();
}

export const statementRecipes: Recipes = {
  keyNames: recipe((port, input: { seed: string }) => {
    const { publicKey } = fixedKeys(port, input);
    return {
      publicKey: toBase64Url(publicKey),
      keyId: keyId(port, publicKey),
      fingerprint: rootFingerprint(port, publicKey),
    };
  }),
  sign: recipe((port, input: { kind: string; seed: string; payload: object }) => {
    const label = LABELS[input.kind] ?? input.kind;
    const signed = signStatement(port, { label, payload: input.payload, key: fixedKeys(port, input) });
    return { ...signed, digest: authorizationDigest(port, signed.payload) };
  }),
  verify: recipe(
    (port, input: { kind: string; rootSeed: string; seed: string; now: number; signed: Signed }) => {
      const kind: StatementKind<TObject> | undefined = KINDS[input.kind];
      if (kind === undefined) throw new TypeError(`No statement "${input.kind}"`);
      return outcome(
        verifyStatement(port, {
          ...kind,
          signed: input.signed,
          issuers: issuerSet(port, input),
          now: input.now,
        }),
      );
    },
  ),
  verifyIssuers: recipe((port, input: { signed: Signed; pinnedRoot?: string; minimumSequence?: number }) =>
    outcome(
      verifyIssuers(port, input).map((set) => ({
        rootFingerprint: set.rootFingerprint,
        issuers: [...set.issuers.keys()],
      })),
    ),
  ),
  verifyHeartbeat: recipe((port, input: { signed: Signed; seed: string }) =>
    outcome(verifyHeartbeat(port, { signed: input.signed, publicKey: fixedKeys(port, input).publicKey })),
  ),
  grantsDigest: recipe((port, input: Parameters<typeof grantsDigest>[1]) => grantsDigest(port, input)),
  seal: recipe(
    (
      port,
      input: {
        routeSecret: string;
        deployment: string;
        epoch: number;
        authorization: string;
        exchange: string;
        ephemeral: string;
        nonce: string;
      },
    ) => {
      const exchange = port.x25519.keyPair(bytes(input.exchange));
      const sealed = sealRouteKey(port, {
        routeSecret: bytes(input.routeSecret),
        deployment: input.deployment,
        epoch: input.epoch,
        authorization: input.authorization,
        exchangeKey: exchange.publicKey,
        fixed: { ephemeral: bytes(input.ephemeral), nonce: bytes(input.nonce) },
      });
      const { deployment, authorization } = input;
      const opened = openRouteKey(port, { sealed, deployment, authorization, exchange });
      return { sealed, opened: opened === undefined ? null : toHex(opened) };
    },
  ),
  body: recipe((_port, input: { schema: keyof typeof BODIES; value: unknown }) =>
    compileSchema(BODIES[input.schema]).issues(input.value) === undefined ? "fits" : "does not fit",
  ),
};
