export { type EventAction, type EventDefinition, event, type ParamName } from "./actions/event.ts";
export { type FeedAction, type FeedDefinition, feed } from "./actions/feed.ts";
export {
  type OperationAction,
  type OperationDefinition,
  type OperationSchemas,
  operation,
  type UploadDefinition,
  type UploadPolicy,
} from "./actions/operation.ts";
export { type Idempotency, type RpcAction, type RpcDefinition, rpc } from "./actions/rpc.ts";
export type {
  Api,
  EventRecord,
  FeedRecord,
  None,
  OperationRecord,
  RpcRecord,
  Surface,
} from "./api/api.ts";
export type {
  ApiArtifact,
  ArtifactErrors,
  ArtifactSchema,
  EventArtifact,
  FeedArtifact,
  OperationArtifact,
  RpcArtifact,
} from "./api/api-artifact.ts";
export { type ApiDefinition, defineApi } from "./api/define-api.ts";
export {
  type AppDefinition,
  defineApp,
  defineService,
  type ServiceDefinition,
} from "./api/define-participant.ts";
export type { Facade, FacadeGroup, FacadeKind } from "./api/facade.ts";
export type {
  AnyParticipant,
  OwnedEvents,
  OwnedFeeds,
  OwnedOperations,
  OwnedRpc,
  Participant,
  ParticipantKind,
  Resources,
  UsedEvents,
  UsedFeeds,
  UsedOperations,
  UsedRpc,
} from "./api/participant.ts";
export type {
  ConsumerArtifact,
  JobArtifact,
  KvArtifact,
  ParticipantArtifact,
  StateArtifact,
  StoreArtifact,
  UseArtifact,
} from "./api/participant-artifact.ts";
export { type Use, type UseOptions, use } from "./api/use.ts";
export {
  type ActionArtifacts,
  type Compatibility,
  type CompatibilityFinding,
  type CompatibilityQuestion,
  checkCompatibility,
} from "./compatibility/check-compatibility.ts";
export type { SubsetFinding } from "./compatibility/comparison.ts";
export { subsetFindings } from "./compatibility/schema-subset.ts";
export {
  type AnyDeclaredErrorClass,
  DeclaredError,
  type DeclaredErrorClass,
  type DeclaredErrorInit,
  type DeclaredErrorOptions,
  type SerializedDeclaredError,
} from "./errors/declared-error.ts";
export { defineError, type ErrorDefinition } from "./errors/define-error.ts";
export { DefinitionError, type DefinitionErrorOptions } from "./errors/definition-error.ts";
export { type FacadeName, type FacadePlace, facadeName, type GroupOf, type LeafOf } from "./facade-name.ts";
export { isActionName, isAlias, isApiId, isParticipantId, type Reserved, reserved } from "./ids.ts";
export { CanonicalJsonError, canonicalJson } from "./json/canonical-json.ts";
export { digestOf, digestOfText } from "./json/digest.ts";
export { parseStrictJson, StrictJsonError } from "./json/strict-json.ts";
export {
  type ConsumerDefinition,
  type ConsumerResource,
  consumer,
  type Replay,
} from "./resources/consumer.ts";
export {
  type JobDefinition,
  type JobPolicy,
  type JobResource,
  job,
  type KeyConcurrencyDefinition,
  type QueueDefinition,
  type RateLimitDefinition,
  type ScheduleDefinition,
} from "./resources/job.ts";
export { type KvDefinition, type KvResource, kv } from "./resources/kv.ts";
export {
  type ExponentialBackoff,
  type ExponentialPolicy,
  exponential,
  type RetryDefinition,
  type RetryPolicy,
} from "./resources/retry.ts";
export { type StateDefinition, type StateResource, state } from "./resources/state.ts";
export { type StoreDefinition, type StoreResource, store } from "./resources/store.ts";
export { stripAnnotations } from "./schema/annotations.ts";
export { compileSchema } from "./schema/compile-schema.ts";
export type { CompiledSchema, Decoded, SchemaIssue } from "./schema/compiled-schema.ts";
export { type SchemaOptions, schema } from "./schema/schema.ts";
export type {
  InputOf,
  JsonForm,
  MaybeSchema,
  NotJson,
  OutputOf,
  SchemaLike,
  TypeBoxSchema,
} from "./schema/schema-like.ts";
export type {
  StandardIssue,
  StandardProps,
  StandardResult,
  StandardSchemaV1,
} from "./schema/standard-schema.ts";
export { type Duration, parseDuration, parseSize, type Size } from "./units.ts";
