// The platform's own API as a contract, without the control plane behind it: for tools that only call it.

export { cliParticipant } from "./admin/participants.ts";
export { coreApi } from "./core/api.ts";
export { BindingRefused, NotKnown, PlatformOwned } from "./core/errors.ts";
export { eventsApi } from "./events/api.ts";
export { jobsApi } from "./jobs/api.ts";
export { CHUNK_BYTES, ResourceAttached, resourcesApi } from "./resources/api.ts";
