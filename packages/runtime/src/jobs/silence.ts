import { decodeJsonBytes, type Port } from "@trellis/protocol";

/** A holder of a slot whose last sign of life was seen, and who is looked at again after the slot's time-to-live. */
export interface Silence {
  readonly token: string;
  readonly beat: number;
}

/** The body of a call for work that comes to look at a silent holder again. */
export function silenceBody(silence: Silence): { readonly silent: Silence } {
  return { silent: { token: silence.token, beat: silence.beat } };
}

/** The silence in a call's body, if any. */
export function readSilence(port: Port, data: Uint8Array): Silence | undefined {
  if (data.length === 0) return undefined;
  const body = decodeJsonBytes(port, data);
  if (!body.ok || typeof body.value !== "object" || body.value === null || !("silent" in body.value))
    return undefined;
  const { silent } = body.value;
  if (typeof silent !== "object" || silent === null || !("token" in silent) || !("beat" in silent))
    return undefined;
  const { token, beat } = silent;
  return typeof token === "string" && typeof beat === "number" ? { token, beat } : undefined;
}
