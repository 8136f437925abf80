import type {
  ApiBinding,
  Authorization,
  BootstrapAnswer,
  ExchangeKey,
  Grants,
  IssuerSet,
  ResourceBindings,
} from "@trellis/protocol";

/**
 * What one bootstrap or refresh answer proved, verified. Immutable: a refresh installs a new one in a
 * single step, and requests in flight keep the one that they began with.
 */
export interface Session {
  readonly connection: string;
  readonly assignment: BootstrapAnswer["assignment"];
  readonly participant: BootstrapAnswer["participant"];
  readonly authorization: Authorization;
  /** SHA-256 of the authorization's exact text: its name everywhere. */
  readonly digest: Uint8Array;
  readonly digestText: string;
  readonly grants: Grants;
  readonly issuers: IssuerSet;
  /** Used API id to its signed binding. */
  readonly bindings: ReadonlyMap<string, ApiBinding>;
  /** Used APIs that no deployment provides yet, with the reason. */
  readonly unbound: ReadonlyMap<string, string>;
  /** Route keys of the own deployment by epoch; empty for a client. */
  readonly routeKeys: ReadonlyMap<number, ExchangeKey>;
  readonly servers: readonly string[];
  /** The physical resources behind the participant's aliases. */
  readonly resources: ResourceBindings;
}
