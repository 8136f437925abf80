import { defineError } from "@trellis/contract";
import { Type } from "typebox";
import { AuthError, type AuthReason } from "./auth-error.ts";
import { BusyError } from "./timing-errors.ts";
import type { CallErrors } from "./trellis-error.ts";

const OutOfStock = defineError("OutOfStock", { data: Type.Object({ sku: Type.String() }) });

/** What a call of an action with that one declared error can end with. */
declare const error: CallErrors | InstanceType<typeof OutOfStock>;

export function describe(): string {
  if (error.kind === "declared") return error.data.sku;
  switch (error.type) {
    case "ValidationError":
      return error.errors.map(({ path }) => path).join();
    case "BusyError":
      return String(error.retryAfterMs);
    case "AuthError":
    case "CancelledError":
    case "UnavailableError":
    case "JobNotEnqueuedError":
      return error.reason;
    case "TransportError":
      return error.code;
    case "RemoteError":
      return error.remoteType;
    case "TimeoutError":
      return String(error.timeoutMs);
    case "NotFoundError":
    case "ConflictError":
    case "UnexpectedError":
      return error.message;
  }
}

// An open list: the known reasons complete, others are text.
export const reasons: readonly AuthReason[] = ["revoked", "of_a_newer_version"];

// @ts-expect-error - a reason is needed
new AuthError({});
// @ts-expect-error - a time is needed
new BusyError({});
// @ts-expect-error - details are the error's own fields
new BusyError({ retryAfterMs: 1, details: {} });
