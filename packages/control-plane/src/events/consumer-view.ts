import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { EVENT_STREAM } from "@trellis/protocol";
import type { DeploymentRow } from "../storage/deployments.ts";
import type { ResourceRow } from "../storage/resources.ts";
import type { DeadLetterStore } from "./dead-letter-store.ts";

/** A durable consumer as an operator sees it; one that the broker does not know any more has nothing pending. */
export async function consumerView(
  manager: JetStreamManager,
  letters: DeadLetterStore,
  { row, deployment }: { row: ResourceRow; deployment: DeploymentRow },
) {
  const [info, deadLetters] = await Promise.all([
    manager.consumers.info(EVENT_STREAM, row.name).catch((error: unknown) => {
      if (error instanceof JetStreamApiError) return undefined;
      throw error;
    }),
    letters.count(deployment, row.alias),
  ]);
  return {
    deployment: deployment.id,
    name: deployment.name,
    consumer: row.alias,
    attached: row.state === "attached",
    pending: info?.num_pending ?? 0,
    unsettled: info?.num_ack_pending ?? 0,
    redelivered: info?.num_redelivered ?? 0,
    waiting: info?.num_waiting ?? 0,
    deadLetters,
  };
}
