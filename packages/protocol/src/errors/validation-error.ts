import type { JsonIssue } from "../json/issue.ts";
import { CallError, type CallErrorOptions, withDetails } from "./call-error.ts";

/** A value does not fit its schema, or is not what JSON can carry, or is too large. */
export class ValidationError extends CallError {
  static readonly errorType = "ValidationError";
  readonly type = "ValidationError";
  /** Each place that does not fit: JSON pointer and reason. */
  readonly errors: readonly JsonIssue[];

  constructor(options: CallErrorOptions & { readonly errors: readonly JsonIssue[] }) {
    const errors = options.errors.map(({ path, message }) => ({ path, message }));
    super(options.message ?? describe(errors), withDetails(options, { errors }));
    this.errors = errors;
  }
}

function describe(errors: readonly JsonIssue[]): string {
  const [first] = errors;
  if (first === undefined) return "The value is not valid";
  const more = errors.length === 1 ? "" : ` (and ${errors.length - 1} more)`;
  return `The value is not valid: ${first.path === "" ? "it" : first.path} ${first.message}${more}`;
}
