import type { JsonObject, JsonValue } from "@trellis/result";

/** An error as it travels: in a result whose status says `error`. */
export interface ErrorEnvelope {
  /** Joins what the caller sees with what the provider logged. */
  readonly id: string;
  readonly kind: "declared" | "call";
  readonly type: string;
  readonly message: string;
  /** What a declared error tells. */
  readonly data?: JsonValue;
  /** The fields of a call error. */
  readonly details?: JsonObject;
  readonly traceId?: string;
}
