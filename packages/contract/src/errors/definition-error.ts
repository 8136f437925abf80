import { BaseError } from "@trellis/result";

/** Options of {@link DefinitionError}. */
export interface DefinitionErrorOptions {
  /** Where in the contract: `acme.orders@v1 rpc "Orders.Create" input`. */
  readonly place: string;
  /** What is wrong, as a sentence without a full stop. */
  readonly problem: string;
  /** What to write instead. */
  readonly hint?: string;
  readonly cause?: unknown;
}

/** A contract that cannot be: thrown by `define*` and the builders while a program loads, never later. */
export class DefinitionError extends BaseError {
  readonly kind = "definition";
  readonly type = "DefinitionError";
  readonly place: string;
  readonly problem: string;

  constructor(options: DefinitionErrorOptions) {
    const { place, problem, hint, cause } = options;
    super(`${place}: ${problem}.${hint === undefined ? "" : ` ${hint}.`}`, {
      ...(hint !== undefined && { hint }),
      cause,
      context: { place },
    });
    this.place = place;
    this.problem = problem;
  }
}
