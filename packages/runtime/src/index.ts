export {
  AuthError,
  BusyError,
  CallError,
  CancelledError,
  ConflictError,
  NotFoundError,
  RemoteError,
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
export type { LogFields, Logger } from "./logging/logger.ts";
export type { NoResponderRetry } from "./rpc/call-recovery.ts";
export type { CallOptions, RpcCaller, RpcResult } from "./rpc/rpc-caller.ts";
export type { RpcCallFacade } from "./rpc/rpc-facade.ts";
