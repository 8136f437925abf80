export type { AccountLimits } from "./nats/accounts.ts";
export {
  type ExternalNatsConfig,
  type ManagedNatsConfig,
  renderExternalConfig,
  renderManagedConfig,
} from "./nats/config.ts";
export { type FindNatsOptions, findNatsServer, type NatsBinary } from "./nats/locate.ts";
export { type NatsAttempt, NatsError, type NatsErrorCode } from "./nats/nats-error.ts";
export {
  newPlatformSeeds,
  nkeyAuthenticator,
  type PlatformPublicKeys,
  type PlatformSeeds,
  publicKeysOf,
} from "./nats/platform-keys.ts";
export { ManagedNats, type ManagedNatsOptions, type NatsClosed, type RestartOptions } from "./nats/server.ts";
export { formatVersion, MINIMUM_VERSION, type NatsVersion, PINNED_VERSION } from "./nats/version.ts";
