import { type JobsBinding, type JobsLayoutInput, jobsLayout } from "@trellis/protocol/jobs";
import type { Queries } from "../storage/storage.ts";

/** The jobs of one deployment as they are provisioned. */
export interface JobsResource {
  readonly deployment: string;
  /** Stable name of the deployment. */
  readonly service: string;
  readonly secret: string;
  readonly stream: string;
  readonly queues: readonly string[];
  readonly binding: JobsBinding;
}

/** Everything that is provisioned for jobs, detached or not. */
export async function jobResources(queries: Queries, deployment?: string): Promise<JobsResource[]> {
  const rows = await queries
    .selectFrom("resources")
    .select("spec")
    .where("kind", "=", "jobs")
    .$if(deployment !== undefined, (query) => query.where("deploymentId", "=", deployment ?? ""))
    .execute();
  return rows.map(({ spec }) => {
    const input = JSON.parse(spec) as JobsLayoutInput;
    const { binding, stream } = jobsLayout(input);
    return {
      deployment: input.deployment,
      service: input.service,
      secret: input.secret,
      stream: stream.name,
      queues: Object.keys(input.queues),
      binding,
    };
  });
}
