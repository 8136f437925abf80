/** Something of this name is there, and it is not this deployment's: it is left alone. */
export class ForeignResource extends Error {
  override readonly name = "ForeignResource";
  readonly resource: string;

  constructor(resource: string) {
    super(`"${resource}" exists on the broker and belongs to somebody else.`);
    this.resource = resource;
  }
}

/** The broker has no room for it: its limits, or those of the account, are reached. */
export class BrokerLimit extends Error {
  override readonly name = "BrokerLimit";
  readonly resource: string;
  /** In the broker's own words. */
  readonly limit: string;

  constructor(resource: string, cause: Error) {
    super(`The broker cannot take "${resource}": ${cause.message}.`, { cause });
    this.resource = resource;
    this.limit = cause.message;
  }
}

/** One resource that could not be brought about. */
export interface ResourceFailure {
  readonly kind: string;
  readonly alias: string;
  readonly error: unknown;
}

/** Some of a deployment's resources could not be brought about; the others were. */
export class ResourcesFailed extends Error {
  override readonly name = "ResourcesFailed";
  readonly failures: readonly ResourceFailure[];

  constructor(failures: readonly ResourceFailure[]) {
    const names = failures.map(({ kind, alias }) => `${kind} "${alias}"`).join(", ");
    super(`Could not bring about ${names}.`, { cause: failures[0]?.error });
    this.failures = failures;
  }
}
