import type { CallErrors } from "@trellis/protocol";

/** Thrown by handlers of Trellis' own, to answer with an error that no action declares. */
export class RefusedCall extends Error {
  override readonly name = "RefusedCall";
  readonly error: CallErrors;

  constructor(error: CallErrors) {
    super(error.message);
    this.error = error;
  }
}
