import { BOOTSTRAP_PATHS, verifyIssuers, type WellKnown } from "@trellis/protocol";
import { nodePort } from "@trellis/runtime/node";

export interface WellKnownAnswer {
  /** The platform's clock less ours, ms. */
  readonly offsetMs: number;
  readonly roundTripMs: number;
  /** Of the root key that signed the answer's list of issuers. */
  readonly rootFingerprint: string;
  readonly dev: boolean;
}

const timeoutMs = 3_000;

/** Asks a control plane who it is; never throws. */
export async function askWellKnown(url: string): Promise<WellKnownAnswer | { readonly problem: string }> {
  try {
    const sentAt = Date.now();
    const sent = performance.now();
    const response = await fetch(new URL(BOOTSTRAP_PATHS.wellKnown, url), {
      signal: AbortSignal.timeout(timeoutMs),
      redirect: "error",
    });
    if (!response.ok) return { problem: `${url} answers ${response.status}` };
    const known = (await response.json()) as WellKnown;
    const roundTripMs = performance.now() - sent;
    const issuers = verifyIssuers(nodePort, { signed: known.issuers });
    if (issuers.isErr()) return { problem: `what answers at ${url} is not a Trellis control plane` };
    return {
      offsetMs: known.serverTime - (sentAt + roundTripMs / 2),
      roundTripMs,
      rootFingerprint: issuers.value.rootFingerprint,
      dev: known.dev,
    };
  } catch (cause) {
    const reason = cause instanceof Error && cause.name === "TimeoutError" ? `in ${timeoutMs} ms` : "";
    return { problem: `${url} does not answer ${reason}`.trimEnd() };
  }
}
