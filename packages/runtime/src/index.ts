export {
  AuthError,
  BusyError,
  CallError,
  CancelledError,
  ConflictError,
  FeedError,
  type FeedErrorReason,
  JobNotEnqueuedError,
  type JobNotEnqueuedReason,
  KVError,
  type KVErrorReason,
  NotFoundError,
  RemoteError,
  StoreError,
  type StoreErrorReason,
  TimeoutError,
  TransportError,
  type TrellisError,
  UnavailableError,
  UnexpectedError,
  ValidationError,
} from "@trellis/protocol";
export type {
  JobContext,
  JobError,
  JobLineage,
  JobLog,
  JobProgress,
  JobSnapshot,
  JobState,
  JobTrigger,
} from "@trellis/protocol/jobs";
export { AsyncResult, isErr, isOk, Result } from "@trellis/result";
export type { RequestByName } from "./client/calling.ts";
export type { ClientMiddleware, NextCall, OutgoingCall } from "./client/middleware.ts";
export { type ConnectedClient, TrellisClient } from "./client/trellis-client.ts";
export type { ConnectArgs, RuntimeOptions } from "./connect/connect-link.ts";
export type { Connection, ConnectionPhase, ConnectionStatus } from "./connect/connection-status.ts";
export type { EphemeralListenOptions, Listening } from "./events/ephemeral-listeners.ts";
export type {
  EventAnswer,
  EventContext,
  EventHandler,
  EventRequest,
  EventSource,
  ReceivedEvent,
} from "./events/event-handler.ts";
export type {
  EphemeralListen,
  EventHearFacade,
  EventListen,
  EventListenFacade,
  GroupListenOptions,
  ParamFilter,
} from "./events/event-listeners.ts";
export type { PublishedEvent, PublishOptions } from "./events/event-publisher.ts";
export type {
  EventPayloads,
  EventPublishFacade,
  EventPublishing,
  PrepareByName,
  PublishByName,
  PublishErrors,
  PublishPrepared,
} from "./events/event-publishers.ts";
export type { PrepareOptions } from "./events/prepare-event.ts";
export type { FeedOpenFacade } from "./feeds/feed-facade.ts";
export type {
  FeedErrors,
  FeedOpener,
  FeedOpenerWithInput,
  FeedOptions,
  FeedStream,
} from "./feeds/feed-stream.ts";
export type { JobCreateFailure } from "./jobs/job-creator.ts";
export { JobEndedError } from "./jobs/job-ended-error.ts";
export type { JobFailure } from "./jobs/job-handler.ts";
export type { JobRef, JobRefFailure, JobWaitOptions } from "./jobs/job-ref.ts";
export type { JobCreateOptions } from "./jobs/job-request.ts";
export type { JobUpdates, ReceivedJobUpdate } from "./jobs/job-updates.ts";
export type { JobCalls, JobQueue, JobSubmission, JobsFacade } from "./jobs/jobs-facade.ts";
export type {
  Kv,
  KvDeleteOptions,
  KvGetOptions,
  KvListing,
  KvListOptions,
  KvOptions,
  KvPutOptions,
  KvReplaceOptions,
  KvWatch,
  KvWatchOptions,
} from "./kv/kv.ts";
export type {
  KvChange,
  KvDeleted,
  KvEntry,
  KvInvalid,
  KvReady,
  KvRevision,
  KvStored,
} from "./kv/kv-entry.ts";
export type { KvFacade } from "./kv/kv-facade.ts";
export type { KvFailure } from "./kv/kv-failure.ts";
export type { LogFields, Logger } from "./logging/logger.ts";
export type { NoResponderRetry } from "./rpc/call-recovery.ts";
export type { CallOptions, RpcCaller, RpcResult } from "./rpc/rpc-caller.ts";
export type { RpcCallFacade } from "./rpc/rpc-facade.ts";
export type {
  State,
  StateDeleteOptions,
  StateEntry,
  StateFacade,
  StateFailure,
  StateReplaceOptions,
  StateResult,
  StateRevision,
} from "./state/state.ts";
export type {
  ObjectStore,
  StoreEntry,
  StoreHandle,
  StoreInfo,
  StoreListOptions,
  StoreOptions,
  StorePage,
  StorePutOptions,
  StoreSource,
} from "./store/store.ts";
export type { StoreFacade } from "./store/store-facade.ts";
export type { StoreFailure } from "./store/store-failure.ts";
