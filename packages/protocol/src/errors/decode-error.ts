import type { AnyDeclaredErrorClass, DeclaredError } from "@trellis/contract";
import { isBaseError, type JsonObject, type JsonValue, UnexpectedError } from "@trellis/result";
import { JobNotEnqueuedError } from "../jobs/job-not-enqueued-error.ts";
import type { JsonIssue } from "../json/issue.ts";
import { AuthError } from "./auth-error.ts";
import { ConflictError, NotFoundError, UnavailableError } from "./presence-errors.ts";
import { RemoteError } from "./remote-error.ts";
import { BusyError, CancelledError, TimeoutError } from "./timing-errors.ts";
import { TransportError } from "./transport-error.ts";
import type { CallErrors, TrellisError } from "./trellis-error.ts";
import { ValidationError } from "./validation-error.ts";

/** The declared errors of an action, by name. */
export type DeclaredErrors = Readonly<Record<string, AnyDeclaredErrorClass>>;

interface WireError {
  readonly id: string;
  readonly kind: string;
  readonly type: string;
  readonly message: string;
  readonly data: JsonValue | undefined;
  readonly details: JsonObject;
  readonly traceId: string | undefined;
}

interface Identity {
  readonly id: string;
  readonly message: string;
  readonly traceId?: string;
}

/**
 * The error of an envelope: the declared class when the action declares it and its data fits, one of ours when the
 * type is one of ours and its fields are right, else a `RemoteError`. Takes anything, never throws.
 */
export function decodeError(envelope: unknown, declared: DeclaredErrors): TrellisError {
  const wire = readEnvelope(envelope);
  if (wire === undefined) {
    return new RemoteError({
      remoteType: "malformed",
      message: "The other side answered with a malformed error",
    });
  }
  const identity: Identity = {
    id: wire.id,
    message: wire.message,
    ...(wire.traceId !== undefined && { traceId: wire.traceId }),
  };
  const known =
    wire.kind === "declared" ? declaredError(wire, identity, declared) : callError(wire, identity);
  return known ?? new RemoteError({ ...identity, remoteType: wire.type, details: wire.details });
}

function readEnvelope(envelope: unknown): WireError | undefined {
  if (!isObject(envelope)) return undefined;
  const { id, kind, type, message, data, details, traceId } = envelope;
  if (typeof id !== "string" || typeof kind !== "string") return undefined;
  if (typeof type !== "string" || typeof message !== "string") return undefined;
  return {
    id,
    kind,
    type,
    message,
    data,
    details: isObject(details) ? details : {},
    traceId: typeof traceId === "string" ? traceId : undefined,
  };
}

function declaredError(
  wire: WireError,
  identity: Identity,
  declared: DeclaredErrors,
): DeclaredError | undefined {
  const found = Object.hasOwn(declared, wire.type) ? declared[wire.type] : undefined;
  if (found === undefined) return undefined;
  if (found.dataSchema === undefined) return wire.data === undefined ? construct(found, identity) : undefined;
  const decoded = found.dataSchema.decode(wire.data);
  return decoded.ok ? construct(found, { ...identity, data: decoded.value }) : undefined;
}

/** By reflection: that the data fits this very class is known from its schema, not from its type. */
function construct(
  Declared: AnyDeclaredErrorClass,
  options: Identity & { data?: unknown },
): DeclaredError | undefined {
  const error: unknown = Reflect.construct(Declared, [options]);
  return isDeclared(error) ? error : undefined;
}

/** By brand: the class may come from another copy of the package. */
function isDeclared(value: unknown): value is DeclaredError {
  return isBaseError(value) && value.kind === "declared";
}

function callError(wire: WireError, identity: Identity): CallErrors | undefined {
  if (wire.kind !== "call") return undefined;
  const { details } = wire;
  switch (wire.type) {
    case "ValidationError": {
      const errors = readIssues(details["errors"]);
      return errors === undefined ? undefined : new ValidationError({ ...identity, errors });
    }
    case "AuthError":
      return withText(details["reason"], (reason) => new AuthError({ ...identity, reason }));
    case "TransportError":
      return withText(details["code"], (code) => new TransportError({ ...identity, code }));
    case "CancelledError":
      return withText(details["reason"], (reason) => new CancelledError({ ...identity, reason }));
    case "UnavailableError":
      return withText(details["reason"], (reason) => new UnavailableError({ ...identity, reason }));
    case "TimeoutError":
      return new TimeoutError({
        ...identity,
        ...(isCount(details["timeoutMs"]) && { timeoutMs: details["timeoutMs"] }),
      });
    case "BusyError": {
      const { retryAfterMs } = details;
      return isCount(retryAfterMs) ? new BusyError({ ...identity, retryAfterMs }) : undefined;
    }
    case "NotFoundError":
      return new NotFoundError({ ...identity, details });
    case "ConflictError":
      return new ConflictError({ ...identity, details });
    case "JobNotEnqueuedError":
      return notEnqueued(identity, details);
    case "UnexpectedError":
      return new UnexpectedError(identity);
    case "RemoteError":
      return withText(
        details["remoteType"],
        (remoteType) => new RemoteError({ ...identity, remoteType, details }),
      );
    default:
      return undefined;
  }
}

function notEnqueued(identity: Identity, details: JsonObject): CallErrors | undefined {
  const { reason, key, active, queued, limit, existingJobId } = details;
  if (typeof reason !== "string" || typeof key !== "string") return undefined;
  if (!isCount(active) || !isCount(queued) || !isCount(limit)) return undefined;
  return new JobNotEnqueuedError({
    ...identity,
    reason,
    key,
    active,
    queued,
    limit,
    ...(typeof existingJobId === "string" && { existingJobId }),
  });
}

function withText<E>(value: JsonValue | undefined, make: (text: string) => E): E | undefined {
  return typeof value === "string" ? make(value) : undefined;
}

function readIssues(value: JsonValue | undefined): readonly JsonIssue[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const issues: JsonIssue[] = [];
  for (const item of value) {
    if (!isObject(item)) return undefined;
    const { path, message } = item;
    if (typeof path !== "string" || typeof message !== "string") return undefined;
    issues.push({ path, message });
  }
  return issues;
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === "number" && value >= 0;
}

/** An object of a value that came out of JSON. */
function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
