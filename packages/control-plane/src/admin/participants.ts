import { defineApp, defineService, reserved, use } from "@trellis/contract";
import { stateApi } from "@trellis/runtime/node";
import { coreApi } from "../core/api.ts";
import { eventsApi } from "../events/api.ts";
import { jobsApi } from "../jobs/api.ts";
import { resourcesApi } from "../resources/api.ts";

/** The platform as a participant of itself: it implements its own APIs like any other service. */
export const platformParticipant = defineService(
  "trellis.platform",
  { title: "The Trellis platform", implements: [coreApi, eventsApi, jobsApi, resourcesApi, stateApi] },
  reserved,
);

/** What the command line is to the platform. An instance of it is an administrator's credential. */
export const cliParticipant = defineApp(
  "trellis.cli",
  { title: "The trellis command", uses: [use(coreApi), use(eventsApi), use(jobsApi), use(resourcesApi)] },
  reserved,
);
