export type { FeedHandleFacade } from "./feeds/feed-facade.ts";
export type { Emit, FeedHandle, FeedHandler, FeedSession } from "./feeds/feed-handler.ts";
export type { FeedLimits } from "./feeds/feed-provider.ts";
export type { Health, HealthCheckFunction, HealthInfo, HealthReport } from "./health/health.ts";
export type {
  Job,
  JobAnswer,
  JobChildren,
  JobHandleOptions,
  JobHandler,
  JobRequest,
  JobWaitTarget,
} from "./jobs/job-handler.ts";
export { RetryJobError } from "./jobs/retry-job-error.ts";
export type { AdmissionLimits } from "./rpc/admission.ts";
export type {
  Caller,
  HandlerContext,
  RpcAnswer,
  RpcHandle,
  RpcHandler,
  RpcRequest,
} from "./rpc/rpc-handler.ts";
export type {
  ConnectedService,
  ServiceAuth,
  ServiceClient,
  ServiceHandles,
  StopOptions,
  WaitOptions,
} from "./service/connected-service.ts";
export type { IncomingCall, ServiceMiddleware } from "./service/middleware.ts";
export { TrellisService } from "./service/trellis-service.ts";
