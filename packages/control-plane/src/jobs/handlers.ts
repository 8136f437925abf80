import type { JobPolicy } from "@trellis/contract";
import type { JobSnapshot } from "@trellis/protocol/jobs";
import { err, ok, type Result } from "@trellis/result";
import { JobOperator, type OperatorOutcome, type PlainLink } from "@trellis/runtime/node";
import type { AuthorityArtifact } from "../authority/artifact.ts";
import { type CursorInvalid, NotKnown } from "../core/errors.ts";
import { nextCursor, readPage } from "../core/page.ts";
import type { Plane } from "../plane.ts";
import { findDeployment, findDeploymentNamed } from "../storage/deployments.ts";
import { countJobs, type JobFilter, type JobRow, listJobs } from "../storage/jobs.ts";
import type { JobsHandlers } from "./api.ts";
import { jobMetrics } from "./job-metrics.ts";
import type { JobQueues } from "./job-queues.ts";
import { type JobsResource, jobResources } from "./job-resources.ts";
import type { JobWorkers, SeenWorker } from "./job-workers.ts";

export interface JobsDeps {
  readonly plane: Plane;
  readonly link: PlainLink;
  readonly queues: JobQueues;
  readonly workers: JobWorkers;
  /** Stands in the audit rows. */
  readonly actor: string;
}

type Wish = "retry" | "cancel" | "dismiss";
/** What the input of an action may say about which jobs are meant. */
type Asked = Pick<
  Parameters<JobsHandlers["Jobs.Query"]>[0],
  "deployment" | "queue" | "states" | "since" | "until" | "error"
>;
type BulkAsked = Parameters<JobsHandlers["Jobs.Retry"]>[0];
type Unknown = InstanceType<typeof NotKnown>;
type Answer = { changed: number; refused: number; cursor?: string };

const timeoutMs = 5_000;
/** Jobs that one page of a bulk is changed at a time. */
const atOnce = 32;

/** The handlers of `trellis.jobs@v1` over one control plane. */
export function jobsHandlers(deps: JobsDeps): JobsHandlers {
  return { ...jobViews(deps), ...queueViews(deps), ...jobChanges(deps) };
}

function jobViews(deps: JobsDeps): Pick<JobsHandlers, "Jobs.Query" | "Jobs.Get" | "Jobs.Summary"> {
  const { queries } = deps.plane.storage;
  return {
    "Jobs.Query": async (input) => {
      const asked = await filterOf(deps, input);
      if (asked.isErr()) return err(asked.error);
      const page = readPage("jobs", input);
      if (page.isErr()) return err(page.error);
      const { rows, next } = await listJobs(queries, page.value, asked.value);
      return ok({ jobs: rows.map(viewOf), ...nextCursor("jobs", next) });
    },

    "Jobs.Get": async ({ deployment, queue, id }) => {
      const found = await resourceOf(deps, deployment, queue);
      if (found.isErr()) return err(found.error);
      const operator = await operatorOf(deps, found.value);
      const [job, events] = await Promise.all([operator.snapshot(queue, id), operator.history(queue, id)]);
      if (job === undefined) return unknown("job", id);
      return ok({ job: { ...job }, events });
    },

    "Jobs.Summary": async (input) => {
      const asked = await filterOf(deps, input);
      if (asked.isErr()) return err(asked.error);
      const states: Record<string, number> = {};
      for (const { state, count } of await countJobs(queries, asked.value))
        states[state] = (states[state] ?? 0) + Number(count);
      return ok({ states });
    },
  };
}

function queueViews(deps: JobsDeps): Pick<JobsHandlers, "Jobs.Metrics" | "Jobs.Workers" | "Jobs.Queues"> {
  const { queries } = deps.plane.storage;
  return {
    "Jobs.Metrics": async (input) => {
      const asked = await filterOf(deps, input);
      if (asked.isErr()) return err(asked.error);
      return ok(await jobMetrics(queries, asked.value, { now: deps.plane.config.clock.now(), ...input }));
    },

    "Jobs.Workers": async (input) => {
      const asked = await filterOf(deps, input);
      if (asked.isErr()) return err(asked.error);
      const workers = await deps.workers.list(asked.value.deploymentId);
      const { queue } = input;
      return ok({
        workers: workers.filter((worker) => queue === undefined || worker.queue === queue).map(workerView),
      });
    },

    "Jobs.Queues": async (input) => {
      const asked = await filterOf(deps, input);
      if (asked.isErr()) return err(asked.error);
      const views = [];
      for (const resource of await jobResources(queries, asked.value.deploymentId))
        for (const queue of resource.queues) views.push(await queueView(deps, resource, queue));
      return ok({ queues: views });
    },
  };
}

type Change = "Retry" | "Cancel" | "Dismiss" | "PauseQueue" | "ResumeQueue" | "ReleaseKey";

function jobChanges(deps: JobsDeps): Pick<JobsHandlers, `Jobs.${Change}`> {
  return {
    "Jobs.Retry": (input) => change(deps, "retry", input),
    "Jobs.Cancel": (input) => change(deps, "cancel", input),
    "Jobs.Dismiss": (input) => change(deps, "dismiss", input),

    "Jobs.PauseQueue": (input) => switchQueue(deps, "pause", input),
    "Jobs.ResumeQueue": (input) => switchQueue(deps, "resume", input),

    "Jobs.ReleaseKey": async ({ deployment, queue, id }) => {
      const found = await resourceOf(deps, deployment, queue);
      if (found.isErr()) return err(found.error);
      await audited(deps, "jobs.release_key", `${queue}/${id}`);
      const outcome = await (await operatorOf(deps, found.value)).releaseKey(queue, id);
      return outcome.kind === "unknown" ? unknown("job", id) : ok(answerOf(outcome));
    },
  };
}

async function change(
  deps: JobsDeps,
  wish: Wish,
  input: BulkAsked,
): Promise<Result<Answer, Unknown | InstanceType<typeof CursorInvalid>>> {
  const { id, deployment, queue } = input;
  if (id === undefined) return changeMany(deps, wish, input);
  if (deployment === undefined || queue === undefined) return unknown("job", id);
  const found = await resourceOf(deps, deployment, queue);
  if (found.isErr()) return err(found.error);
  await audited(deps, `jobs.${wish}`, `${queue}/${id}`);
  const outcome = await (await operatorOf(deps, found.value))[wish](queue, id);
  return outcome.kind === "unknown" ? unknown("job", id) : ok(answerOf(outcome));
}

/** One page of a bulk. Jobs that are found changed, or gone, count as refused. */
async function changeMany(
  deps: JobsDeps,
  wish: Wish,
  input: BulkAsked,
): Promise<Result<Answer, Unknown | InstanceType<typeof CursorInvalid>>> {
  const asked = await filterOf(deps, input);
  if (asked.isErr()) return err(asked.error);
  const page = readPage("jobs", input);
  if (page.isErr()) return err(page.error);
  const { queries } = deps.plane.storage;
  const { rows, next } = await listJobs(queries, page.value, asked.value);
  await audited(deps, `jobs.${wish}_many`, `${rows.length} jobs`);
  const operators = new Map<string, Promise<JobOperator | undefined>>();
  let changed = 0;
  const one = async (row: JobRow) => {
    const operator = operators.get(row.deploymentId) ?? operatorFor(deps, row.deploymentId);
    operators.set(row.deploymentId, operator);
    const outcome = await (await operator)?.[wish](row.queue, row.id);
    if (outcome?.kind === "done") changed += 1;
  };
  for (let at = 0; at < rows.length; at += atOnce) await Promise.all(rows.slice(at, at + atOnce).map(one));
  return ok({ changed, refused: rows.length - changed, ...nextCursor("jobs", next) });
}

async function switchQueue(
  deps: JobsDeps,
  to: "pause" | "resume",
  { deployment, queue }: { deployment: string; queue: string },
) {
  const found = await resourceOf(deps, deployment, queue);
  if (found.isErr()) return err(found.error);
  await audited(deps, `jobs.${to}_queue`, `${found.value.service}/${queue}`);
  await deps.queues[to](found.value, queue);
  return ok(await queueView(deps, found.value, queue));
}

async function queueView({ plane, queues, workers }: JobsDeps, resource: JobsResource, queue: string) {
  const { deployment, service } = resource;
  const present = await workers.list(deployment);
  const counted = await countJobs(plane.storage.queries, { deploymentId: deployment, queue });
  const pending = counted.find(({ state }) => state === "pending");
  return {
    deployment,
    service,
    queue,
    ...(await queues.depth(resource, queue)),
    workers: present.filter((worker) => worker.queue === queue).length,
    states: Object.fromEntries(counted.map(({ state, count }) => [state, Number(count)])),
    ...(pending === undefined ? {} : { oldestPendingAt: Number(pending.oldest) }),
  };
}

async function filterOf({ plane }: JobsDeps, input: Asked): Promise<Result<JobFilter, Unknown>> {
  const { deployment, queue, states, since, until, error } = input;
  const rest = { queue, states, since, until, error };
  if (deployment === undefined) return ok(rest);
  const row = await findDeploymentNamed(plane.storage.queries, deployment);
  return row === undefined ? unknown("deployment", deployment) : ok({ ...rest, deploymentId: row.id });
}

async function resourceOf(
  { plane }: JobsDeps,
  deployment: string,
  queue: string,
): Promise<Result<JobsResource, Unknown>> {
  const { queries } = plane.storage;
  const row = await findDeploymentNamed(queries, deployment);
  if (row === undefined) return unknown("deployment", deployment);
  const [resource] = await jobResources(queries, row.id);
  return resource?.queues.includes(queue) ? ok(resource) : unknown("queue", queue);
}

async function operatorFor(deps: JobsDeps, deployment: string): Promise<JobOperator | undefined> {
  const [resource] = await jobResources(deps.plane.storage.queries, deployment);
  return resource === undefined ? undefined : operatorOf(deps, resource);
}

async function operatorOf({ plane, link }: JobsDeps, resource: JobsResource): Promise<JobOperator> {
  const policies = await policiesOf(plane, resource.deployment);
  return new JobOperator({
    link,
    requests: link.requests,
    timeoutMs,
    binding: () => resource.binding,
    policy: (queue) => policies.get(queue),
  });
}

/** The declared policies of a deployment's present revision. */
async function policiesOf({ storage, catalog }: Plane, deployment: string): Promise<Map<string, JobPolicy>> {
  const row = await findDeployment(storage.queries, deployment);
  if (row === undefined) return new Map();
  const artifact = await catalog.artifact(storage.queries, row.participantId, row.participantDigest);
  return new Map(Object.entries(artifact?.jobs ?? {}).map(([queue, job]) => [queue, policyOf(job)]));
}

function policyOf({ retry, ...policy }: AuthorityArtifact["jobs"][string]): JobPolicy {
  const { backoff } = retry;
  // JSON has no undefined: what is left out is no limit.
  return {
    ...policy,
    retry: {
      ...retry,
      backoff: backoff.kind === "delays" ? backoff : { ...backoff, maxMs: backoff.maxMs },
    },
  };
}

async function audited({ plane, actor }: JobsDeps, action: string, subject: string): Promise<void> {
  const entry = plane.revoker.audit(actor, action, subject);
  await plane.storage.mutate(entry, () => Promise.resolve());
}

function answerOf(outcome: Exclude<OperatorOutcome, { kind: "unknown" }>) {
  const done = outcome.kind === "done";
  return {
    changed: done ? 1 : 0,
    refused: done ? 0 : 1,
    state: outcome.state,
    ...(outcome.kind === "refused" ? { reason: outcome.reason } : {}),
  };
}

function viewOf(row: JobRow) {
  const snapshot = JSON.parse(row.snapshot) as JobSnapshot;
  const { tries, maxTries, service, state } = snapshot;
  return {
    id: row.id,
    deployment: row.deploymentId,
    service,
    queue: row.queue,
    state,
    tries,
    ...(maxTries === undefined ? {} : { maxTries }),
    createdAt: Number(row.createdAt),
    updatedAt: Number(row.updatedAt),
    ...(row.error === null ? {} : { error: row.error }),
  };
}

function workerView({ isLate, failing, ...worker }: SeenWorker) {
  if (failing !== undefined) return { ...worker, status: "failing" as const, reason: failing };
  return { ...worker, status: isLate ? ("late" as const) : ("ok" as const) };
}

function unknown(kind: string, id: string) {
  return err(new NotKnown({ data: { kind, id } }));
}
