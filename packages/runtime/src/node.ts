// For sibling packages (control plane, testing kit): the Node platform and the shared building blocks. Not
// covered by semantic versioning.

export { connectClientWith } from "./client/trellis-client.ts";
export { type BootstrapExchange, type BootstrapSource } from "./connect/bootstrap-source.ts";
export type { ConnectDeps } from "./connect/connect-link.ts";
export { markFinalRefusal } from "./connect/http-bootstrap.ts";
export { userNkey } from "./connect/nkey.ts";
export { ListenRefused, listenAction, listenApi, MAX_LISTENERS } from "./events/listen-api.ts";
export { PlainLink, type PlainLinkInput } from "./jetstream/plain-link.ts";
export { JetStreamPublisher } from "./jetstream/publisher.ts";
export { StreamReader } from "./jetstream/stream-reader.ts";
export { JobOperator, type JobOperatorInput, type OperatorOutcome } from "./jobs/job-operator.ts";
export { JobTestControl } from "./jobs/job-test-control.ts";
export { KvBucket, type KvBucketInput } from "./kv/kv-bucket.ts";
export { backoffDelay, sleep } from "./lifecycle/backoff.ts";
export { type Clock, systemClock } from "./lifecycle/clock.ts";
export { Deadline } from "./lifecycle/deadline.ts";
export { type Deferred, deferred } from "./lifecycle/deferred.ts";
export { Scope, ScopeClosedError } from "./lifecycle/scope.ts";
export { within } from "./lifecycle/within.ts";
export { createLogger, silentLogger } from "./logging/logger.ts";
export { platform as nodePlatform } from "./platform/node/platform.ts";
export { nodePort } from "./platform/node/port.ts";
export type { DialOptions, Platform } from "./platform/platform.ts";
export { connectServiceWith } from "./service/trellis-service.ts";
export {
  MAX_STATE_BYTES,
  StateConflict,
  StateNotDeclared,
  StateRefused,
  stateApi,
} from "./state/state-api.ts";
export { type StoreInput, StreamObjectStore } from "./store/object-store.ts";
