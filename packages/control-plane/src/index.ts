export { type AdminCredential, externalNatsConfig, initServer, isInitialised } from "./admin/server-init.ts";
export type { ControlPlaneConfig, ExternalBroker, ManagedBroker } from "./config/config.ts";
export type { Log } from "./config/log.ts";
export { type ControlPlane, type ControlPlaneEnd, startControlPlane } from "./control-plane.ts";
export type { CoreHandlers } from "./core/api.ts";
