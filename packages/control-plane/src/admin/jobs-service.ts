import { nodePort, PlainLink, silentLogger } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";
import { type JobsHandlers } from "../jobs/api.ts";
import { jobsHandlers } from "../jobs/handlers.ts";
import { JobQueues } from "../jobs/job-queues.ts";
import type { Plane } from "../plane.ts";
import type { platformParticipant } from "./participants.ts";

interface Calling {
  readonly caller: { readonly participant: { readonly id: string }; readonly instance: string };
}

/** Serves the API of jobs. What it writes goes over the platform's own link into the applications' account. */
export function handleJobs(service: ConnectedService<typeof platformParticipant>, plane: Plane): void {
  const { app } = plane.links;
  const link = new PlainLink(app, { port: nodePort, log: silentLogger, connection: "trellis-app" });
  const queues = new JobQueues(app);
  const on = ({ caller }: Calling): JobsHandlers =>
    jobsHandlers({ plane, link, queues, actor: `${caller.participant.id}/${caller.instance}` });
  const { jobs } = service.handle.rpc;
  jobs.query(({ input, context }) => on(context)["Jobs.Query"](input));
  jobs.get(({ input, context }) => on(context)["Jobs.Get"](input));
  jobs.summary(({ input, context }) => on(context)["Jobs.Summary"](input));
  jobs.queues(({ input, context }) => on(context)["Jobs.Queues"](input));
  jobs.retry(({ input, context }) => on(context)["Jobs.Retry"](input));
  jobs.cancel(({ input, context }) => on(context)["Jobs.Cancel"](input));
  jobs.dismiss(({ input, context }) => on(context)["Jobs.Dismiss"](input));
  jobs.pauseQueue(({ input, context }) => on(context)["Jobs.PauseQueue"](input));
  jobs.resumeQueue(({ input, context }) => on(context)["Jobs.ResumeQueue"](input));
  jobs.releaseKey(({ input, context }) => on(context)["Jobs.ReleaseKey"](input));
}
