import type { PlainLink } from "@trellis/runtime/node";
import type { ConnectedService } from "@trellis/runtime/service";
import { type JobsHandlers } from "../jobs/api.ts";
import { jobsHandlers } from "../jobs/handlers.ts";
import { JobQueues } from "../jobs/job-queues.ts";
import type { JobWorkers } from "../jobs/job-workers.ts";
import type { Plane } from "../plane.ts";
import type { Calling } from "./calling.ts";
import type { platformParticipant } from "./participants.ts";

/** Serves the API of jobs. */
export function handleJobs(
  service: ConnectedService<typeof platformParticipant>,
  plane: Plane,
  { link, workers }: { readonly link: PlainLink; readonly workers: JobWorkers },
): void {
  const queues = new JobQueues(link.nats);
  const on = ({ caller }: Calling): JobsHandlers =>
    jobsHandlers({ plane, link, queues, workers, actor: `${caller.participant.id}/${caller.instance}` });
  const { jobs } = service.handle.rpc;
  jobs.query(({ input, context }) => on(context)["Jobs.Query"](input));
  jobs.get(({ input, context }) => on(context)["Jobs.Get"](input));
  jobs.summary(({ input, context }) => on(context)["Jobs.Summary"](input));
  jobs.metrics(({ input, context }) => on(context)["Jobs.Metrics"](input));
  jobs.workers(({ input, context }) => on(context)["Jobs.Workers"](input));
  jobs.queues(({ input, context }) => on(context)["Jobs.Queues"](input));
  jobs.retry(({ input, context }) => on(context)["Jobs.Retry"](input));
  jobs.cancel(({ input, context }) => on(context)["Jobs.Cancel"](input));
  jobs.dismiss(({ input, context }) => on(context)["Jobs.Dismiss"](input));
  jobs.pauseQueue(({ input, context }) => on(context)["Jobs.PauseQueue"](input));
  jobs.resumeQueue(({ input, context }) => on(context)["Jobs.ResumeQueue"](input));
  jobs.releaseKey(({ input, context }) => on(context)["Jobs.ReleaseKey"](input));
}
