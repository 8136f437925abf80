import type { DeclaredError } from "@trellis/contract";
import type { UnexpectedError } from "@trellis/result";
import type { JobNotEnqueuedError } from "../jobs/job-not-enqueued-error.ts";
import type { AuthError } from "./auth-error.ts";
import type { ConflictError, NotFoundError, UnavailableError } from "./presence-errors.ts";
import type { RemoteError } from "./remote-error.ts";
import type { BusyError, CancelledError, TimeoutError } from "./timing-errors.ts";
import type { TransportError } from "./transport-error.ts";
import type { ValidationError } from "./validation-error.ts";

/** Every error of ours that a call can end with: `kind` is `"call"`, `type` tells them apart. */
export type CallErrors =
  | ValidationError
  | AuthError
  | TransportError
  | TimeoutError
  | CancelledError
  | BusyError
  | UnavailableError
  | NotFoundError
  | JobNotEnqueuedError
  | ConflictError
  | RemoteError
  | UnexpectedError;

/** Any error that comes out of a call: after `kind === "declared"` a switch on `type` is over what is declared. */
export type TrellisError = CallErrors | DeclaredError;
