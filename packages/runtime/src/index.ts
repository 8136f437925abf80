export {
  AuthError,
  BusyError,
  CallError,
  CancelledError,
  ConflictError,
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
  EventName,
  EventPublishFacade,
  EventPublishing,
  PublishByName,
  PublishErrors,
  PublishPrepared,
} from "./events/event-publishers.ts";
export type { PrepareOptions } from "./events/prepare-event.ts";
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
