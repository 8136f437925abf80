/**
 * The shape of every table, as TypeScript. Column names are camel case in code and in SQL alike, so that
 * a row needs no mapping; types are text, integer and bigint only, JSON is kept as text, booleans are 0
 * or 1: SQLite and PostgreSQL hold the same values.
 */

/** 0 or 1; SQL of both dialects stores it in an integer column. */
export type Flag = 0 | 1;

export interface MetaTable {
  key: string;
  value: string;
}

/** One immutable revision of a participant's contract artifact. The highest revision is the current one. */
export interface ParticipantsTable {
  id: string;
  revision: number;
  digest: string;
  kind: "service" | "app";
  /** Canonical JSON of the artifact. */
  artifact: string;
  /** Hash of the dev token that installed it, or null when an administrator did. */
  owner: string | null;
  installedAt: number;
}

export interface DeploymentsTable {
  id: string;
  /** Stable name of the deployment, unique, the same for all of its replicas. */
  name: string;
  participantId: string;
  participantDigest: string;
  disabled: Flag;
  /** Route epoch. A roll at once leaves no previous epoch; a planned one overlaps until `previousUntil`. */
  epoch: number;
  previousEpoch: number | null;
  previousUntil: number | null;
  /** 128 random bits, base64url, that make the names of the deployment's streams unguessable. */
  secret: string;
  createdAt: number;
}

/** Which provider a deployment's used API is bound to; only where an administrator chose. */
export interface BindingsTable {
  deploymentId: string;
  api: string;
  providerId: string;
  createdAt: number;
}

export interface InstancesTable {
  id: string;
  deploymentId: string;
  /** Base64url of the raw Ed25519 public key. */
  identityKey: string;
  name: string;
  disabled: Flag;
  /** Provisioned on the fly in dev mode; removed when its last connection ended. */
  ephemeral: Flag;
  createdAt: number;
}

export interface GrantsTable {
  principal: string;
  participantId: string;
  revision: number;
  grants: string;
  updatedAt: number;
}

export interface ConnectionsTable {
  id: string;
  instanceId: string;
  deploymentId: string;
  participantId: string;
  /** The revision that the process runs; it may be older than the deployment's. */
  participantDigest: string;
  identityKey: string;
  sessionKey: string;
  /** Digest of the newest authorization. */
  authorizationDigest: string;
  state: "issued" | "connected" | "disconnected";
  serverId: string | null;
  cid: number | null;
  createdAt: number;
  updatedAt: number;
}

export interface AuthorizationsTable {
  digest: string;
  connectionId: string;
  instanceId: string;
  deploymentId: string;
  sessionKey: string;
  payload: string;
  signature: string;
  grantsDigest: string;
  policyDigest: string;
  issuedAt: number;
  expiresAt: number;
  revokedAt: number | null;
}

/** Content-addressed canonical JSON: grant sets and transport policies, each shared by many authorizations. */
export interface ContentsTable {
  digest: string;
  kind: "grants" | "policy";
  body: string;
}

export interface RevocationsTable {
  subjectKind: string;
  subjectId: string;
  at: number;
  reason: string;
  payload: string;
  signature: string;
}

/** Notices that a mutation caused and that are not known to be published: written with it, removed after it. */
export interface PendingNoticesTable {
  id: string;
  kind: "revocation" | "route";
  /** Deployment id of a route; subject kind and id of a revocation, with a space between. */
  about: string;
}

/** A stream, bucket or consumer of a deployment. Its data outlives its declaration: only an administrator destroys. */
export interface ResourcesTable {
  id: string;
  deploymentId: string;
  kind: "kv" | "store" | "consumer" | "dead-letters" | "jobs";
  /** Empty for what a deployment has one of. */
  alias: string;
  /** Physical name. */
  name: string;
  /** Canonical JSON of what the broker was told. */
  spec: string;
  /** `detached`: the deployment's revision no longer declares it. */
  state: "attached" | "detached";
  createdAt: number;
  updatedAt: number;
}

/** A value of a principal in a participant. One that was deleted stays, without its value: revisions never repeat. */
export interface StateTable {
  /** Kind and id, with a space between. */
  principal: string;
  participantId: string;
  alias: string;
  /** JSON text, or null when there is none. */
  value: string | null;
  /** Of the representation. */
  version: number;
  revision: number;
  /** Names the write that it is of: one that is repeated is found again. */
  write: string;
  updatedAt: number;
  expiresAt: number | null;
}

/** A job as its events tell of it: what lists and counts are read from. The stream is the truth. */
export interface JobsTable {
  deploymentId: string;
  queue: string;
  id: string;
  state: string;
  createdAt: number;
  updatedAt: number;
  /** Type and message of its last error. */
  error: string | null;
  /** JSON of the snapshot. */
  snapshot: string;
  /** Of the newest event that is in the snapshot. */
  sequence: number;
}

export interface AuditTable {
  id: string;
  at: number;
  actor: string;
  action: string;
  subject: string;
  detail: string;
}

export interface IssuersTable {
  id: string;
  publicKey: string;
  notBefore: number;
  expiresAt: number;
  createdAt: number;
}

export interface Database {
  meta: MetaTable;
  participants: ParticipantsTable;
  deployments: DeploymentsTable;
  bindings: BindingsTable;
  instances: InstancesTable;
  grants: GrantsTable;
  connections: ConnectionsTable;
  authorizations: AuthorizationsTable;
  contents: ContentsTable;
  revocations: RevocationsTable;
  pendingNotices: PendingNoticesTable;
  resources: ResourcesTable;
  jobs: JobsTable;
  state: StateTable;
  audit: AuditTable;
  issuers: IssuersTable;
}
