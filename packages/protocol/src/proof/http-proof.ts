import { fromBase64Url, toBase64Url } from "../bytes/base64url.ts";
import { transcript } from "../bytes/transcript.ts";
import type { Port, SigningKey } from "../port/port.ts";

/** The domain label of an HTTP proof. */
export const HTTP_PROOF_LABEL = "trellis.session-proof.v1";

/** The header that carries the proof by the identity key. */
export const IDENTITY_PROOF_HEADER = "trellis-identity-proof";
/** The header that carries the proof by the session key. */
export const SESSION_PROOF_HEADER = "trellis-session-proof";

/** What a request is for: a proof for one is worth nothing for another. */
export const PROOF_PURPOSES = ["bootstrap.service", "bootstrap.client", "context.refresh"] as const;

export type ProofPurpose = (typeof PROOF_PURPOSES)[number];

/** What a proof says. Request id (single use) and issued-at (ms) are those of the body. */
export interface HttpProofClaims {
  readonly purpose: ProofPurpose;
  readonly method: string;
  readonly path: string;
  /** Scheme, host and port that the request goes to: `https://trellis.example`. */
  readonly origin: string;
  readonly requestId: string;
  readonly issuedAt: number;
  /** The raw bytes of the body. */
  readonly body: Uint8Array;
  /** base64url of the session public key. */
  readonly sessionKey: string;
}

/** The proof, base64url of an Ed25519 signature. */
export function httpProof(port: Port, input: HttpProofClaims & { readonly key: SigningKey }): string {
  return toBase64Url(input.key.sign(proofTranscript(port, input)));
}

/** Whether the holder of the key made this proof for exactly these claims. Never throws. */
export function verifyHttpProof(
  port: Port,
  input: HttpProofClaims & { readonly publicKey: Uint8Array; readonly proof: string },
): boolean {
  const signature = fromBase64Url(input.proof);
  if (signature?.length !== 64) return false;
  return port.ed25519.verify(input.publicKey, proofTranscript(port, input), signature);
}

/** The bytes that a proof signs. */
export function proofTranscript(port: Port, claims: HttpProofClaims): Uint8Array {
  const { purpose, method, path, origin, requestId, issuedAt, body, sessionKey } = claims;
  return transcript(
    HTTP_PROOF_LABEL,
    purpose,
    method.toUpperCase(),
    path,
    origin,
    requestId,
    String(issuedAt),
    port.sha256(body),
    sessionKey,
  );
}
